
/*
 * Figures of a run beyond the metrics block.
 */

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/summary.h"


/* A pair is inverted if the earlier one took more than this many times. */
#define SUMMARY_INVERTED  2.0

#define SUMMARY_BLOCKED   2.0       /* multiple of the mean queue */


typedef struct {
    int64_t   arrival_us;
    double    e2e_us;
    uint32_t  group;
} summary_served_t;

typedef struct {
    const char  *first;             /* the id of its round 0 */
    int64_t      arrival_us;        /* of round 0 */
    int64_t      end_us;            /* of the last completed round */
    int          is_seen;
} summary_session_t;


/* --- parts */

static void
summary_part(const report_run_t *run, report_parts_t *parts, size_t offset,
    uint32_t group, double *values)
{
    int             t;
    size_t          n;
    report_part_t   part;

    memset(&part, 0, sizeof(part));
    part.name = parts->groups.names[group];

    for (t = 0; t < REPORT_TIMES; t++) {
        n = report_group_times(run, &parts->groups, offset, group,
                               (report_time_t) t, values);
        report_dist(values, n, &part.times[t]);
    }

    part.completed = part.times[REPORT_E2E].count;

    if (part.completed > 0 || part.times[REPORT_TTFT].count > 0) {
        parts->list[parts->n++] = part;
    }
}


/* Fills in counts only, for parts of which there may be as many as requests. */
static void
summary_count(const report_run_t *run, report_parts_t *parts, size_t offset)
{
    size_t                 i, k;
    uint32_t               group;
    const work_request_t  *r;

    for (i = 0; i < parts->groups.n; i++) {
        parts->list[i].name = parts->groups.names[i];
    }

    for (i = 0; i < run->result->n; i++) {
        r = work_at(run->work, i);
        group = report_group_at(&parts->groups, r, offset);

        if (group != REPORT_NO_GROUP
            && report_has_e2e(&run->result->outcomes[i]))
        {
            parts->list[group].completed++;
            parts->list[group].output_tokens += r->output_tokens;
        }
    }

    for (i = 0, k = 0; i < parts->groups.n; i++) {
        if (parts->list[i].completed > 0) {
            parts->list[k++] = parts->list[i];
        }
    }

    parts->n = k;
}


static int
summary_parts(const report_run_t *run, report_parts_t *parts, size_t offset,
    const char *absent, double *values)
{
    uint32_t  i;

    if (report_groups_init(run, offset, absent, &parts->groups) != 0) {
        return -1;
    }

    parts->list = calloc(parts->groups.n + 1, sizeof(report_part_t));

    if (parts->list == NULL) {
        return -1;
    }

    if (values == NULL) {
        summary_count(run, parts, offset);
        return 0;
    }

    for (i = 0; i < parts->groups.n; i++) {
        summary_part(run, parts, offset, i, values);
    }

    return 0;
}


static void
summary_model_tokens(const report_run_t *run, report_summary_t *s)
{
    size_t                 i, k;
    const work_request_t  *r;

    for (i = 0; i < run->result->n; i++) {
        r = work_at(run->work, i);

        for (k = 0; k < s->models.n; k++) {
            if (report_has_e2e(&run->result->outcomes[i])
                && strcmp(s->models.list[k].name, r->model->text) == 0)
            {
                s->models.list[k].output_tokens += r->output_tokens;
            }
        }
    }
}


static int
summary_jain(report_summary_t *s)
{
    size_t   i;
    double  *tokens;

    tokens = malloc((s->tenants.n + 1) * sizeof(double));

    if (tokens == NULL) {
        return -1;
    }

    for (i = 0; i < s->tenants.n; i++) {
        tokens[i] = (double) s->tenants.list[i].output_tokens;
    }

    s->jain = report_jain(tokens, s->tenants.n);
    free(tokens);

    return 0;
}


/* --- sessions */

/*
 * If there are several rounds 0, that with the greatest id counts, as in BLIS.
 */
static void
summary_round(const work_request_t *r, const fleet_outcome_t *o,
    summary_session_t *session)
{
    session->is_seen = 1;

    if (r->round == 0
        && (session->first == NULL || strcmp(session->first, r->id) < 0))
    {
        session->first = r->id;
        session->arrival_us = r->arrival_us;
    }

    if (report_has_e2e(o) && o->e2e_us + r->arrival_us > session->end_us) {
        session->end_us = o->e2e_us + r->arrival_us;
    }
}


static void
summary_durations(const summary_session_t *sessions, size_t n,
    report_sessions_t *all, double *values)
{
    size_t  i, k;
    double  ms;

    for (i = 0, k = 0; i < n; i++) {
        all->n += (uint64_t) sessions[i].is_seen;

        if (sessions[i].first != NULL) {
            ms = (double) sessions[i].end_us / 1000.0
                 - (double) sessions[i].arrival_us / 1e6 * 1000.0;

            if (ms > 0) {
                values[k++] = ms;
            }
        }
    }

    report_dist(values, k, &all->duration);
}


