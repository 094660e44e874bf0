
/*
 * The blocks of a run: what its replicas counted, and the times of its
 * requests.
 */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/gaps.h"
#include "sim/report/run.h"


#define RUN_ID_BYTES   32


/* A request and its id, for sorting. */
typedef struct {
    const char      *id;
    size_t           i;
} run_id_t;


double
report_itl_us(const work_request_t *request, const fleet_outcome_t *outcome)
{
    uint32_t  n;

    if (request->output_tokens == 0) {
        return 0;
    }

    n = outcome->status == FLEET_LENGTH_CAPPED ? outcome->itl_count
                                               : request->output_tokens;

    return (double) outcome->itl_sum_us / (double) (n > 2 ? n - 1 : 1);
}


static double
run_hit_rate(const model_counters_t *c)
{
    return c->hits + c->misses == 0 ? 0
           : (double) c->hits / (double) (c->hits + c->misses);
}


double
report_hit_rate_by_block(const report_run_t *run)
{
    uint32_t          i;
    uint64_t          hits, all;
    model_counters_t  c;

    hits = 0;
    all = 0;

    for (i = 0; i < run->result->nreplicas; i++) {
        model_replica_counters(run->result->replicas[i].model, &c);
        hits += c.hits;
        all += c.hits + c.misses;
    }

    return all == 0 ? 0 : (double) hits / (double) all;
}


static void
run_add(report_metrics_t *m, const fleet_replica_t *r)
{
    model_counters_t  c;

    model_replica_counters(r->model, &c);

    m->completed += (int64_t) c.completed;
    m->still_queued += r->still_queued;
    m->still_running += r->still_running;
    m->unservable += (int64_t) c.unservable;
    m->timed_out += (int64_t) c.timed_out;
    m->length_capped += (int64_t) c.length_capped;
    m->input_tokens += (int64_t) c.input_tokens;
    m->output_tokens += (int64_t) c.output_tokens;
    m->kv_allocation_failures += (int64_t) c.kv_failures;
    m->preemptions += (int64_t) c.preemptions;
    m->cache_hit_rate += run_hit_rate(&c);

    if (r->ended_us > m->ended_us) {
        m->ended_us = r->ended_us;
    }
}


static void
run_value(report_values_t *values, int64_t us)
{
    values->list[values->n++] = (double) us;
}


/* Collects times; FLEET_NONE: those of all replicas. */
static int
run_times(const report_run_t *run, uint32_t replica, report_metrics_t *m)
{
    size_t                  i, n;
    const fleet_outcome_t  *o;

    n = 0;

    for (i = 0; i < run->result->n; i++) {
        n += replica == FLEET_NONE
             || run->result->outcomes[i].replica == replica;
    }

    m->ttft.list = malloc((n + 1) * sizeof(double));
    m->e2e.list = malloc((n + 1) * sizeof(double));
    m->sched_delay.list = malloc((n + 1) * sizeof(double));

    if (m->ttft.list == NULL || m->e2e.list == NULL
        || m->sched_delay.list == NULL)
    {
        return -1;
    }

    for (i = 0; i < run->result->n; i++) {
        o = &run->result->outcomes[i];

        if (replica != FLEET_NONE && o->replica != replica) {
            continue;
        }

        if (report_has_ttft(o)) {
            run_value(&m->ttft, o->ttft_us);
        }

        if (report_has_e2e(o)) {
            run_value(&m->e2e, o->e2e_us);
        }

        if (o->was_injected && o->sched_delay_us >= 0) {
            run_value(&m->sched_delay, o->sched_delay_us);
        }
    }

    return 0;
}


int
report_instance(const report_run_t *run, uint32_t replica,
    report_metrics_t *m)
{
    char                   *id;
    report_gaps_t           gaps;
    const fleet_replica_t  *r;

    memset(m, 0, sizeof(*m));
    memset(&gaps, 0, sizeof(gaps));

    id = malloc(RUN_ID_BYTES);

    if (id == NULL) {
        return -1;
    }

    snprintf(id, RUN_ID_BYTES, "instance_%u", replica);
    m->id = id;

    r = &run->result->replicas[replica];
    run_add(m, r);
    model_replica_gaps(r->model, report_gap, &gaps);

    if (report_gaps_list(&gaps, &m->gaps, &m->ngaps) != 0) {
        return -1;
    }

    return run_times(run, replica, m);
}


