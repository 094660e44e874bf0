
/*
 * The gateway's queue: requests that are admitted wait here until the fleet has
 * room for them.  core's flow control decides which request leaves, and which
 * is displaced.  This file decides when to ask it: when a request arrives, and
 * then either at every tick while requests wait, or whenever a request ends.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/fleet/fleet_inner.h"


/*
 * Orders tenants by name for round robin; requests without a tenant are those
 * of "default".
 */
static int
queue_compare_names(const void *a, const void *b)
{
    return strcmp((*(const work_name_t *const *) a)->text,
                  (*(const work_name_t *const *) b)->text);
}


static const work_name_t *
queue_tenant(fleet_t *f, const work_request_t *w)
{
    return w->tenant->id != 0 ? w->tenant : f->default_tenant;
}


static int
queue_init_tenants(fleet_t *f)
{
    size_t               i, n;
    const work_name_t  **names;

    f->default_tenant = work_name(&f->work->names, "default", 7);
    f->ntenant_order = f->work->names.n;
    f->tenant_order = fleet_alloc(f, f->ntenant_order, sizeof(uint64_t));
    names = fleet_alloc(f, f->ntenant_order, sizeof(work_name_t *));

    if (f->failed) {
        free(names);
        return -1;
    }

    for (i = 0; i < f->work->n; i++) {
        names[queue_tenant(f, work_at(f->work, i))->id] =
            queue_tenant(f, work_at(f->work, i));
    }

    for (i = 0, n = 0; i < f->ntenant_order; i++) {

        if (names[i] != NULL) {
            names[n++] = names[i];
        }
    }

    qsort(names, n, sizeof(work_name_t *), queue_compare_names);

    for (i = 0; i < n; i++) {
        f->tenant_order[names[i]->id] = i;
    }

    free(names);

    return 0;
}


int
queue_init(fleet_t *f)
{
    uint32_t             capacity;
    const fleet_flow_t  *conf = &f->config->flow;

    if (!conf->is_on) {
        return 0;
    }

    capacity = f->work->sessions != NULL || f->work->n < 1
               ? WORK_MAX_REQUESTS : (uint32_t) f->work->n;
    f->flow = fleet_alloc(f, llmgw_flow_bytes(capacity), 1);

    if (f->failed || queue_init_tenants(f) != 0) {
        return -1;
    }

    (void) llmgw_flow_init(f->flow, capacity, &conf->queue);

    if (conf->evicts) {
        f->evict = fleet_alloc(f, evict_bytes(capacity), 1);

        if (f->evict == NULL) {
            return -1;
        }

        (void) evict_init(f->evict, capacity);
    }

    return 0;
}


/* Counts a waiting request: by is 1 or -1. */
static void
queue_count(fleet_t *f, uint32_t index, int by)
{
    f->nqueued += (uint32_t) by;

    if (admit_priority(f, work_at(f->work, index)) >= 0) {
        f->nfirm += (uint32_t) by;
    }
}


/* --- into the queue */

static int64_t
queue_deadline(const fleet_t *f, const work_request_t *w)
{
    size_t                 i;
    const fleet_nameds_t  *targets = &f->config->flow.targets;

    if (w->slo_target_us > 0) {
        return f->loop.clock_us + w->slo_target_us;
    }

    for (i = 0; i < targets->n; i++) {

        if (strcmp(targets->list[i].name, w->slo_class->text) == 0) {
            return f->loop.clock_us + (int64_t) targets->list[i].value;
        }
    }

    return LLMGW_FLOW_NO_DEADLINE;
}


static void
queue_displace(fleet_t *f, uint32_t victim, const work_request_t *by)
{
    queue_count(f, victim, -1);
    f->result->gateway_shed++;
    fleet_shed(f, work_at(f->work, victim));
    fleet_outcome(f, victim)->gw_enqueue_us = FLEET_NEVER;
    fleet_over(f, fleet_request(f, victim), FLEET_GATEWAY_SHED, by->id);
}


static void
queue_reject(fleet_t *f, uint32_t index)
{
    f->result->gateway_rejected++;
    fleet_over(f, fleet_request(f, index), FLEET_GATEWAY_REJECTED, "");
}


