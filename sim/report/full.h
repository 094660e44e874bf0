
/*
 * A run as one JSON document: the metrics block, what BLIS prints as text, and
 * figures that BLIS does not print.
 */

#ifndef REPORT_FULL_H
#define REPORT_FULL_H

#include <stdio.h>

#include "sim/report/decided.h"
#include "sim/report/fitness.h"
#include "sim/report/summary.h"


/* decided: NULL if no decisions were counted.  0, or -1: no memory. */
int report_full(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out);

/*
 * Writes the further counters of a run through our own gateway, as an object
 * "gateway".
 */
void report_extras(const fleet_result_t *result, report_json_t *json);

/*
 * Writes how many requests BLIS's gateway refused, by reason, as "refused";
 * writes nothing if there are none, or for our own gateway.
 */
void report_refused(const fleet_result_t *result, report_json_t *json);

#endif /* REPORT_FULL_H */
