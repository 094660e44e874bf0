
/* Sets a run up, walks from event to event, and tells what is left. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/gateway/gateway_inner.h"


#define GATEWAY_PROGRESS_EVENTS  (1 << 14)

static const char *const  gateway_failures[] = {
    [LLMGW_CAUSE_CONNECT] = "failed_connect",
    [LLMGW_CAUSE_RESET] = "failed_reset",
    [LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT] = "failed_first_token_timeout",
    [LLMGW_CAUSE_TOKEN_TIMEOUT] = "failed_token_timeout",
    [LLMGW_CAUSE_MEMBER_DOWN] = "failed_member_down",
    [LLMGW_CAUSE_MEMBER_DEAD] = "failed_member_dead",
    [LLMGW_CAUSE_MEMBER_STALLED] = "failed_member_stalled"
};


void
gateway_fail(gateway_t *g, const char *what)
{
    if (!g->failed) {
        g->failed = 1;
        (void) snprintf(g->error, g->error_bytes, "%s", what);
    }
}


void *
gateway_alloc(gateway_t *g, size_t n, size_t size)
{
    void  *p;

    p = calloc(n > 0 ? n : 1, size);

    if (p == NULL) {
        gateway_fail(g, "no memory");
    }

    return p;
}


void
gateway_later(gateway_t *g, int64_t at_us, event_kind_t kind,
    uint32_t subject, uint32_t detail, uint32_t more)
{
    event_t  event = {
        .at_us = at_us, .kind = kind, .subject = subject, .detail = detail,
        .more = more
    };

    if (events_add(&g->events, event) != 0) {
        gateway_fail(g, "no memory");
    }
}


void
gateway_node_changed(gateway_t *g, uint32_t replica)
{
    ready_set(&g->ready, replica, model_replica_next(g->nodes[replica].model));
}


/* --- the beginning */

static int
gateway_init_nodes(gateway_t *g, gateway_memory_t *memory)
{
    uint32_t       i, n;
    node_truth_t  *node;

    n = g->fleet->replicas;
    g->nodes = memory->nodes = gateway_alloc(g, n, sizeof(node_truth_t));
    g->result->replicas = gateway_alloc(g, n, sizeof(fleet_replica_t));

    if (g->failed || ready_init(&g->ready, n) != 0) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        node = &g->nodes[i];
        node->gateway = g;
        node->first = ATTEMPT_NONE;
        node->is_up = 1;
        node->slowness = 1;
        node->said.service = LLMGW_SERVICE_READY;
        node->model = model_replica_create(&memory->model, &attempt_hooks,
                                           node);
        if (node->model == NULL) {
            return -1;
        }

        g->result->replicas[i].model = node->model;
        g->result->replicas[i].config = &memory->model;
        g->result->nreplicas = i + 1;
        gateway_node_changed(g, i);
    }

    return 0;
}


static int
gateway_init_results(gateway_t *g, gateway_memory_t *memory)
{
    size_t           i, n;
    fleet_result_t  *result = g->result;

    n = g->work->n;
    result->outcomes = gateway_alloc(g, n, sizeof(fleet_outcome_t));
    result->nclasses = g->work->names.n + 1;
    result->classes = gateway_alloc(g, result->nclasses,
                                    sizeof(fleet_class_count_t));
    g->streams = memory->streams = gateway_alloc(g, n, sizeof(stream_t));
    memory->nstreams = n;

    if (g->failed) {
        return -1;
    }

    result->n = n;

    for (i = 0; i < n; i++) {
        result->outcomes[i] = (fleet_outcome_t) {
            .ttft_us = FLEET_NEVER, .e2e_us = FLEET_NEVER,
            .sched_delay_us = FLEET_NEVER, .gw_enqueue_us = FLEET_NEVER,
            .gw_dispatch_us = FLEET_NEVER, .route_us = FLEET_NEVER,
            .end_us = FLEET_NEVER, .detail = "",
            .replica = FLEET_NONE, .split = FLEET_NONE
        };
    }

    return 0;
}


