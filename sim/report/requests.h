
/*
 * A run, request by request: BLIS's file of metrics, its list for calibrate,
 * and the table of what became of each.
 */

#ifndef REPORT_REQUESTS_H
#define REPORT_REQUESTS_H

#include <stdio.h>

#include "sim/report/run.h"


/* The cluster's block with requests[], by arrival; -1 without memory. */
int report_requests_metrics(const report_run_t *run, report_metrics_t *m,
    FILE *out);

/*
 * [{request_id, ttft_us, e2e_us, ...}] of those that completed, by number;
 * requests whose id is no "request_N" are left out.  -1 without memory.
 */
int report_requests_results(const report_run_t *run, FILE *out);

/*
 * A line for each request, in their order: request_id, status, ttft_us,
 * e2e_us, handled_by, sched_delay_us, gw_delay_us, route_us, end_us, detail.
 * A time that never came, and a delay of 0, is empty.
 */
void report_requests_table(const report_run_t *run, FILE *out);

/* "request_12" without "request_". */
const char *report_request_number(const work_request_t *request);

#endif /* REPORT_REQUESTS_H */
