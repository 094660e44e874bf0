
/*
 * A run as one JSON document: the metrics block, and all that BLIS prints as
 * text or not at all.
 */

#ifndef REPORT_FULL_H
#define REPORT_FULL_H

#include <stdio.h>

#include "sim/report/decided.h"
#include "sim/report/fitness.h"
#include "sim/report/summary.h"


/* decided: NULL, no decisions were counted.  0, or -1 without memory. */
int report_full(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out);

/* Further counters of a run through our own gateway: an object "gateway". */
void report_extras(const fleet_result_t *result, report_json_t *json);

/* Requests that a gateway as BLIS's refused: "refused", or nothing. */
void report_refused(const fleet_result_t *result, report_json_t *json);

#endif /* REPORT_FULL_H */