static int
gateway_compare_arrivals(const void *a, const void *b, void *data)
{
    int64_t   s, t;
    uint32_t  i = *(const uint32_t *) a, k = *(const uint32_t *) b;

    s = work_at(data, i)->arrival_us;
    t = work_at(data, k)->arrival_us;

    return s != t ? (s > t) - (s < t) : (i > k) - (i < k);
}


static int
gateway_init_arrivals(gateway_t *g)
{
    size_t  i;

    g->arrivals = gateway_alloc(g, g->work->n, sizeof(uint32_t));

    if (g->arrivals == NULL) {
        return -1;
    }

    for (i = 0; i < g->work->n; i++) {
        g->arrivals[i] = (uint32_t) i;
    }

    qsort_r(g->arrivals, g->work->n, sizeof(uint32_t),
            gateway_compare_arrivals, g->work);

    return 0;
}


static int
gateway_init(gateway_t *g, gateway_memory_t *memory)
{
    memory->model = g->fleet->model;
    memory->model.view = NULL;
    memory->model.horizon_us = g->fleet->horizon_us;
    g->rnd.state = g->fleet->seed;

    if (gateway_init_nodes(g, memory) != 0
        || gateway_init_results(g, memory) != 0
        || gateway_init_arrivals(g) != 0 || front_init_all(g) != 0
        || news_init(g) != 0)
    {
        gateway_fail(g, "no memory");
        return -1;
    }

    faults_init(g);

    return 0;
}


/* --- the loop */

static void
gateway_do_attempt(gateway_t *g, const event_t *event)
{
    if (gateway_attempt(g, event->subject)->serial != event->detail) {
        return;
    }

    switch (event->kind) {

    case EVENT_CAME:
        attempt_came(g, event->subject);
        return;

    case EVENT_FIRST:
        attempt_look(g, event->subject);
        stream_begun(g, event->subject);
        return;

    case EVENT_FINAL:
        stream_ended(g, event->subject, LLMGW_ENDING_FINAL, LLMGW_CAUSE_NONE);
        return;

    case EVENT_REFUSED:
        stream_refused(g, event->subject, (model_end_t) event->more);
        return;

    default:
        stream_ended(g, event->subject, (llmgw_ending_t) (event->more >> 8),
                     (llmgw_cause_t) (event->more & 0xff));
        return;
    }
}


static void
gateway_do(gateway_t *g, const event_t *event)
{
    switch (event->kind) {

    case EVENT_CAME:
    case EVENT_FIRST:
    case EVENT_FINAL:
    case EVENT_REFUSED:
    case EVENT_BROKEN:
        gateway_do_attempt(g, event);
        return;

    case EVENT_TIMER:
        if (gateway_stream(g, event->subject)->timer == event->detail) {
            stream_due(g, event->subject);
        }
        return;

    case EVENT_LINK:
        link_due(g, event->subject, event->detail, event->more);
        return;

    case EVENT_TURN:
        front_turn(g, event->subject);
        return;

    case EVENT_TICK:
        front_tick(g, event->subject);
        return;

    case EVENT_NEWS:
        news_come(g, event->subject, event->detail, event->more);
        return;

    case EVENT_LOADS:
        news_loads(g);
        return;

    case EVENT_FAULT:
        faults_begin(g, event->subject);
        return;

    case EVENT_FAULT_END:
        faults_end(g, event->subject, event->detail, event->more);
        return;

    case EVENT_STALLED:
        faults_stalled(g, event->subject, event->detail);
        return;

    case EVENT_UPDATE:
        update_begin(g);
        return;

    case EVENT_UPDATE_LATE:
        update_look(g, event->subject, 1);
        return;

    case EVENT_UPDATE_RESTARTED:
        update_restarted(g, event->subject);
        return;
    }
}


