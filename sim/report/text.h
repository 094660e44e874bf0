
/*
 * A run as text: the sections of BLIS's standard output, and the fitness.
 */

#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdio.h>

#include "sim/report/decided.h"
#include "sim/report/fitness.h"
#include "sim/report/summary.h"


/*
 * Prints the sections that follow the metrics blocks; decided: NULL omits the
 * trace summary.
 */
void report_text_sections(const report_run_t *run, const report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out);

/* Prints everything.  0, or -1: no memory. */
int report_text(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out);

#endif /* REPORT_TEXT_H */
