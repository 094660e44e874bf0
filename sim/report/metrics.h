
/*
 * The metrics block: BLIS's figures of an instance or of the whole cluster,
 * with its keys, in its order.
 */

#ifndef REPORT_METRICS_H
#define REPORT_METRICS_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "sim/report/figure/goodput.h"
#include "sim/report/figure/json.h"
#include "sim/report/figure/saturation.h"
#include "sim/report/figure/stat.h"


/* Microseconds, in any order; writing a block sorts them. */
typedef struct {
    double                 *list;
    size_t                  n;
} report_values_t;

/* A class's figures, with its attainment; 0: no such figure. */
typedef struct {
    report_attained_t       attained;
    double                  ttft_p99_ms;
    double                  itl_mean_ms;
    double                  e2e_p99_ms;
} report_class_t;

/* In milliseconds. */
typedef struct {
    double                  mean;
    double                  p90;
    double                  p95;
    double                  p99;
} report_tail_t;

typedef struct {
    int64_t                 injected;
    double                  seconds;
    double                  responses_per_s;
    double                  tokens_per_s;
    report_tail_t           e2e;
    report_tail_t           ttft;
    report_tail_t           itl;
    double                  sched_delay_p99_ms;
} report_made_t;

typedef struct {
    const char             *id;         /* "instance_3", "cluster" */

    int64_t                 completed;
    int64_t                 still_queued;
    int64_t                 still_running;
    int64_t                 unservable;
    int64_t                 timed_out;
    int64_t                 length_capped;
    int64_t                 input_tokens;
    int64_t                 output_tokens;
    int64_t                 ended_us;
    int64_t                 kv_allocation_failures;
    int64_t                 preemptions;
    double                  cache_hit_rate;
    int                     has_hit_rate;

    report_values_t         ttft;
    report_values_t         e2e;
    report_values_t         sched_delay;
    report_count_t         *gaps;       /* between tokens; ascending */
    size_t                  ngaps;

    report_made_t           made;       /* computed from the fields above when
                                           the block is written */

    /* Only in the cluster's block. */
    unsigned                detectors;
    report_level_t          labels[REPORT_DETECTORS];
    const report_targets_t *targets;    /* NULL: the block has no goodput */
    const report_class_t   *classes;    /* one for each target */
} report_metrics_t;

/*
 * Writes the members of a block into the JSON object that is open.  `requests`,
 * if not NULL, is called at the place where a block lists its requests.
 */
void report_metrics_json(report_metrics_t *m, report_json_t *json,
    void (*requests)(report_json_t *json, void *data), void *data);

/*
 * CSV: the first function writes the heading, the second a line for each block.
 * All blocks must be of one run.
 */
void report_metrics_csv_head(FILE *out);
void report_metrics_csv(report_metrics_t *m, FILE *out);

#endif /* REPORT_METRICS_H */
