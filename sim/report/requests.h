
/*
 * A run, request by request: BLIS's file of metrics, its list for calibrate,
 * and the table of all outcomes.
 */

#ifndef REPORT_REQUESTS_H
#define REPORT_REQUESTS_H

#include <stdio.h>

#include "sim/report/run.h"


/* Writes the cluster's block with requests[], by arrival.  -1: no memory. */
int report_requests_metrics(const report_run_t *run, report_metrics_t *m,
    FILE *out);

/*
 * Writes [{request_id, ttft_us, e2e_us, ...}] of completed requests, by number;
 * a request whose id is not "request_N" is omitted.  -1: no memory.
 */
int report_requests_results(const report_run_t *run, FILE *out);

/*
 * Writes a line for each request, in order: request_id, status, ttft_us,
 * e2e_us, handled_by, sched_delay_us, gw_delay_us, route_us, end_us, detail.  A
 * time that does not exist, or a delay of 0, is empty.
 */
void report_requests_table(const report_run_t *run, FILE *out);

/* The id of a request without its prefix "request_", if it has that. */
const char *report_request_number(const work_request_t *request);

#endif /* REPORT_REQUESTS_H */
