
/*
 * Sets a run up, walks from event to event, and tells what is left.
 *
 * Requests that the workload has from the beginning are a sorted array, not
 * events in the heap; they keep the places that they would have there.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/fleet_inner.h"


#define FLEET_PROGRESS_EVENTS  (1 << 16)
#define FLEET_STUCK_STEPS      1000     /* of ticks that may still find room */


void
fleet_fail(fleet_t *f, const char *what)
{
    if (!f->failed) {
        f->failed = -1;
        snprintf(f->error, f->error_bytes, "%s", what);
    }
}


void *
fleet_alloc(fleet_t *f, size_t n, size_t size)
{
    void  *p;

    p = calloc(n > 0 ? n : 1, size);

    if (p == NULL) {
        fleet_fail(f, "no memory");
    }

    return p;
}


void
fleet_schedule(fleet_t *f, int64_t at_us, agenda_kind_t kind,
    uint32_t subject, uint32_t detail)
{
    if (agenda_add(&f->agenda, at_us, kind, subject, detail) != 0) {
        fleet_fail(f, "no memory");
    }
}


void
fleet_replica_changed(fleet_t *f, uint32_t replica)
{
    int64_t  next;

    next = model_replica_next(f->memory->nodes[replica].model);
    ready_set(&f->ready, replica, next);
    view_update(f, replica);
}


/* --- the beginning */

static int
fleet_init_models(fleet_t *f)
{
    const fleet_pools_t  *pools = &f->config->pools;
    fleet_memory_t       *m = f->memory;
    size_t                i;

    m->models[0] = f->config->model;
    m->models[1] = pools->prefill_model != NULL ? *pools->prefill_model
                                                : f->config->model;
    m->models[2] = pools->decode_model != NULL ? *pools->decode_model
                                               : f->config->model;

    for (i = 0; i < 3; i++) {
        m->models[i].horizon_us = f->config->horizon_us;

        if (f->config->routing.cache_us > 0 && route_reads_cache(f->config)) {
            m->models[i].view = &m->view;
        }
    }

    return 0;
}


/* A replica of both pools computes answers, too, and is set up for that. */
static const model_config_t *
fleet_model_of(fleet_t *f, uint32_t replica)
{
    if (!fleet_has_pools(f->config) || f->roles[replica] == 0) {
        return &f->memory->models[0];
    }

    return f->roles[replica] & FLEET_DECODES ? &f->memory->models[2]
                                             : &f->memory->models[1];
}


static int
fleet_init_replicas(fleet_t *f)
{
    uint32_t              i, n;
    fleet_node_t         *node;
    fleet_result_t       *result = f->result;
    const model_hooks_t  *hooks;

    n = f->config->replicas;
    hooks = fleet_has_pools(f->config) ? &fleet_split_hooks : &fleet_hooks;
    result->replicas = fleet_alloc(f, n, sizeof(fleet_replica_t));
    f->memory->nodes = fleet_alloc(f, n, sizeof(fleet_node_t));

    if (f->failed || ready_init(&f->ready, n) != 0) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        node = &f->memory->nodes[i];
        result->replicas[i].config = fleet_model_of(f, i);
        result->replicas[i].prefills = f->roles[i] & FLEET_PREFILLS;
        result->replicas[i].decodes = (f->roles[i] & FLEET_DECODES) != 0;
        node->fleet = f;
        node->index = i;
        node->model = model_replica_create(fleet_model_of(f, i), hooks, node);

        if (node->model == NULL) {
            return -1;
        }

        result->replicas[i].model = node->model;
        result->nreplicas = i + 1;
        fleet_replica_changed(f, i);
    }

    return 0;
}


static int
fleet_compare_arrivals(const void *a, const void *b, void *data)
{
    work_t         *work = data;
    uint32_t        i = *(const uint32_t *) a, k = *(const uint32_t *) b;
    int64_t         s, t;

    s = work_at(work, i)->arrival_us;
    t = work_at(work, k)->arrival_us;

    return s != t ? (s > t) - (s < t) : (i > k) - (i < k);
}


static int
fleet_init_arrivals(fleet_t *f)
{
    size_t    i;
    uint32_t  sorted;

    f->narrivals = f->work->n;
    f->agenda.serial = f->narrivals;
    f->arrivals = fleet_alloc(f, f->narrivals, sizeof(uint32_t));

    if (f->arrivals == NULL) {
        return -1;
    }

    for (i = 0, sorted = 1; i < f->narrivals; i++) {
        f->arrivals[i] = (uint32_t) i;
        sorted &= i == 0 || work_at(f->work, i - 1)->arrival_us
                            <= work_at(f->work, i)->arrival_us;
    }

    if (!sorted) {
        qsort_r(f->arrivals, f->narrivals, sizeof(uint32_t),
                fleet_compare_arrivals, f->work);
    }

    return 0;
}