/* When something is due, in the order in which it is done at one time. */
typedef struct {
    int64_t  arrival_us;
    int64_t  event_us;
    int64_t  replica_us;
    int64_t  news_us;
} gateway_due_t;


static gateway_due_t
gateway_due(gateway_t *g)
{
    const event_t  *event;
    gateway_due_t   due;

    event = events_next(&g->events);
    due.event_us = event == NULL ? INT64_MAX : event->at_us;
    due.replica_us = ready_time(&g->ready);
    due.news_us = news_next_us(g);
    due.arrival_us = g->next_arrival == g->work->n ? INT64_MAX
        : work_at(g->work, g->arrivals[g->next_arrival])->arrival_us;

    return due;
}


static void
gateway_step(gateway_t *g)
{
    uint32_t  replica;

    replica = ready_first(&g->ready);

    if (model_replica_step(g->nodes[replica].model) != 0) {
        gateway_fail(g, "no memory");
    }

    gateway_node_changed(g, replica);
}


/* Does what is due next; 0: nothing is, or all requests are through. */
static int
gateway_turn(gateway_t *g)
{
    int64_t        at_us;
    event_t        event;
    gateway_due_t  due;

    if (g->ended == g->work->n) {
        return 0;
    }

    due = gateway_due(g);
    at_us = due.arrival_us < due.event_us ? due.arrival_us : due.event_us;
    at_us = due.replica_us < at_us ? due.replica_us : at_us;
    at_us = due.news_us < at_us ? due.news_us : at_us;

    if (at_us == INT64_MAX || at_us > g->fleet->horizon_us) {
        return 0;
    }

    g->clock_us = at_us;
    g->result->events++;

    if (due.arrival_us == at_us) {
        stream_arrive(g, g->arrivals[g->next_arrival++]);

    } else if (due.event_us == at_us) {
        event = events_take(&g->events);
        gateway_do(g, &event);

    } else if (due.replica_us == at_us) {
        gateway_step(g);

    } else {
        news_run(g);
    }

    return 1;
}


static void
gateway_loop(gateway_t *g, const fleet_watch_t *watch)
{
    while (!g->failed && gateway_turn(g)) {

        if (watch != NULL && watch->progress != NULL
            && g->result->events % GATEWAY_PROGRESS_EVENTS == 0)
        {
            watch->progress(watch->data, g->clock_us, g->ended);
        }
    }
}


/* --- the end */

static void
gateway_finish_replicas(gateway_t *g)
{
    uint32_t          i;
    model_facts_t     facts;
    fleet_replica_t  *replica;

    for (i = 0; i < g->result->nreplicas; i++) {
        replica = &g->result->replicas[i];
        model_replica_facts(replica->model, &facts);
        replica->ended_us = model_replica_ended(replica->model);
        replica->still_queued = facts.queue_depth;
        replica->still_running = facts.batch_size;
        replica->in_flight = g->nodes[i].active;
    }
}


/* Places are held by requests that are not through, and by nobody else. */
static void
gateway_finish_counts(gateway_t *g)
{
    size_t            i;
    uint32_t          k, r;
    uint64_t          held, active;
    fleet_result_t   *result = g->result;
    gateway_counts_t *counts = g->counts;

    held = 0;
    active = 0;

    for (k = 0; k < g->config->gateways; k++) {
        result->gateway_depth += g->fronts[k].shared->queue.length;

        for (r = 0; r < g->fleet->replicas; r++) {
            held += llmgw_slot(g->fronts[k].shared,
                               g->fronts[k].places[r].slot)->counts.in_flight;
        }
    }

    for (i = 0; i < g->work->n; i++) {
        active += g->streams[i].attempts[0].state.is_running;
        active += g->streams[i].attempts[1].state.is_running;
    }

    counts->left_in_flight = held > active ? held - active : active - held;
    result->gateway_rejected = counts->refused_queue;
    result->gateway_expired = counts->refused_timeout;
    result->rejected_routing = counts->refused_open + counts->refused_none;
    result->clock_us = g->clock_us;
}


