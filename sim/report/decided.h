
/*
 * The decisions of a run: counted for the trace summary, and written down as
 * they come, as a table (BLIS's side file) and as the decision log that
 * `llmgw-sim explain` reads (docs/decisions.md).
 */

#ifndef REPORT_DECIDED_H
#define REPORT_DECIDED_H

#include <stdio.h>

#include "sim/fleet/fleet.h"


typedef struct {
    uint64_t         admitted;
    uint64_t         rejected;
    uint64_t         routed;
    uint64_t        *targets;           /* by replica */
    uint32_t         ntargets;
    double           regret_sum;
    double           regret_max;

    FILE            *table;             /* NULL: not wanted */
    FILE            *routings;          /* they follow all admissions */
    FILE            *log;               /* NULL: not wanted */
} report_decided_t;


/* For replicas below ntargets; 0, or -1 without memory. */
int report_decided_init(report_decided_t *d, uint32_t ntargets);
void report_decided_done(report_decided_t *d);

/* Opens the table; 0, or -1 with errno. */
int report_decided_table(report_decided_t *d, const char *path);

/* data: the report_decided_t; the callback of fleet_watch_t. */
void report_decided(void *data, const fleet_decision_t *decision);

/* Completes the table; 0, or -1 with errno. */
int report_decided_finish(report_decided_t *d);

/* The section "Trace Summary". */
void report_decided_text(const report_decided_t *d, FILE *out);

#endif /* REPORT_DECIDED_H */
