
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/gateway/gateway.h"
#include "sim/simulate.h"


#define SIM_PATH  4096

typedef struct {
    report_options_t  of;
} sim_job_report_t;


int
sim_refuse(const char *text)
{
    fprintf(stderr, "llmgw-sim: %s\n", text);

    return 2;
}


/* --- the trace of a run */

static int
sim_compare_arrivals(const void *a, const void *b, void *data)
{
    work_t         *work = data;
    const uint32_t *i = a, *k = b;
    int64_t         s = work_at(work, *i)->arrival_us;
    int64_t         t = work_at(work, *k)->arrival_us;

    return s != t ? (s > t) - (s < t) : (*i > *k) - (*i < *k);
}


/*
 * The requests of the trace in their order; *n is their number.  NULL: no
 * memory.
 */
static uint32_t *
sim_traced(const sim_job_t *job, const fleet_result_t *result, size_t *n)
{
    size_t     i;
    uint32_t  *order;

    order = malloc((result->n > 0 ? result->n : 1) * sizeof(uint32_t));

    if (order == NULL) {
        return NULL;
    }

    for (i = 0, *n = 0; i < result->n; i++) {

        if (!job->only_arrived
            || result->outcomes[i].status != FLEET_NOT_ARRIVED)
        {
            order[(*n)++] = (uint32_t) i;
        }
    }

    if (job->only_arrived) {
        qsort_r(order, *n, sizeof(uint32_t), sim_compare_arrivals, job->work);
    }

    return order;
}


static void
sim_trace_request(work_trace_t *trace, const work_request_t *w,
    const fleet_outcome_t *outcome)
{
    int64_t      first, last;
    const char  *status;

    status = outcome->status == FLEET_COMPLETED
             || outcome->status == FLEET_LENGTH_CAPPED ? "ok"
             : outcome->status == FLEET_TIMED_OUT ? "timeout"
             : "incomplete";
    first = last = 0;

    if (outcome->ttft_us != FLEET_NEVER) {
        first = w->arrival_us + outcome->ttft_us;
        last = first + outcome->itl_sum_us;
    }

    work_trace_add_request(trace, w, status, first, last);
}


static int
sim_write_trace(const sim_job_t *job, const fleet_result_t *result)
{
    int            rc;
    char           header[SIM_PATH], data[SIM_PATH];
    size_t         i, n;
    uint32_t      *order;
    work_error_t   error;
    work_trace_t   trace;

    order = sim_traced(job, result, &n);

    if (order == NULL) {
        return sim_refuse("no memory");
    }

    work_trace_init(&trace);
    trace.header.mode = job->trace_mode;
    trace.header.workload_seed = job->seed;
    trace.header.has_seed = job->only_arrived;
    trace.header.session_context_growth =
        job->work->accumulates ? "accumulate" : NULL;

    for (i = 0; i < n; i++) {
        sim_trace_request(&trace, work_at(job->work, order[i]),
                          &result->outcomes[order[i]]);
    }

    snprintf(header, sizeof(header), "%s.yaml", job->trace_output);
    snprintf(data, sizeof(data), "%s.csv", job->trace_output);
    rc = work_trace_write(&trace, header, data, &error) == 0
         ? 0 : sim_refuse(error.text);
    work_trace_done(&trace);
    free(order);

    return rc;
}


/* --- the run */

static const option_t  sim_decision_table[] = {
    REPORT_DECISION_OPTIONS(sim_job_report_t, of),
    { .name = NULL }
};


/* Refuses decisions with our own gateway, which does not record them. */
static int
sim_records_nothing(const sim_job_t *job, char error[REPORT_ERROR_BYTES])
{
    const char        *name;
    sim_job_report_t   given, unset;

    if (job->settings->gateway == NULL) {
        return 0;
    }

    given.of = *job->report;
    memset(&unset, 0, sizeof(unset));
    name = sim_given(sim_decision_table, &given, &unset);

    if (name != NULL) {
        snprintf(error, REPORT_ERROR_BYTES, "--%s: decisions are not recorded "
                 "with --gateway", name);
    }

    return name != NULL;
}


static int
sim_run(const sim_job_t *job, fleet_config_t *config, report_t *report)
{
    int             rc;
    char            error[REPORT_ERROR_BYTES];
    fleet_result_t  result;

    memset(&result, 0, sizeof(result));
    rc = 0;

    switch (gateway_serve(job->settings->gateway, config, job->work,
                          &report->watch, &result, error, sizeof(error)))
    {

    case 0:
        break;

    case FLEET_BROKEN:
        (void) sim_refuse(error);
        rc = 1;
        break;

    default:
        rc = sim_refuse(error);
    }

    if (rc == 0 && report_end(report, config, job->work, &result, error) != 0)
    {
        rc = sim_refuse(error);
    }

    if (rc == 0 && job->trace_output != NULL) {
        rc = sim_write_trace(job, &result);
    }

    fleet_result_done(&result);

    return rc;
}


int
sim_simulate(const sim_job_t *job)
{
    int         rc;
    char        error[REPORT_ERROR_BYTES];
    report_t    report;
    sim_plan_t  plan;

    if (sim_plan_make(&plan, job->settings) != 0) {
        rc = sim_refuse(plan.error);
        sim_plan_done(&plan);
        return rc;
    }

    if (job->settings->horizon_us == SIM_UNSET) {
        plan.fleet.horizon_us = job->horizon_us;
    }

    memset(&report, 0, sizeof(report));

    if (sim_records_nothing(job, error)
        || report_init(&report, job->report, job->slos, error) != 0
        || report_begin(&report, &plan.fleet, job->work, error) != 0)
    {
        rc = sim_refuse(error);

    } else {
        rc = sim_run(job, &plan.fleet, &report);
    }

    report_done(&report);
    sim_plan_done(&plan);

    return rc;
}
