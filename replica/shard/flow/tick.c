
/*
 * What is due at some time: deadlines of sessions, turns that are not used, and
 * callbacks that must not come from within a call.
 */

#include <stdio.h>

#include "replica/shard/flow/flow_inner.h"

#define NS_PER_MS  1000000ULL


/* Since when the hop waits; for a step that has begun, since its Started. */
static uint64_t
tick_since(const hop_t *hop)
{
    uint64_t  started;

    started = hop->nsteps > 0 ? hop->steps[0].started_ns : 0;

    return started > hop->since_ns ? started : hop->since_ns;
}


/* Whether the hop's oldest step has Started. */
static int
tick_is_computing(const hop_t *hop)
{
    return hop->nsteps > 0 && hop->steps[0].started_ns != 0;
}


/* The longest time that any shard is waited for. */
static uint64_t
tick_limit(const hop_t *hop)
{
    return hop->state == HOP_OPENING
           ? hop->since_ns + hop_opened_ns(hop)
           : tick_since(hop) + hop->flow->flows->options.started_ms
                               * NS_PER_MS;
}


/*
 * Whether gossip about the hop's shard counts before Started: it does but for
 * the first rows of a prompt, which may take long.  A shard that loads is not
 * silent either, since it reports to its agent.
 */
static int
tick_heeds_gossip(const hop_t *hop)
{
    return hop->state == HOP_OPENING || hop->flow->answers > 0;
}


uint64_t
tick_deadline(const hop_t *hop)
{
    uint64_t  bound, limit;

    if (hop->state == HOP_LOST
        || (hop->state == HOP_OPEN && hop->nsteps == 0))
    {
        return 0;
    }

    bound = tick_since(hop)
            + flow_shard_bound_ns(hop->shard,
                                  hop->nsteps ? hop->steps[0].rows : 1);

    if (tick_is_computing(hop)) {
        return bound;
    }

    limit = tick_limit(hop);

    return tick_heeds_gossip(hop) && bound < limit ? bound : limit;
}


static uint64_t
tick_hop_due(const hop_t *hop)
{
    return hop->again_ns ? hop->again_ns : tick_deadline(hop);
}


/* Whether a late hop may be waited for: its shard may be working, or no other
   shard computes its step and nothing shows that this one will not. */
static int
tick_may_wait(const hop_t *hop, uint64_t now)
{
    int             is_doubted;
    const flows_t  *flows;

    if (now >= tick_limit(hop)) {
        return 0;
    }

    flows = hop->flow->flows;
    is_doubted = flows->world->is_doubted(flows->fleet, hop->at.key);

    if (!tick_is_computing(hop) && !is_doubted) {
        return 1;
    }

    return !flows->options.has_fallback
           && !plan_has_detour(hop, is_doubted ? PLAN_FAILED : PLAN_SURE);
}


static void
tick_stalled(hop_t *hop, uint64_t now)
{
    char               text[FLOW_TEXT_BYTES];
    const hop_step_t  *step;

    step = &hop->steps[0];

    if (hop->state == HOP_OPENING) {
        snprintf(text, sizeof(text), "not opened in time");

    } else if (step->started_ns == 0) {
        snprintf(text, sizeof(text), "position %u not started in time",
                 step->position);

    } else {
        snprintf(text, sizeof(text), "no result of position %u, %u rows,"
                 " after %llu ms", step->position, step->rows,
                 (unsigned long long) ((now - tick_since(hop)) / NS_PER_MS));
    }

    hop_lose(hop, now < tick_limit(hop) ? SHARD_LATE : SHARD_FAILED, 1,
             text);
}


static void
tick_hop(hop_t *hop, uint64_t now)
{
    uint64_t  due;

    due = tick_hop_due(hop);

    if (due == 0 || now < due) {
        return;
    }

    if (hop->again_ns == 0
        || now >= hop->again_ns + FLOW_STOOD_MS * NS_PER_MS)
    {
        hop->again_ns = now + FLOW_AGAIN_MS * NS_PER_MS;
        return;
    }

    if (tick_may_wait(hop, now)) {
        hop->again_ns = now + FLOW_DETOUR_MS * NS_PER_MS;
        return;
    }

    tick_stalled(hop, now);
}


/* When the flow's turns are to pass to the next flow; 0: never. */
static uint64_t
tick_idle_ns(const flow_t *flow)
{
    int           has_turn;
    size_t        i;
    const hop_t  *hop;

    has_turn = 0;

    for (i = 0; i < flow->nhops; i++) {
        hop = flow->hops[i];

        if (hop->shard == NULL || hop->shard->turn != flow) {
            continue;
        }

        if (hop->state == HOP_OPENING || hop->nsteps > 0) {
            return 0;
        }

        has_turn = 1;
    }

    return has_turn ? flow->moved_ns + FLOW_HELD_MS * NS_PER_MS : 0;
}


static uint64_t
tick_wait_ns(const flow_t *flow)
{
    uint64_t  turned;

    turned = flow->flows->turned_ns;

    if (flow->is_waiting) {
        return (flow->since_ns > turned ? flow->since_ns : turned)
               + FLOW_TURN_MS * NS_PER_MS;
    }

    return flow->has_place ? flow->since_ns + FLOW_HELD_MS * NS_PER_MS : 0;
}


static void
tick_flow(flow_t *flow, uint64_t now)
{
    size_t    i;
    uint64_t  due;

    due = tick_wait_ns(flow);

    if (due != 0 && now >= due) {
        if (flow->is_waiting) {
            flow_lose(flow, "pipeline_stalled", "others replay for too long");
            return;
        }
        turn_end_place(flow);
    }

    due = tick_idle_ns(flow);

    if (due != 0 && now >= due) {
        turn_give_back(flow);
    }

    for (i = 0; i < flow->nhops; i++) {
        tick_hop(flow->hops[i], now);
    }

    flow_go_on(flow);
}


/* Makes the flow's callbacks; the flow may be closed afterwards. */
static void
tick_tell(flow_t *flow)
{
    if (flow->tell_rewind) {
        flow->tell_rewind = 0;
        flow->callbacks->on_rewind(flow->data);
    }

    if (flow->tell_lost && !flow->is_closed) {
        flow->tell_lost = 0;
        flow->callbacks->on_lost(flow->data, flow->reason, flow->text);
    }
}


static uint64_t
tick_least(uint64_t a, uint64_t b)
{
    return a == 0 || (b != 0 && b < a) ? b : a;
}


static uint64_t
tick_flow_due(const flow_t *flow)
{
    size_t    i;
    uint64_t  due;

    if (flow->tell_rewind || flow->tell_lost) {
        return flows_now(flow->flows);
    }

    due = tick_least(tick_wait_ns(flow), tick_idle_ns(flow));

    for (i = 0; i < flow->nhops; i++) {
        due = tick_least(due, tick_hop_due(flow->hops[i]));
    }

    return due;
}


void
flows_tick(flows_t *flows)
{
    flow_t    *flow;
    uint64_t   now, due;

    flows_enter(flows);
    flows->wake_ns = 0;
    now = flows_now(flows);

    for (flow = flows->first; flow != NULL; flow = flow->next) {
        if (!flow->is_closed) {
            tick_tell(flow);
        }
        if (!flow->is_closed && !flow->is_lost) {
            tick_flow(flow, now);
        }
    }

    due = audits_tick(flows, now);

    for (flow = flows->first; flow != NULL; flow = flow->next) {
        if (!flow->is_closed) {
            due = tick_least(due, tick_flow_due(flow));
        }
    }

    if (due != 0) {
        flows_due(flows, due);
    }

    flows_leave(flows);
}
