
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
    uint64_t        *targets;           /* how often chosen, by replica */
    uint32_t         ntargets;
    double           regret_sum;
    double           regret_max;

    FILE            *table;             /* NULL: no table is written */
    FILE            *routings;          /* rows of routings, which follow all
                                           admissions in the table */
    FILE            *log;               /* NULL: no log is written */
} report_decided_t;


/* For replicas below ntargets.  0, or -1: no memory. */
int report_decided_init(report_decided_t *d, uint32_t ntargets);
void report_decided_done(report_decided_t *d);

/* Opens the table; 0, or -1 with errno. */
int report_decided_table(report_decided_t *d, const char *path);

/* The callback of fleet_watch_t; data is the report_decided_t. */
void report_decided(void *data, const fleet_decision_t *decision);

/* Completes the table; 0, or -1 with errno. */
int report_decided_finish(report_decided_t *d);

/* Writes the section "Trace Summary". */
void report_decided_text(const report_decided_t *d, FILE *out);

#endif /* REPORT_DECIDED_H */