void
queue_enter(fleet_t *f, uint32_t index)
{
    uint32_t               victim;
    llmgw_flow_rc_t        rc;
    fleet_request_t       *r = fleet_request(f, index);
    llmgw_flow_arrival_t   arrival;
    const work_request_t  *w = work_at(f->work, index);

    arrival = (llmgw_flow_arrival_t) {
        .priority = admit_priority(f, w),
        .request = index,
        .tenant = f->tenant_order[queue_tenant(f, w)->id],
        .deadline_us = queue_deadline(f, w)
    };
    rc = llmgw_flow_enqueue(f->flow, &arrival, &r->entry, &victim);
    record_admission(f, w, 1, rc == LLMGW_FLOW_REJECTED
                              ? "flow-control-queue-rejected"
                              : "flow-control-enqueued");

    if (rc == LLMGW_FLOW_REJECTED) {
        queue_reject(f, index);
        return;
    }

    queue_count(f, index, 1);

    if (rc == LLMGW_FLOW_SHED) {
        queue_displace(f, victim, w);
    }

    fleet_outcome(f, index)->gw_enqueue_us = f->loop.clock_us;

    if (f->config->flow.ttl_us > 0) {
        fleet_schedule(f, f->loop.clock_us + f->config->flow.ttl_us,
                       FLEET_EVENT_TTL, index, 0);
    }

    queue_try(f);
}


void
queue_expire(fleet_t *f, uint32_t index)
{
    fleet_request_t  *r = fleet_request(f, index);

    if (fleet_outcome(f, index)->status != FLEET_IN_GATEWAY
        || !llmgw_flow_remove(f->flow, r->entry, index))
    {
        return;
    }

    queue_count(f, index, -1);
    f->result->gateway_expired++;
    fleet_shed(f, work_at(f->work, index));
    fleet_over(f, r, FLEET_GATEWAY_EXPIRED, "");
}


/* --- out of the queue */

static void
queue_want_tick(fleet_t *f)
{
    if (f->config->flow.dispatch == FLEET_DISPATCH_TICK && !f->has_tick) {
        f->has_tick = 1;
        fleet_schedule(f, f->loop.clock_us + f->config->flow.tick_us,
                       FLEET_EVENT_TICK, 0, 0);
    }
}


/*
 * Evicts a running request if the fleet is full and a request waits that may
 * not be shed.  Returns whether it did.
 */
static int
queue_gives_up(fleet_t *f, double saturation)
{
    uint32_t  victim;

    if (f->evict == NULL || saturation < 1.0
        || evict_length(f->evict) == 0 || f->nfirm == 0)
    {
        return 0;
    }

    victim = evict_pop(f->evict);
    fleet_schedule(f, f->loop.clock_us, FLEET_EVENT_EVICTION, victim,
                   fleet_outcome(f, victim)->replica);

    return 1;
}


/* Dispatches at most one request.  Returns how many. */
static int
queue_dispatch(fleet_t *f)
{
    double          saturation, ceiling;
    uint32_t        entry, index;
    fleet_choice_t  choice;

    if (f->nqueued == 0) {
        return 0;
    }

    queue_want_tick(f);
    choice = view_read(f, NULL, 0);
    saturation = llmgw_saturation(&f->config->flow.saturation, choice.list,
                                  choice.n);

    if (queue_gives_up(f, saturation)) {
        return 0;
    }

    entry = llmgw_flow_next(f->flow, &ceiling);

    if (saturation >= ceiling) {
        return 0;
    }

    index = llmgw_flow_take(f->flow, entry);
    queue_count(f, index, -1);
    fleet_outcome(f, index)->gw_dispatch_us = f->loop.clock_us;
    fleet_schedule(f, f->loop.clock_us + f->config->routing.latency_us,
                   FLEET_EVENT_ROUTING, index, 0);

    return 1;
}


void
queue_try(fleet_t *f)
{
    (void) queue_dispatch(f);
}


void
queue_tick(fleet_t *f)
{
    (void) queue_dispatch(f);

    f->has_tick = 0;

    if (f->nqueued > 0) {
        queue_want_tick(f);
    }
}


/*
 * n requests have ended at a replica: with FLEET_DISPATCH_COMPLETION,
 * dispatches as many.
 */
void
queue_completed(fleet_t *f, size_t n)
{
    if (f->flow == NULL
        || f->config->flow.dispatch != FLEET_DISPATCH_COMPLETION)
    {
        return;
    }

    while (n > 0 && queue_dispatch(f)) {
        n--;
    }
}


/* --- eviction from a replica */

void
queue_evict(fleet_t *f, uint32_t index, uint32_t replica)
{
    model_replica_t   *model = f->memory->nodes[replica].model;
    fleet_request_t   *r = fleet_request(f, index);
    fleet_outcome_t   *outcome = fleet_outcome(f, index);

    if (r->call.state != MODEL_REQUEST_QUEUED
        && r->call.state != MODEL_REQUEST_RUNNING)
    {
        return;                 /* not yet in the replica's queue: it stays */
    }

    model_replica_remove(model, &r->call);
    f->seen[replica].in_flight -= f->seen[replica].in_flight > 0;
    admit_ended(f, work_at(f->work, index));
    f->result->gateway_evicted++;
    fleet_shed(f, work_at(f->work, index));
    fleet_measure(outcome, &r->call);
    outcome->was_injected = 1;
    fleet_over(f, r, FLEET_GATEWAY_EVICTED, fleet_name(f, replica));
    fleet_replica_changed(f, replica);
}