static void
gateway_name_counts(gateway_t *g, gateway_memory_t *memory)
{
    size_t             i, n;
    gateway_counts_t  *counts = g->counts;

    n = 0;

#define GATEWAY_COUNT_NAME(name_)                                             \
    memory->extras[n++] = (fleet_extra_t) { #name_, counts->name_ };
    GATEWAY_COUNTS(GATEWAY_COUNT_NAME)

    for (i = 0; i < sizeof(gateway_failures) / sizeof(char *); i++) {
        if (counts->failed[i] != 0) {
            memory->extras[n++] = (fleet_extra_t) {
                gateway_failures[i], counts->failed[i]
            };
        }
    }

    g->result->extras = memory->extras;
    g->result->nextras = n;
}


/* What is still held when fleet_result_done() comes. */
static void
gateway_memory_done(void *data)
{
    size_t             i;
    gateway_memory_t  *memory = data;

    for (i = 0; memory->streams != NULL && i < memory->nstreams; i++) {
        free(memory->streams[i].hashes);
    }

    free(memory->streams);
    free(memory->nodes);
    free(memory);
}


static void
gateway_free(gateway_t *g)
{
    front_done_all(g);
    events_done(&g->events);
    ready_done(&g->ready);
    free(g->arrivals);
    news_done(g);
}


/* What a gateway of our own decides otherwise. */
static const char *
gateway_refuses(const fleet_config_t *fleet, const work_t *work)
{
    if (work->sessions != NULL) {
        return "sessions in a closed loop do not go through --gateway";
    }

    return fleet->flow.is_on || fleet->admission.has_budgets
           || fleet->admission.rule.kind != FLEET_RULE_CORE
           || fleet->admission.rule.core.kind != LLMGW_RULE_ALWAYS
           || fleet_has_pools(fleet)
           ? "--gateway has neither BLIS's admission policies nor its flow "
             "control, and no pools"
           : NULL;
}


/* With --check. */
static int
gateway_check(gateway_t *g)
{
    const gateway_counts_t  *counts = g->counts;

    if (counts->left_in_flight != 0 || counts->overtaken != 0
        || (g->config->capacity != 0
            && counts->capacity_peak > g->config->capacity))
    {
        (void) snprintf(g->error, g->error_bytes, "%" PRIu64 " places were "
                        "left taken, %" PRIu64 " requests overtaken, %" PRIu64
                        " at one replica", counts->left_in_flight,
                        counts->overtaken, counts->capacity_peak);
        return FLEET_BROKEN;
    }

    return 0;
}


int
gateway_run(const fleet_config_t *fleet, const gateway_config_t *config,
    work_t *work, const fleet_watch_t *watch, fleet_result_t *result,
    gateway_counts_t *counts, char *error, size_t bytes)
{
    int                rc;
    gateway_t          g;
    const char        *why;
    gateway_memory_t  *memory;

    if (fleet_config_check(fleet, error, bytes) != 0) {
        return -1;
    }

    why = gateway_refuses(fleet, work);

    if (why != NULL) {
        (void) snprintf(error, bytes, "%s", why);
        return -1;
    }

    rc = 0;
    memset(&g, 0, sizeof(g));
    memset(counts, 0, sizeof(*counts));
    g.fleet = fleet;
    g.config = config;
    g.work = work;
    g.result = result;
    g.counts = counts;
    g.error = error;
    g.error_bytes = bytes;
    memory = gateway_alloc(&g, 1, sizeof(gateway_memory_t));
    result->memory = memory;
    result->memory_done = gateway_memory_done;

    if (memory != NULL && gateway_init(&g, memory) == 0) {
        gateway_loop(&g, watch);

        gateway_finish_replicas(&g);
        gateway_finish_counts(&g);
        gateway_name_counts(&g, memory);
        rc = fleet->checks ? gateway_check(&g) : 0;
    }

    gateway_free(&g);

    return g.failed ? -1 : rc;
}
