
/*
 * Which flow may build a pipeline, or replay, now.
 *
 * Flows wait in one queue, in the order in which they asked.  A flow needs one
 * of SHARD_BUILDS_MAX places and, for a replay, the turn of each shard of its
 * path.  It gets all of that at once or nothing, and has nothing while it
 * waits, so no two flows wait for each other.  A turn that an earlier flow
 * waits for is promised to it, so a replay over several shards is not overtaken
 * for ever.
 *
 * A path that was found when the flow began to wait may not exist any more when
 * its turn comes, so it is found again.
 */

#include "replica/shard/flow/flow_inner.h"


void
turn_end_place(flow_t *flow)
{
    if (flow->has_place) {
        flow->has_place = 0;
        flow->flows->building--;
        flow->flows->is_turn_due = 1;
    }
}


void
turn_end(hop_t *hop)
{
    if (hop->shard != NULL && hop->shard->turn == hop->flow) {
        hop->shard->turn = NULL;
        hop->flow->flows->is_turn_due = 1;
    }
}


void
turn_give_back(flow_t *flow)
{
    size_t  i;

    turn_end_place(flow);

    for (i = 0; i < flow->nhops; i++) {
        turn_end(flow->hops[i]);
    }
}


void
turn_ask(flow_t *flow)
{
    flow_t   **link;
    flows_t   *flows;
    uint64_t   now;

    flows = flow->flows;
    now = flows_now(flows);

    turn_give_back(flow);

    for (link = &flows->queue; *link != NULL; link = &(*link)->behind) {
        /* void */
    }

    *link = flow;
    flow->behind = NULL;
    flow->is_waiting = 1;
    flow->since_ns = now;
    flows->is_turn_due = 1;
    flows_due(flows, now + FLOW_TURN_MS * 1000000ULL);
}


static void
turn_unqueue(flow_t *flow)
{
    flow_t  **link;

    if (!flow->is_waiting) {
        return;
    }

    for (link = &flow->flows->queue; *link != flow; link = &(*link)->behind) {
        /* void */
    }

    *link = flow->behind;
    flow->is_waiting = 0;
}


void
turn_leave(flow_t *flow)
{
    turn_unqueue(flow);
    turn_give_back(flow);
}


void
turn_built(flow_t *flow)
{
    size_t    i;
    uint64_t  now;

    for (i = 0; i < flow->nhops; i++) {
        if (flow->hops[i]->state == HOP_OPENING) {
            return;
        }
    }

    turn_end_place(flow);

    if (!flow->is_built) {
        flow->is_built = 1;
        now = flows_now(flow->flows);
        histogram_record_recent(&flow->flows->construct,
                                (now - flow->opened_ns) / 1000);
    }
}


/* 1: the turns of the flow's path are free, and not promised to another
   flow. */
static int
turn_is_free(const flow_t *flow)
{
    size_t               i;
    const flow_shard_t  *shard;

    for (i = 0; plan_is_replay(flow) && i < flow->path.n; i++) {
        shard = flow_shards_find(&flow->flows->shards, flow->path.hops[i].id);

        if (shard != NULL
            && (shard->turn != NULL || shard->claim == flow->flows->round))
        {
            return 0;
        }
    }

    return 1;
}


static void
turn_claim(flow_t *flow)
{
    size_t         i;
    flow_shard_t  *shard;

    for (i = 0; i < flow->path.n; i++) {
        shard = flow_shards_enter(&flow->flows->shards, &flow->path.hops[i]);

        if (shard != NULL) {
            shard->claim = flow->flows->round;
            flow_shard_leave(shard);
        }
    }
}


static void
turn_try(flow_t *flow)
{
    flows_t  *flows;

    flows = flow->flows;

    if (turn_is_free(flow) && flow_find(flow) != 0) {
        return;                             /* the flow is lost */
    }

    if (!turn_is_free(flow)) {
        turn_claim(flow);
        return;
    }

    turn_unqueue(flow);
    flow->has_place = 1;
    flow->since_ns = flows_now(flows);
    flow->moved_ns = flow->since_ns;
    flows->turned_ns = flow->since_ns;
    flows->building++;
    flows_due(flows, flow->since_ns + FLOW_HELD_MS * 1000000ULL);
    plan_build(flow);
}


void
turn_round(flows_t *flows)
{
    flow_t  *flow, *behind;

    flows->round++;

    for (flow = flows->queue; flow != NULL; flow = behind) {
        behind = flow->behind;

        if (flows->building == SHARD_BUILDS_MAX) {
            break;
        }

        turn_try(flow);
    }
}