static int
fleet_init(fleet_t *f)
{
    if (fleet_grow(f) != 0 || fleet_init_models(f) != 0 || view_init(f) != 0
        || fleet_init_replicas(f) != 0 || fleet_init_arrivals(f) != 0
        || admit_init(f) != 0 || queue_init(f) != 0 || route_init(f) != 0
        || record_init(f) != 0)
    {
        fleet_fail(f, "no memory");
        return -1;
    }

    return 0;
}


/* --- the loop */

/* The gateway's next event: of those known from the beginning, or new. */
static int
fleet_next(fleet_t *f, agenda_event_t *event)
{
    uint32_t               i;
    const agenda_event_t  *next;

    next = agenda_next(&f->agenda);

    if (f->next_arrival < f->narrivals) {
        i = f->arrivals[f->next_arrival];
        *event = (agenda_event_t) {
            .at_us = work_at(f->work, i)->arrival_us,
            .order = i,
            .subject = i,
            .kind = AGENDA_ARRIVAL
        };

        if (next == NULL || event->at_us < next->at_us
            || (event->at_us == next->at_us && event->order < next->order))
        {
            return 1;
        }
    }

    if (next == NULL) {
        return 0;
    }

    *event = *next;

    return 1;
}


static void
fleet_take(fleet_t *f, const agenda_event_t *event)
{
    if (event->kind == AGENDA_ARRIVAL && event->order < f->narrivals) {
        f->next_arrival++;

    } else {
        agenda_drop(&f->agenda);
    }
}


static void
fleet_do(fleet_t *f, const agenda_event_t *event)
{
    switch (event->kind) {

    case AGENDA_ARRIVAL:
        admit_arrive(f, event->subject);
        return;

    case AGENDA_ADMISSION:
        admit_decide(f, event->subject);
        return;

    case AGENDA_ROUTING:
        route_decide(f, event->subject);
        return;

    case AGENDA_PREFILL:
        split_prefill(f, event->subject);
        return;

    case AGENDA_TRANSFER_START:
        split_transfer_start(f, event->subject);
        return;

    case AGENDA_EVICTION:
        queue_evict(f, event->subject, event->detail);
        return;

    case AGENDA_TRANSFER_END:
        split_transfer_end(f, event->subject);
        return;

    case AGENDA_TTL:
        queue_expire(f, event->subject);
        return;

    case AGENDA_TICK:
        queue_tick(f);
        return;
    }
}


/*
 * Will nothing happen any more but the steps of replicas that are stuck?  The
 * gateway's queue may still tick, and finds no room, in whatever phase the
 * ticks have met the steps.
 */
static int
fleet_is_stuck(const fleet_t *f)
{
    uint32_t                i;
    const model_replica_t  *model;

    if (f->next_arrival < f->narrivals || f->agenda.n > (size_t) f->has_tick) {
        return 0;
    }

    for (i = 0; i < f->config->replicas; i++) {
        model = f->memory->nodes[i].model;

        if (model_replica_next(model) != MODEL_NEVER
            && model_replica_stuck(model) == 0)
        {
            return 0;
        }
    }

    return 1;
}


/* A horizon ends the run; without one nothing would. */
static void
fleet_look_stuck(fleet_t *f, uint32_t replica)
{
    char              what[256];
    uint64_t          stuck;
    model_facts_t     facts;
    model_replica_t  *model = f->memory->nodes[replica].model;

    stuck = model_replica_stuck(model);

    if (stuck == 0 || stuck % FLEET_STUCK_STEPS != 0
        || f->config->horizon_us != INT64_MAX || !fleet_is_stuck(f))
    {
        return;
    }

    model_replica_facts(model, &facts);
    snprintf(what, sizeof(what), "%s is stuck at %lld us: requests that wait "
             "there (%u) are preempted for ever, %u of its %u KV blocks are "
             "free; raise --total-kv-blocks, or set a --horizon or timeouts "
             "of requests", fleet_name(f, replica), (long long) f->clock_us,
             facts.queue_depth, facts.free_blocks, facts.total_blocks);
    fleet_fail(f, what);
}