void
report_metrics_done(report_metrics_t *m)
{
    free((void *) m->id);
    free(m->gaps);
    free(m->ttft.list);
    free(m->e2e.list);
    free(m->sched_delay.list);
    free((void *) m->classes);

    memset(m, 0, sizeof(*m));
}


/* --- the cluster's labels and goodput */

report_served_t *
report_run_served(const report_run_t *run, size_t *n)
{
    size_t            i;
    report_served_t  *served, *s;

    served = malloc((run->result->n + 1) * sizeof(*served));

    if (served == NULL) {
        return NULL;
    }

    *n = 0;

    for (i = 0; i < run->result->n; i++) {
        if (run->result->outcomes[i].e2e_us > 0) {
            s = &served[(*n)++];
            s->id = work_at(run->work, i)->id;
            s->arrival_us = work_at(run->work, i)->arrival_us;
            s->e2e_us = run->result->outcomes[i].e2e_us;
        }
    }

    return served;
}


static int
run_labels(const report_run_t *run, report_metrics_t *m)
{
    int               rc;
    size_t            n;
    report_served_t  *served;

    served = report_run_served(run, &n);

    if (served == NULL) {
        return -1;
    }

    rc = report_saturation_run(run->saturation, served, n, m->labels);
    m->detectors = rc > 0 ? run->saturation->detectors : 0;

    free(served);

    return rc < 0 ? -1 : 0;
}


static int
run_id_cmp(const void *a, const void *b)
{
    return strcmp(((const run_id_t *) a)->id, ((const run_id_t *) b)->id);
}


/*
 * Sorts requests by id, since sums of fractions depend on their order, and
 * BLIS's is this one.
 */
static run_id_t *
run_by_id(const report_run_t *run)
{
    size_t     i;
    run_id_t  *ids;

    ids = malloc((run->result->n + 1) * sizeof(*ids));

    if (ids == NULL) {
        return NULL;
    }

    for (i = 0; i < run->result->n; i++) {
        ids[i].id = work_at(run->work, i)->id;
        ids[i].i = i;
    }

    if (run->result->n > 1) {
        qsort(ids, run->result->n, sizeof(*ids), run_id_cmp);
    }

    return ids;
}


static double
run_p99_ms(double *values, size_t n)
{
    report_sort(values, n);

    return report_percentile_ms(values, n, 99);
}


/*
 * Computes the figures of one class from completed requests, in the order of
 * ids.
 */
static void
run_class(const report_run_t *run, const run_id_t *ids,
    const report_target_t *target, double *values, report_class_t *c)
{
    size_t                  k, nttft, ne2e;
    double                  itl_us, ms[REPORT_TIMES], *ttft, *e2e;
    const work_request_t   *r;
    const fleet_outcome_t  *o;

    ttft = values;
    e2e = values + run->result->n;
    nttft = ne2e = 0;
    itl_us = 0;

    for (k = 0; k < run->result->n; k++) {
        r = work_at(run->work, ids[k].i);
        o = &run->result->outcomes[ids[k].i];

        if (!report_has_e2e(o)
            || report_target_find(run->targets, r->slo_class->text) != target)
        {
            continue;
        }

        ms[REPORT_TTFT] = report_has_ttft(o) ? (double) o->ttft_us / 1e3
                                             : NAN;
        ms[REPORT_ITL] = report_itl_us(r, o) / 1e3;
        ms[REPORT_E2E] = (double) o->e2e_us / 1e3;
        report_attain(target, &c->attained, ms);

        itl_us += report_itl_us(r, o);
        e2e[ne2e++] = (double) o->e2e_us;

        if (report_has_ttft(o)) {
            ttft[nttft++] = (double) o->ttft_us;
        }
    }

    c->ttft_p99_ms = run_p99_ms(ttft, nttft);
    c->e2e_p99_ms = run_p99_ms(e2e, ne2e);
    c->itl_mean_ms = ne2e == 0 ? 0 : itl_us / (double) ne2e / 1e3;
}


