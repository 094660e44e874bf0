
/*
 * One attempt at one replica.
 *
 *     start --- network ---> came ---> in the model's hands ---> ended
 *                              |             |                     |
 *                    full, draining,         | crash, timeout      |
 *                    not taken (link.c)      |                     |
 *                              v             v                     v
 *                            broken        broken                final
 *
 * The model reports at the start of a step what the step will produce, so a
 * token or an end is known before it leaves the replica.  Whether it leaves
 * depends on what happens to the replica until then: attempt_look() counts the
 * tokens that have left by now.
 */

#include "sim/gateway/gateway_inner.h"


/* Each replica has a list of the attempts that gateways have there. */

static void
attempt_list(gateway_t *g, uint32_t i)
{
    attempt_t     *a = gateway_attempt(g, i);
    node_truth_t  *node = &g->nodes[a->replica];

    a->before = ATTEMPT_NONE;
    a->behind = node->first;

    if (node->first != ATTEMPT_NONE) {
        gateway_attempt(g, node->first)->before = i;
    }

    node->first = i;
}


static void
attempt_unlist(gateway_t *g, uint32_t i)
{
    attempt_t     *a = gateway_attempt(g, i);
    node_truth_t  *node = &g->nodes[a->replica];

    if (a->before != ATTEMPT_NONE) {
        gateway_attempt(g, a->before)->behind = a->behind;

    } else {
        node->first = a->behind;
    }

    if (a->behind != ATTEMPT_NONE) {
        gateway_attempt(g, a->behind)->before = a->before;
    }
}


/* Frees the attempt's place at the replica. */
static void
attempt_leave(gateway_t *g, uint32_t i)
{
    attempt_t  *a = gateway_attempt(g, i);

    if (a->is_there) {
        a->is_there = 0;
        g->nodes[a->replica].active--;
        update_judge(g, a->replica, 0);
    }
}


/*
 * Counts an attempt at a replica that accepts no requests: its gateway does not
 * know that yet, or had no other replica.
 */
static void
attempt_count_misrouted(gateway_t *g, const node_truth_t *node)
{
    uint64_t  late_us = (uint64_t) (g->loop.clock_us - node->unfit_us);

    if (faults_is_fit(node)) {
        return;
    }

    g->counts->misrouted++;

    if (late_us > g->counts->misrouted_max_us) {
        g->counts->misrouted_max_us = late_us;
    }
}


void
attempt_start(gateway_t *g, uint32_t i, uint32_t replica)
{
    stream_t   *s = gateway_stream(g, i / 2);
    attempt_t  *a = gateway_attempt(g, i);

    a->serial++;
    a->replica = replica;
    a->base = s->tokens;
    a->link = LINK_NONE;
    a->state = (llmgw_attempt_t) {
        .is_running = 1, .heard_ms = gateway_ms(g), .start_ms = gateway_ms(g)
    };
    a->heard_us = g->loop.clock_us;
    a->first_us = 0;
    a->final_us = 0;

    attempt_list(g, i);
    g->counts->attempts++;
    g->counts->resumed_tokens += a->base;
    attempt_count_misrouted(g, &g->nodes[replica]);

    gateway_later(g, g->loop.clock_us + g->config->network_us, EVENT_CAME, i,
                  a->serial, 0);
}


/*
 * Fills in the request to the replica, to continue after the tokens that the
 * client has.
 */
static void
attempt_fill(gateway_t *g, uint32_t i)
{
    stream_t              *s = gateway_stream(g, i / 2);
    attempt_t             *a = gateway_attempt(g, i);
    const work_request_t  *w = work_at(g->work, i / 2);

    a->call = (model_request_t) {
        .id = w->id,
        .hashes = s->hashes,
        .nhashes = s->nhashes,
        .input_tokens = w->input_tokens + a->base,
        .output_tokens = w->output_tokens - a->base,
        .max_output_tokens = w->max_output_tokens > a->base
                             ? w->max_output_tokens - a->base : 0,
        .priority = fleet_engine_priority(
            &g->fleet->admission.classes,
            fleet_priority(&g->fleet->admission.classes, w->slo_class->text,
                           w->slo_class->len)),
        .arrival_us = w->arrival_us,
        .deadline_us = w->deadline_us,
        .data = a
    };
}


void
attempt_came(gateway_t *g, uint32_t i)
{
    int64_t        back_us;
    attempt_t     *a = gateway_attempt(g, i);
    node_truth_t  *node = &g->nodes[a->replica];

    back_us = g->loop.clock_us + g->config->network_us;

    if (!link_call(g, i)) {
        return;
    }

    if (node->is_draining) {
        attempt_break(g, i, LLMGW_ENDING_DRAINING, LLMGW_CAUSE_DRAINING,
                      back_us);
        return;
    }

    if (g->config->capacity != 0 && node->active >= g->config->capacity) {
        attempt_break(g, i, LLMGW_ENDING_FULL, LLMGW_CAUSE_FULL, back_us);
        return;
    }

    attempt_fill(g, i);
    a->is_there = 1;
    a->is_held = 1;
    node->active++;

    if (node->active > g->counts->capacity_peak) {
        g->counts->capacity_peak = node->active;
    }

    if (model_replica_arrive(node->model, &a->call, g->loop.clock_us) != 0) {
        gateway_fail(g, "no memory");
    }

    gateway_node_changed(g, a->replica);
}


