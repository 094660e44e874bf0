
/*
 * Figures of a run that are not in the metrics block: by class, tenant, model
 * and session, of pools, and anomalies.  They are computed once, then printed
 * as text (text.h) and JSON (full.h).
 */

#ifndef REPORT_SUMMARY_H
#define REPORT_SUMMARY_H

#include "sim/report/group.h"
#include "sim/report/run.h"


/* Requests of a class or a model; dists in microseconds. */
typedef struct {
    const char         *name;
    report_dist_t       times[REPORT_TIMES];
    uint64_t            completed;
    uint64_t            output_tokens;      /* of completed requests */
} report_part_t;

typedef struct {
    report_part_t      *list;               /* parts with at least one completed
                                               request */
    size_t              n;
    report_groups_t     groups;
} report_parts_t;

/* In milliseconds. */
typedef struct {
    uint64_t            n;                  /* if 0, the rest is not set */
    report_dist_t       cold;               /* first token of round 0 */
    report_dist_t       warm;               /* first tokens of later rounds */
    report_dist_t       duration;
} report_sessions_t;

typedef struct {
    uint64_t            split;              /* if 0, the rest is not set */
    uint64_t            transferred;
    uint64_t            dropped;
    double              prefill_rps;
    double              decode_rps;
    double              imbalance;          /* infinite: one pool is idle */
    report_dist_t       ttft;               /* us */
    report_dist_t       transfer;           /* us */
    double              mean_transfers;     /* mean number at one time */
} report_pools_t;

typedef struct {
    const char         *name;
    uint64_t            n;
} report_shed_t;

typedef struct {
    report_metrics_t    cluster;

    report_parts_t      classes;
    report_parts_t      models;
    report_parts_t      tenants;
    double              jain;               /* of the tenants' tokens */
    report_sessions_t   sessions;
    report_pools_t      pools;
    report_shed_t      *shed;               /* by class */
    size_t              nshed;

    report_dist_t       ttft;               /* us */
    report_dist_t       e2e;
    uint64_t            inversions;         /* of priority: see summary.c */
    uint64_t            blocked;            /* replicas whose mean queue is over
                                               twice the fleet's */
    double              preemption_rate;
    double              hit_rate_by_block;
} report_summary_t;


/* A counter of what went wrong. */
typedef struct {
    const char         *key;                /* in JSON; NULL: it is in the
                                               metrics block */
    const char         *label;              /* in text, as BLIS prints it */
    int                 unless_zero;        /* text omits it if it is 0 */
    uint64_t            count;
} report_anomaly_t;

#define REPORT_ANOMALIES  12

/*
 * Fills list with all anomalies, in the order of BLIS's text; returns their
 * sum.
 */
uint64_t report_anomalies(const report_summary_t *s, const fleet_result_t *r,
    report_anomaly_t list[REPORT_ANOMALIES]);

/*
 * Computes the figures.  0, or -1: no memory; call report_summary_done() in
 * both cases.
 */
int report_summary_init(report_summary_t *s, const report_run_t *run);
void report_summary_done(report_summary_t *s);

#endif /* REPORT_SUMMARY_H */