static void
run_injected(const report_run_t *run, report_class_t *classes)
{
    size_t                  i;
    const report_target_t  *target;

    for (i = 0; i < run->result->n; i++) {
        target = report_target_find(run->targets,
                                    work_at(run->work, i)->slo_class->text);

        if (target != NULL
            && run->result->outcomes[i].status != FLEET_NOT_ARRIVED)
        {
            classes[target - run->targets->list].attained.injected++;
        }
    }
}


static int
run_goodput(const report_run_t *run, report_metrics_t *m)
{
    int              rc;
    size_t           i;
    double          *values;
    run_id_t        *ids;
    report_class_t  *classes;

    rc = -1;
    ids = run_by_id(run);
    values = malloc((2 * run->result->n + 1) * sizeof(double));
    classes = calloc(run->targets->n, sizeof(*classes));
    m->classes = classes;

    if (ids != NULL && values != NULL && classes != NULL) {
        for (i = 0; i < run->targets->n; i++) {
            run_class(run, ids, &run->targets->list[i], values, &classes[i]);
        }

        run_injected(run, classes);
        m->targets = run->targets;
        rc = 0;
    }

    free(values);
    free(ids);

    return rc;
}


/*
 * With pools, a request whose prompt has been computed and whose answer has not
 * begun is in no replica: it counts as running.
 */
static void
run_pools(const report_run_t *run, report_metrics_t *m)
{
    size_t                    i;
    const fleet_split_row_t  *s;

    m->unservable += (int64_t) run->result->dropped_at_decode_kv;

    for (i = 0; i < run->result->nsplits; i++) {
        s = &run->result->splits[i];

        if (s->prefill_complete_us < 0) {
            continue;
        }

        m->completed--;         /* was counted by the replica of its prompt */

        if (s->decode_enqueue_us < 0
            && run->result->outcomes[s->request].status
               != FLEET_DROPPED_AT_DECODE_KV)
        {
            m->still_running++;
        }
    }
}


/*
 * With our own gateway a request may have been at several replicas, so requests
 * are counted, not what replicas counted.
 */
static void
run_streams(const report_run_t *run, report_metrics_t *m)
{
    size_t                  i;
    uint64_t                n[FLEET_STATUSES] = { 0 };
    const fleet_outcome_t  *o;

    m->input_tokens = 0;
    m->output_tokens = 0;

    for (i = 0; i < run->result->n; i++) {
        o = &run->result->outcomes[i];
        n[o->status]++;

        if (o->was_injected) {
            m->input_tokens += work_at(run->work, i)->input_tokens;
        }

        if (report_has_e2e(o)) {
            m->output_tokens += o->output_tokens;
        }
    }

    m->length_capped = (int64_t) n[FLEET_LENGTH_CAPPED];
    m->completed = (int64_t) n[FLEET_COMPLETED] + m->length_capped;
    m->timed_out = (int64_t) n[FLEET_TIMED_OUT];
    m->unservable = (int64_t) n[FLEET_UNSERVABLE];
    m->still_running = (int64_t) n[FLEET_IN_INSTANCE];
    m->still_queued = (int64_t) n[FLEET_IN_GATEWAY];
}


int
report_cluster(const report_run_t *run, report_metrics_t *m)
{
    uint32_t       i;
    report_gaps_t  gaps;

    memset(m, 0, sizeof(*m));
    memset(&gaps, 0, sizeof(gaps));

    m->id = strdup("cluster");
    m->has_hit_rate = 1;

    for (i = 0; i < run->result->nreplicas; i++) {
        run_add(m, &run->result->replicas[i]);
        model_replica_gaps(run->result->replicas[i].model, report_gap, &gaps);
    }

    if (run->result->nreplicas > 0) {
        m->cache_hit_rate /= run->result->nreplicas;
    }

    run_pools(run, m);

    if (run->result->nextras > 0) {
        run_streams(run, m);
    }

    if (report_gaps_list(&gaps, &m->gaps, &m->ngaps) != 0 || m->id == NULL
        || run_times(run, FLEET_NONE, m) != 0
        || (run->targets != NULL && run->targets->n > 0
            && run_goodput(run, m) != 0)
        || (run->saturation != NULL && run_labels(run, m) != 0))
    {
        return -1;
    }

    return 0;
}
