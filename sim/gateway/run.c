
/* Sets a run up, defines the effect of each event, and reports what is left. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/gateway/gateway_inner.h"


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
        g->loop.is_over = 1;
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
    loop_event_t  event = {
        .kind = kind, .subject = subject, .detail = detail, .more = more
    };

    if (loop_add(&g->loop, at_us, 0, event) != 0) {
        gateway_fail(g, "no memory");
    }
}


void
gateway_node_changed(gateway_t *g, uint32_t replica)
{
    ready_set(&g->loop.ready, replica,
              model_replica_next(g->nodes[replica].model));
}


/* --- setting up */

static int
gateway_init_nodes(gateway_t *g, gateway_memory_t *memory)
{
    uint32_t       i, n;
    node_truth_t  *node;

    n = g->fleet->replicas;
    g->nodes = memory->nodes = gateway_alloc(g, n, sizeof(node_truth_t));
    g->result->replicas = gateway_alloc(g, n, sizeof(fleet_replica_t));

    if (g->failed) {
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
        result->outcomes[i] = fleet_outcome_none;
    }

    return 0;
}


static int
gateway_init(gateway_t *g, gateway_memory_t *memory)
{
    memory->model = g->fleet->model;
    memory->model.view = NULL;
    memory->model.horizon_us = g->fleet->horizon_us;
    g->rnd.state = g->fleet->seed;

    if (loop_init(&g->loop, g->work, g->fleet->replicas) != 0
        || gateway_init_nodes(g, memory) != 0
        || gateway_init_results(g, memory) != 0 || front_init_all(g) != 0
        || news_init(g) != 0)
    {
        gateway_fail(g, "no memory");
        return -1;
    }

    faults_init(g);

    return 0;
}


/* --- the events */

static void
gateway_do_attempt(gateway_t *g, const loop_event_t *event)
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
gateway_event(void *data, const loop_event_t *event)
{
    gateway_t  *g = data;

    switch ((event_kind_t) event->kind) {

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
        update_first(g);
        return;

    case EVENT_UPDATE_LATE:
        update_judge(g, event->subject, 1);
        return;

    case EVENT_UPDATE_RESTARTED:
        update_restarted(g, event->subject);
        return;
    }
}


static void
gateway_arrive(void *data, uint32_t request)
{
    stream_arrive(data, request);
}


static void
gateway_step(void *data, uint32_t replica)
{
    gateway_t  *g = data;

    if (model_replica_step(g->nodes[replica].model) != 0) {
        gateway_fail(g, "no memory");
    }

    gateway_node_changed(g, replica);
}


static int64_t
gateway_news_us(void *data)
{
    return news_next_us(data);
}


static void
gateway_news(void *data)
{
    news_run(data);
}


static const loop_hooks_t  gateway_loop_hooks = {
    .arrive = gateway_arrive,
    .event = gateway_event,
    .step = gateway_step,
    .last_us = gateway_news_us,
    .last = gateway_news
};


/* --- the end */

static void
gateway_finish_replicas(gateway_t *g)
{
    uint32_t  i;

    fleet_result_end(g->result, &g->loop);

    for (i = 0; i < g->result->nreplicas; i++) {
        g->result->replicas[i].in_flight = g->nodes[i].active;
    }
}


/* Compares the places taken with running attempts: only these may have one. */
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


/* What a result needs until fleet_result_done(). */
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
    loop_done(&g->loop);
    news_done(g);
}


/* Refuses settings that our own gateway does not use. */
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


/* With --check: compares counts with what they must be. */
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
    g.loop.hooks = &gateway_loop_hooks;
    g.loop.data = &g;
    g.loop.horizon_us = fleet->horizon_us;
    g.loop.is_over = work->n == 0;
    g.result = result;
    g.counts = counts;
    g.error = error;
    g.error_bytes = bytes;
    memory = gateway_alloc(&g, 1, sizeof(gateway_memory_t));
    result->memory = memory;
    result->memory_done = gateway_memory_done;

    if (memory != NULL && gateway_init(&g, memory) == 0) {
        loop_run(&g.loop, watch);
        gateway_finish_replicas(&g);
        gateway_finish_counts(&g);
        gateway_name_counts(&g, memory);
        rc = fleet->checks ? gateway_check(&g) : 0;
    }

    gateway_free(&g);

    return g.failed ? -1 : rc;
}