static void
fleet_step(fleet_t *f, uint32_t replica)
{
    size_t  ended;

    ended = f->ended;

    if (model_replica_step(f->memory->nodes[replica].model) != 0) {
        fleet_fail(f, "no memory");
    }

    fleet_look_stuck(f, replica);
    fleet_replica_changed(f, replica);

    if (f->nfinished > 0) {
        split_settle(f);
    }

    queue_completed(f, f->ended - ended);

    if (f->config->checks) {
        check_replica(f, replica);
    }
}


/* Does the next event; 0: there is none before the horizon's end. */
static int
fleet_turn(fleet_t *f)
{
    int             has_event;
    int64_t         at_us;
    agenda_event_t  event;

    has_event = fleet_next(f, &event);
    at_us = ready_time(&f->ready);

    if (has_event && event.at_us <= at_us) {

        if (event.at_us > f->config->horizon_us) {
            return 0;
        }

        if (f->config->checks) {
            check_clock(f, event.at_us);
        }

        f->clock_us = event.at_us;
        fleet_take(f, &event);
        fleet_do(f, &event);

    } else {

        if (at_us == MODEL_NEVER || at_us > f->config->horizon_us) {
            return 0;
        }

        if (f->config->checks) {
            check_clock(f, at_us);
        }

        f->clock_us = at_us;
        fleet_step(f, ready_first(&f->ready));
    }

    f->result->events++;

    return 1;
}


static void
fleet_loop(fleet_t *f)
{
    const fleet_watch_t  *watch = f->watch;

    while (!f->failed && fleet_turn(f)) {

        if (watch != NULL && watch->progress != NULL
            && f->result->events % FLEET_PROGRESS_EVENTS == 0)
        {
            watch->progress(watch->data, f->clock_us, f->ended);
        }
    }

    f->result->clock_us = f->clock_us;
}


/* --- the end */

static void
fleet_finish_replicas(fleet_t *f)
{
    uint32_t          i;
    model_facts_t     facts;
    fleet_replica_t  *replica;

    for (i = 0; i < f->result->nreplicas; i++) {
        replica = &f->result->replicas[i];
        model_replica_facts(replica->model, &facts);
        replica->ended_us = model_replica_ended(replica->model);
        replica->still_queued = facts.queue_depth;
        replica->still_running = facts.batch_size;
        replica->in_flight = (uint32_t) f->seen[i].in_flight;
    }
}


/* What replicas still hold has been measured as far as it came. */
static void
fleet_finish_requests(fleet_t *f)
{
    size_t            i;
    fleet_outcome_t  *outcome;

    for (i = 0; i < f->result->n; i++) {
        outcome = fleet_outcome(f, (uint32_t) i);

        if (outcome->status == FLEET_IN_INSTANCE
            && outcome->split == FLEET_NONE)
        {
            fleet_measure(outcome, &fleet_request(f, (uint32_t) i)->call);
        }
    }
}


static void
fleet_free(fleet_t *f)
{
    size_t  i;

    agenda_done(&f->agenda);
    ready_done(&f->ready);
    free(f->arrivals);
    free(f->seen);
    free(f->seen_free);
    free(f->subset);
    free(f->roles);
    free(f->tenants);
    free(f->flow);
    free(f->evict);
    free(f->tenant_order);

    for (i = 0; i < 3; i++) {
        free(f->rankers[i].index);
        free(f->rankers[i].cold);
        free(f->rankers[i].ring);
        free(f->rankers[i].peers);
    }

    free(f->ranks);
    free(f->scores);
    free(f->matched);
    free(f->scratch);
    free(f->finished);
    free(f->ranked);
}


int
fleet_run(const fleet_config_t *config, work_t *work,
    const fleet_watch_t *watch, fleet_result_t *result, char *error,
    size_t bytes)
{
    fleet_t  f;

    if (fleet_config_check(config, error, bytes) != 0) {
        return -1;
    }

    memset(&f, 0, sizeof(f));
    f.config = config;
    f.work = work;
    f.watch = watch;
    f.result = result;
    f.error = error;
    f.error_bytes = bytes;
    f.memory = result->memory = fleet_alloc(&f, 1, sizeof(fleet_memory_t));

    if (f.memory != NULL && fleet_init(&f) == 0) {
        fleet_loop(&f);
        fleet_finish_replicas(&f);
        fleet_finish_requests(&f);
        result->gateway_depth = f.nqueued;

        if (config->checks) {
            check_end(&f);
        }
    }

    fleet_free(&f);

    return f.failed == FLEET_BROKEN ? FLEET_BROKEN : f.failed ? -1 : 0;
}