/* --- hooks of the model */

/* The number of an attempt, for the hooks. */
static uint32_t
attempt_number(gateway_t *g, const attempt_t *a)
{
    size_t  stream;

    stream = (size_t) ((const char *) a - (const char *) g->streams)
             / sizeof(stream_t);

    return (uint32_t) (stream * 2) + (a != &g->streams[stream].attempts[0]);
}


static void
attempt_scheduled(void *data, model_request_t *call, int64_t now_us)
{
    gateway_t        *g = ((node_truth_t *) data)->gateway;
    fleet_outcome_t  *outcome;

    outcome = &g->result->outcomes[attempt_number(g, call->data) / 2];

    if (outcome->sched_delay_us == FLEET_NEVER) {
        outcome->sched_delay_us = now_us - call->arrival_us;
    }
}


static void
attempt_first_token(void *data, model_request_t *call, int64_t at_us)
{
    uint32_t    i;
    gateway_t  *g = ((node_truth_t *) data)->gateway;
    attempt_t  *a = call->data;

    if (a->first_us != 0) {
        return;                 /* not the first: it was preempted before */
    }

    a->first_us = at_us;
    i = attempt_number(g, a);
    gateway_later(g, at_us + g->config->network_us, EVENT_FIRST, i, a->serial,
                  0);
}


static void
attempt_ended(void *data, model_request_t *call, model_end_t end,
    int64_t now_us, int64_t at_us)
{
    uint32_t    i;
    gateway_t  *g = ((node_truth_t *) data)->gateway;
    attempt_t  *a = call->data;

    a->is_held = 0;
    i = attempt_number(g, a);

    if (end != MODEL_COMPLETED && end != MODEL_LENGTH_CAPPED) {
        gateway_later(g, now_us, EVENT_REFUSED, i, a->serial, end);
        return;
    }

    a->final_us = call->arrival_us + call->e2e_us;
    a->final_us = a->final_us > at_us ? a->final_us : at_us;
    gateway_later(g, a->final_us + g->config->network_us, EVENT_FINAL, i,
                  a->serial, 0);
}


const model_hooks_t  attempt_hooks = {
    .scheduled = attempt_scheduled,
    .first_token = attempt_first_token,
    .ended = attempt_ended
};


/* --- what has left the replica */

/*
 * Updates the attempt's tokens, and the time of the last one, to what has left
 * the replica by now.
 */
void
attempt_look(gateway_t *g, uint32_t i)
{
    int64_t           end_us;
    uint32_t          tokens;
    attempt_t        *a = gateway_attempt(g, i);
    model_replica_t  *model = g->nodes[a->replica].model;

    if (a->first_us == 0 || a->first_us > g->loop.clock_us) {
        return;
    }

    if (a->final_us != 0) {
        tokens = a->call.itl_count + 1;
        tokens -= a->final_us > g->loop.clock_us && tokens > 1;
        end_us = a->final_us < g->loop.clock_us ? a->final_us
                                                : g->loop.clock_us;

    } else if (a->is_held) {
        tokens = model_replica_tokens(model, &a->call);
        end_us = model_replica_step_end(model);
        tokens -= end_us > g->loop.clock_us && tokens > 1;
        end_us = end_us < g->loop.clock_us ? end_us : g->loop.clock_us;

    } else {
        return;
    }

    if (tokens > a->state.tokens) {
        a->state.tokens = tokens;
        a->state.heard_ms = (uint64_t) end_us / 1000 + 1;
        a->heard_us = end_us;
    }
}


/* The replica's process has ended: only tokens that have left by now count. */
void
attempt_freeze(gateway_t *g, uint32_t i)
{
    attempt_t  *a = gateway_attempt(g, i);

    attempt_look(g, i);
    a->is_held = 0;

    if (a->final_us == 0 || a->final_us > g->loop.clock_us) {
        a->serial++;            /* cancels the events of later tokens */
        a->final_us = 0;
    }

    attempt_leave(g, i);
}


/* --- the end */

void
attempt_break(gateway_t *g, uint32_t i, llmgw_ending_t ending,
    llmgw_cause_t cause, int64_t at_us)
{
    gateway_later(g, at_us, EVENT_BROKEN, i, gateway_attempt(g, i)->serial,
                  (uint32_t) ending << 8 | (uint32_t) cause);
}


/*
 * Removes the attempt from its replica and frees its place.  Does nothing the
 * second time.
 */
void
attempt_end(gateway_t *g, uint32_t i, llmgw_verdict_t verdict)
{
    front_t                *front;
    attempt_t              *a = gateway_attempt(g, i);
    llmgw_admission_end_t   end;

    if (!a->state.is_running) {
        return;
    }

    a->state.is_running = 0;
    a->serial++;

    if (a->is_held) {
        a->is_held = 0;
        model_replica_remove(g->nodes[a->replica].model, &a->call);
        gateway_node_changed(g, a->replica);
    }

    attempt_unlist(g, i);
    attempt_leave(g, i);

    front = &g->fronts[gateway_stream(g, i / 2)->front];
    llmgw_admission_end(&front->self, &g->config->breaker, &a->lease, verdict,
                        gateway_ms(g), &end);

    g->counts->circuits_opened += end.change == LLMGW_BREAKER_OPENED
                         || end.change == LLMGW_BREAKER_REOPENED;
    front_wake(g, front, &end.wake);
}
