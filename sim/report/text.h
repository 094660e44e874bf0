
/*
 * A run as text: BLIS's standard output, section by section, and the fitness.
 */

#ifndef REPORT_TEXT_H
#define REPORT_TEXT_H

#include <stdio.h>

#include "sim/report/decided.h"
#include "sim/report/fitness.h"
#include "sim/report/summary.h"


/* The sections behind the metrics blocks; decided: NULL, no trace summary. */
void report_text_sections(const report_run_t *run, const report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out);

/* Everything.  0, or -1 without memory. */
int report_text(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out);

#endif /* REPORT_TEXT_H */
