
/*
 * A finished run, as reports see it.
 */

#ifndef REPORT_RUN_H
#define REPORT_RUN_H

#include "sim/fleet/config.h"
#include "sim/fleet/result.h"
#include "sim/report/metrics.h"
#include "sim/work/request.h"


typedef struct {
    const fleet_config_t       *config;
    const work_t               *work;
    const fleet_result_t       *result;
    const report_targets_t     *targets;        /* NULL: no goodput */
    const report_saturation_t  *saturation;     /* NULL: no labels */
} report_run_t;


/* --- of one request */

static inline int
report_has_ttft(const fleet_outcome_t *o)
{
    return o->ttft_us >= 0 && o->was_injected;
}


/* Whether the request completed. */
static inline int
report_has_e2e(const fleet_outcome_t *o)
{
    return o->e2e_us >= 0;
}


/* The mean gap between the tokens of a completed request. */
double report_itl_us(const work_request_t *request,
    const fleet_outcome_t *outcome);

/* --- of the run */

/*
 * Compute the metrics blocks; 0, or -1: no memory.  The block of an instance
 * has no goodput.
 */
int report_cluster(const report_run_t *run, report_metrics_t *m);
int report_instance(const report_run_t *run, uint32_t replica,
    report_metrics_t *m);
void report_metrics_done(report_metrics_t *m);

/*
 * The input of saturation detectors, to be freed by the caller; NULL: no
 * memory.
 */
report_served_t *report_run_served(const report_run_t *run, size_t *n);

/* The hit rate over all blocks; BLIS's is the mean of the replicas' rates. */
double report_hit_rate_by_block(const report_run_t *run);

#endif /* REPORT_RUN_H */