static size_t
summary_rounds(const report_run_t *run, int warm, double *values)
{
    size_t                  i, n;
    const work_request_t   *r;
    const fleet_outcome_t  *o;

    for (i = 0, n = 0; i < run->result->n; i++) {
        r = work_at(run->work, i);
        o = &run->result->outcomes[i];

        if (r->session->len > 0 && (r->round > 0) == warm
            && report_has_ttft(o))
        {
            values[n++] = (double) o->ttft_us / 1000.0;
        }
    }

    return n;
}


static int
summary_sessions(const report_run_t *run, report_sessions_t *all,
    double *values)
{
    size_t                  i;
    report_groups_t         groups;
    summary_session_t      *sessions;
    const work_request_t   *r;
    const fleet_outcome_t  *o;

    sessions = NULL;

    if (report_groups_init(run, offsetof(work_request_t, session), NULL,
                           &groups) == 0)
    {
        sessions = calloc(groups.n + 1, sizeof(*sessions));
    }

    if (sessions == NULL) {
        report_groups_done(&groups);
        return -1;
    }

    for (i = 0; i < run->result->n; i++) {
        r = work_at(run->work, i);
        o = &run->result->outcomes[i];

        if (r->session->len > 0 && o->was_injected) {
            summary_round(r, o, &sessions[report_group_of(&groups,
                                                          r->session)]);
        }
    }

    summary_durations(sessions, groups.n, all, values);
    report_dist(values, summary_rounds(run, 0, values), &all->cold);
    report_dist(values, summary_rounds(run, 1, values), &all->warm);

    free(sessions);
    report_groups_done(&groups);

    return 0;
}


/* --- pools */

static void
summary_pool_rates(const report_run_t *run, report_summary_t *s)
{
    double                  seconds, most, least;
    uint32_t                i;
    uint64_t                prefills, decodes;
    model_counters_t        c;
    const fleet_replica_t  *r;

    prefills = decodes = 0;
    seconds = (double) s->cluster.ended_us / 1e6;

    for (i = 0; i < run->result->nreplicas; i++) {
        r = &run->result->replicas[i];
        model_replica_counters(r->model, &c);
        prefills += r->prefills ? c.completed : 0;
        decodes += r->decodes ? c.completed : 0;
    }

    if (seconds > 0) {
        s->pools.prefill_rps = (double) prefills / seconds;
        s->pools.decode_rps = (double) decodes / seconds;
    }

    most = fmax(s->pools.prefill_rps, s->pools.decode_rps);
    least = fmin(s->pools.prefill_rps, s->pools.decode_rps);
    s->pools.imbalance = most == 0 ? 1 : least <= 0 ? INFINITY
                                                     : most / least;
}


static void
summary_pools(const report_run_t *run, report_summary_t *s, double *values)
{
    size_t                    i, n;
    report_pools_t           *p;
    const fleet_outcome_t    *o;
    const fleet_split_row_t  *row;

    p = &s->pools;
    p->split = run->result->nsplits;
    p->dropped = run->result->dropped_at_decode_kv;
    p->mean_transfers = run->result->transfers == 0 ? 0
                        : (double) run->result->transfers_depth
                          / (double) run->result->transfers;

    for (i = 0, n = 0; i < p->split; i++) {
        row = &run->result->splits[i];
        o = &run->result->outcomes[row->request];
        p->transferred += row->transfer_complete_us > 0;

        if (report_has_ttft(o) && o->ttft_us > 0) {
            values[n++] = (double) o->ttft_us;
        }
    }

    report_dist(values, n, &p->ttft);

    for (i = 0, n = 0; i < p->split; i++) {
        row = &run->result->splits[i];

        if (row->transfer_start_us > 0
            && row->transfer_complete_us >= row->transfer_start_us)
        {
            values[n++] = (double) (row->transfer_complete_us
                                    - row->transfer_start_us);
        }
    }

    report_dist(values, n, &p->transfer);
    summary_pool_rates(run, s);
}


/* --- what looks wrong */

static int
summary_served_cmp(const void *a, const void *b)
{
    const summary_served_t  *x, *y;

    x = a;
    y = b;

    if (x->group != y->group) {
        return x->group < y->group ? -1 : 1;
    }

    return (x->arrival_us > y->arrival_us) - (x->arrival_us < y->arrival_us);
}


/* values must have room for 2 n items. */
static uint64_t
summary_inverted(const summary_served_t *served, size_t n, double *values)
{
    size_t    i, k;
    uint64_t  count;

    count = 0;

    for (i = 0; i < n; i += k) {
        for (k = 0; i + k < n && served[i + k].group == served[i].group; k++) {
            values[k] = served[i + k].e2e_us;
        }

        count += report_inversions(values, values + k, k, SUMMARY_INVERTED);
    }

    return count;
}


