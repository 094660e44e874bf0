
/* Sets a run up, defines the effect of each event, and reports what is left. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/fleet_inner.h"


#define FLEET_STUCK_STEPS      1000     /* steps of a stuck replica between
                                           looks at the whole fleet */


void
fleet_fail(fleet_t *f, const char *what)
{
    if (!f->failed) {
        f->failed = -1;
        f->loop.is_over = 1;
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


/*
 * The start of a transfer and an eviction share a rank; so do the end of a
 * transfer and a time-out of the queue.
 */
unsigned
fleet_rank(fleet_event_kind_t kind)
{
    static const uint8_t  ranks[] = { 0, 1, 2, 4, 5, 5, 6, 6, 7 };

    return ranks[kind];
}


void
fleet_schedule(fleet_t *f, int64_t at_us, fleet_event_kind_t kind,
    uint32_t subject, uint32_t detail)
{
    loop_event_t  event = {
        .kind = kind, .subject = subject, .detail = detail
    };

    if (loop_add(&f->loop, at_us, fleet_rank(kind), event) != 0) {
        fleet_fail(f, "no memory");
    }
}


void
fleet_replica_changed(fleet_t *f, uint32_t replica)
{
    int64_t  next;

    next = model_replica_next(f->memory->nodes[replica].model);
    ready_set(&f->loop.ready, replica, next);
    view_update(f, replica);
}


/* --- setting up */

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


/*
 * The model's settings for a replica; one in both pools also computes answers,
 * and has those of the answers' pool.
 */
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

    if (f->failed) {
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
fleet_init(fleet_t *f)
{
    if (fleet_grow(f) != 0 || fleet_init_models(f) != 0 || view_init(f) != 0

        || loop_init(&f->loop, f->work, f->config->replicas) != 0
        || fleet_init_replicas(f) != 0 || admit_init(f) != 0
        || queue_init(f) != 0 || route_init(f) != 0 || record_init(f) != 0)
    {
        fleet_fail(f, "no memory");
        return -1;
    }

    return 0;
}


/* --- the events */

static void
fleet_event(void *data, const loop_event_t *event)
{
    fleet_t  *f = data;

    switch ((fleet_event_kind_t) event->kind) {

    case FLEET_EVENT_ARRIVAL:
        admit_arrive(f, event->subject);
        return;

    case FLEET_EVENT_ADMISSION:
        admit_decide(f, event->subject);
        return;

    case FLEET_EVENT_ROUTING:
        route_decide(f, event->subject);
        return;

    case FLEET_EVENT_PREFILL:
        split_prefill(f, event->subject);
        return;

    case FLEET_EVENT_TRANSFER_START:
        split_transfer_start(f, event->subject);
        return;

    case FLEET_EVENT_EVICTION:
        queue_evict(f, event->subject, event->detail);
        return;

    case FLEET_EVENT_TRANSFER_END:
        split_transfer_end(f, event->subject);
        return;

    case FLEET_EVENT_TTL:
        queue_expire(f, event->subject);
        return;

    case FLEET_EVENT_TICK:
        queue_tick(f);
        return;
    }
}


/*
 * Whether nothing can change any more: only stuck replicas take steps.  The
 * queue's tick may remain, since it finds no room in a stuck fleet.
 */
static int
fleet_is_stuck(const fleet_t *f)
{
    uint32_t                i;
    const model_replica_t  *model;

    if (f->loop.next_arrival < f->loop.narrivals
        || f->loop.heap.n > (size_t) f->has_tick)
    {
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


/* Ends the run with an error if it is stuck and has no horizon to end it. */
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
             "of requests", fleet_name(f, replica),
             (long long) f->loop.clock_us, facts.queue_depth,
             facts.free_blocks, facts.total_blocks);
    fleet_fail(f, what);
}


static void
fleet_step(void *data, uint32_t replica)
{
    size_t    ended;
    fleet_t  *f = data;

    ended = f->loop.ended;

    if (model_replica_step(f->memory->nodes[replica].model) != 0) {
        fleet_fail(f, "no memory");
    }

    fleet_look_stuck(f, replica);
    fleet_replica_changed(f, replica);

    if (f->nfinished > 0) {
        split_settle(f);
    }

    queue_completed(f, f->loop.ended - ended);

    if (f->config->checks) {
        check_replica(f, replica);
    }
}


static void
fleet_arrive(void *data, uint32_t request)
{
    admit_arrive(data, request);
}


static void
fleet_clock(void *data, int64_t at_us)
{
    fleet_t  *f = data;

    if (f->config->checks) {
        check_clock(f, at_us);
    }
}


static const loop_hooks_t  fleet_loop_hooks = {
    .clock = fleet_clock,
    .arrive = fleet_arrive,
    .event = fleet_event,
    .step = fleet_step
};


/* --- the end */

static void
fleet_finish_replicas(fleet_t *f)
{
    uint32_t  i;

    fleet_result_end(f->result, &f->loop);

    for (i = 0; i < f->result->nreplicas; i++) {
        f->result->replicas[i].in_flight = (uint32_t) f->seen[i].in_flight;
    }
}


/* Requests that are still in replicas have the measurements made so far. */
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

    loop_done(&f->loop);
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
    f.loop.hooks = &fleet_loop_hooks;
    f.loop.data = &f;
    f.loop.horizon_us = config->horizon_us;
    f.result = result;
    f.error = error;
    f.error_bytes = bytes;
    f.memory = result->memory = fleet_alloc(&f, 1, sizeof(fleet_memory_t));

    if (f.memory != NULL && fleet_init(&f) == 0) {
        loop_run(&f.loop, watch);
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