/*
 * Counts pairs at one replica and of one class.  Only a scheduler by priority
 * keeps their order.
 */
static int
summary_inversions(const report_run_t *run, report_summary_t *s)
{
    size_t             i, n;
    double            *values;
    uint32_t           classes;
    summary_served_t  *served;

    if (run->config->model.scheduler != MODEL_PRIORITY_FCFS) {
        return 0;
    }

    served = malloc((run->result->n + 1) * sizeof(*served));
    values = malloc((run->result->n + 1) * 2 * sizeof(double));

    if (served == NULL || values == NULL) {
        free(served);
        free(values);
        return -1;
    }

    classes = (uint32_t) s->classes.groups.n;

    for (i = 0, n = 0; i < run->result->n; i++) {
        if (report_has_e2e(&run->result->outcomes[i])) {
            served[n].arrival_us = work_at(run->work, i)->arrival_us;
            served[n].e2e_us = (double) run->result->outcomes[i].e2e_us;
            served[n++].group = run->result->outcomes[i].replica * classes
                + report_group_of(&s->classes.groups,
                                  work_at(run->work, i)->slo_class);
        }
    }

    qsort(served, n, sizeof(*served), summary_served_cmp);
    s->inversions = summary_inverted(served, n, values);
    free(served);
    free(values);

    return 0;
}


static double
summary_queue(const fleet_replica_t *r)
{
    model_counters_t  c;

    model_replica_counters(r->model, &c);

    return c.steps == 0 ? 0 : (double) c.queue_sum / (double) c.steps;
}


static void
summary_blocked(const report_run_t *run, report_summary_t *s)
{
    double    mean;
    uint32_t  i, n;

    n = run->result->nreplicas;
    mean = 0;

    for (i = 0; i < n; i++) {
        mean += summary_queue(&run->result->replicas[i]);
    }

    mean /= n;

    for (i = 0; n > 1 && mean > 0 && i < n; i++) {
        s->blocked += summary_queue(&run->result->replicas[i])
                      > SUMMARY_BLOCKED * mean;
    }
}


/*
 * A request without a class counts as "standard" here, also if no request has
 * that class.
 */
static int
summary_shed(const report_run_t *run, report_summary_t *s)
{
    size_t            i;
    uint32_t          group;
    report_groups_t   groups;

    if (report_groups_init(run, offsetof(work_request_t, slo_class),
                           "standard", &groups) != 0)
    {
        return -1;
    }

    s->shed = calloc(groups.n + 1, sizeof(*s->shed));

    if (s->shed == NULL) {
        report_groups_done(&groups);
        return -1;
    }

    s->nshed = groups.n;

    for (i = 0; i < groups.n; i++) {
        s->shed[i].name = groups.names[i];
    }

    for (i = 0; i < run->result->nclasses; i++) {
        group = i < run->work->names.n ? groups.of_name[i] : REPORT_NO_GROUP;
        group = group != REPORT_NO_GROUP ? group : groups.of_name[0];

        if (group != REPORT_NO_GROUP) {
            s->shed[group].n += run->result->classes[i].shed;
        }
    }

    report_groups_done(&groups);

    return 0;
}


int
report_summary_init(report_summary_t *s, const report_run_t *run)
{
    int      rc;
    double  *values;

    memset(s, 0, sizeof(*s));

    if (report_cluster(run, &s->cluster) != 0) {
        return -1;
    }

    values = malloc((run->result->n + 1) * sizeof(double));
    rc = -1;

    if (values != NULL
        && summary_parts(run, &s->classes, offsetof(work_request_t,
                                                    slo_class),
                         "default", values) == 0
        && summary_parts(run, &s->models, offsetof(work_request_t, model),
                         NULL, values) == 0
        && summary_parts(run, &s->tenants, offsetof(work_request_t, tenant),
                         NULL, NULL) == 0
        && summary_jain(s) == 0
        && summary_sessions(run, &s->sessions, values) == 0
        && summary_inversions(run, s) == 0
        && summary_shed(run, s) == 0)
    {
        summary_model_tokens(run, s);
        summary_pools(run, s, values);
        summary_blocked(run, s);
        report_dist(s->cluster.ttft.list, s->cluster.ttft.n, &s->ttft);
        report_dist(s->cluster.e2e.list, s->cluster.e2e.n, &s->e2e);

        s->hit_rate_by_block = report_hit_rate_by_block(run);
        s->preemption_rate = s->cluster.completed == 0 ? 0
            : (double) s->cluster.preemptions
              / (double) s->cluster.completed;
        rc = 0;
    }

    free(values);

    return rc;
}


static void
summary_parts_done(report_parts_t *parts)
{
    free(parts->list);
    report_groups_done(&parts->groups);
}


void
report_summary_done(report_summary_t *s)
{
    summary_parts_done(&s->classes);
    summary_parts_done(&s->models);
    summary_parts_done(&s->tenants);
    free(s->shed);
    report_metrics_done(&s->cluster);
}
