
/*
 * Which hops replace one that was lost.
 *
 * It is the narrowest stretch of hops around the lost one that a path of shards
 * covers: the lost one alone, then with a neighbour, and so on up to all.  A
 * stretch can begin where the input is there from position 0 on: at a boundary
 * with a history, or before the first hop, whose rows can be had again.  Hops
 * after the stretch stay: rows that they have already are dropped before they
 * reach them.
 */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "replica/shard/flow/flow_inner.h"


static int
plan_may_begin(const flow_t *flow, size_t from)
{
    return from == 0 || flow->hops[from]->in.base == 0;
}


/* 1: the path has the same boundaries as the hops that it replaces. */
static int
plan_keeps_cuts(const flow_t *flow)
{
    size_t  i;

    if (flow->path.n != flow->to - flow->from) {
        return 0;
    }

    for (i = 0; i < flow->path.n; i++) {
        if (flow->path.hops[i].first != flow->hops[flow->from + i]->at.first) {
            return 0;
        }
    }

    return 1;
}


/* Checks whether this flow can use the path that the fleet has found. */
static fleet_rc_t
plan_judge(flow_t *flow)
{
    const flows_options_t  *options;

    options = &flow->flows->options;

    if (flow->nhops - (flow->to - flow->from) + flow->path.n
        > SHARD_HOPS_MAX)
    {
        snprintf(flow->path.why, sizeof(flow->path.why),
                 "more than %d shards", SHARD_HOPS_MAX);
        return FLEET_TOO_LONG;
    }

    if (options->is_rounded && flow->hops[0]->shard != NULL
        && !plan_keeps_cuts(flow))
    {
        snprintf(flow->path.why, sizeof(flow->path.why),
                 "other cuts give other bits with fp16");
        return FLEET_GAP;
    }

    return FLEET_FOUND;
}


/*
 * Lists the shards that the flow excludes now; returns their number.  With a
 * fallback, it prefers that to a shard that was late for it, or has failed
 * others.
 */
static size_t
plan_excluded(const flow_t *flow, plan_with_t with, uint64_t *keys)
{
    int       is_last_asked;
    size_t    i, n;
    uint64_t  now;

    n = 0;
    now = flows_now(flow->flows);
    is_last_asked = with != PLAN_SURE && !flow->flows->options.has_fallback;

    for (i = 0; i < flow->nexcluded; i++) {
        if (now < flow->excluded[i].until_ns
            && (!flow->excluded[i].is_last || !is_last_asked))
        {
            keys[n++] = flow->excluded[i].key;
        }
    }

    return n;
}


static fleet_rc_t
plan_ask(flow_t *flow, size_t from, size_t to, plan_with_t with)
{
    size_t         i;
    uint32_t       keep[SHARD_HOPS_MAX];
    uint64_t       excluded[FLOW_EXCLUDED_MAX];
    fleet_rc_t     rc;
    fleet_query_t  query;

    static const unsigned  avoid[] = {
        [PLAN_SURE] = FLEET_WITH_LATE|FLEET_WITH_SUSPECT|FLEET_WITH_FAILED,
        [PLAN_LATE] = FLEET_WITH_SUSPECT|FLEET_WITH_FAILED,
        [PLAN_FAILED] = FLEET_WITH_SUSPECT,
        [PLAN_SUSPECT] = FLEET_WITH_FAILED,
        [PLAN_ANY] = 0
    };

    query = (fleet_query_t) {
        .from_layer = flow->hops[from]->at.first,
        .to_layer = flow->hops[to - 1]->at.last,
        .keep = keep,
        .excluded = excluded,
        .nexcluded = plan_excluded(flow, with, excluded),
        .avoid = avoid[with]
                 | (flow->flows->options.has_fallback ? FLEET_WITH_FAILED : 0)
    };

    for (i = from + 1; i < to; i++) {
        keep[query.nkeep++] = flow->hops[i]->at.first;
    }

    rc = flow->flows->world->find(flow->flows->fleet, &query, &flow->path);

    flow->from = from;
    flow->to = to;

    return rc == FLEET_FOUND ? plan_judge(flow) : rc;
}


/* The last query is for all layers: its result is the reason. */
fleet_rc_t
plan_find(flow_t *flow, const hop_t *lost, plan_with_t with)
{
    size_t      width, from, first;
    fleet_rc_t  rc;

    rc = FLEET_GAP;

    for (width = 1; width <= flow->nhops; width++) {
        first = lost->index + 1 > width ? lost->index + 1 - width : 0;

        for (from = lost->index + 1; from-- > first; /* void */) {
            if (from + width > flow->nhops || !plan_may_begin(flow, from)) {
                continue;
            }

            rc = plan_ask(flow, from, from + width, with);

            if (rc == FLEET_FOUND) {
                return rc;
            }
        }
    }

    return rc;
}


/* Uses a copy of the flow, since the flow's own plan may be waiting for a
   turn. */
int
plan_has_detour(const hop_t *hop, plan_with_t with)
{
    flow_t  flow;

    flow = *hop->flow;

    if (flow.failovers >= FLOW_FAILOVERS_MAX
        || flow.nexcluded == FLOW_EXCLUDED_MAX)
    {
        return 0;
    }

    flow.excluded[flow.nexcluded++]
        = (flow_excluded_t) { hop->at.key, UINT64_MAX, 0 };

    return plan_find(&flow, hop, with) == FLEET_FOUND;
}


static uint32_t
plan_replay_to(const flow_t *flow)
{
    size_t    i;
    uint32_t  to;

    to = 0;

    for (i = flow->from; i < flow->to; i++) {
        if (flow->hops[i]->next > to) {
            to = flow->hops[i]->next;
        }
    }

    return to;
}


int
plan_is_replay(const flow_t *flow)
{
    return plan_replay_to(flow) > 0;
}


static void
plan_log(const flow_t *flow, uint32_t replay_to, int is_rewind)
{
    size_t              i;
    const fleet_hop_t  *hop;

    for (i = 0; replay_to > 0 && i < flow->path.n; i++) {
        hop = &flow->path.hops[i];
        log_write(flow->flows->log, LOG_INFO, "shard \"%s\" (layers %u-%u)"
                  " takes over stream %016" PRIx64 ", and computes %u positions"
                  " from %s first", hop->id, hop->first, hop->last, flow->name,
                  replay_to, is_rewind ? "the tokens" : "the history");
    }
}


/* Asks for the first hop's rows again, with which new histories begin. */
static void
plan_rewind(flow_t *flow)
{
    rows_done(&flow->hops[0]->in);
    flow->ntodo = 0;
    flow->end = 0;
    flow->is_kept = 1;
    flow->tell_rewind = 1;
    flow->flows->rewinds++;
    flows_due(flow->flows, flows_now(flow->flows));
}


static int
plan_create(flow_t *flow, hop_t **hops)
{
    size_t  i;

    for (i = 0; i < flow->path.n; i++) {
        hops[i] = hop_create(flow, &flow->path.hops[i]);

        if (hops[i] == NULL) {
            while (i > 0) {
                hop_destroy(hops[--i]);
            }
            return -1;
        }
    }

    return 0;
}


/* Puts hops in place of those from `from` to `to`; the first one gets the input
   of the first that it replaces. */
static void
plan_put(flow_t *flow, hop_t **hops)
{
    rows_t  in;
    size_t  i;

    in = hops[0]->in;
    hops[0]->in = flow->hops[flow->from]->in;
    flow->hops[flow->from]->in = in;

    for (i = flow->from; i < flow->to; i++) {
        hop_destroy(flow->hops[i]);
    }

    memmove(flow->hops + flow->from + flow->path.n, flow->hops + flow->to,
            (flow->nhops - flow->to) * sizeof(hop_t *));
    memcpy(flow->hops + flow->from, hops, flow->path.n * sizeof(hop_t *));
    flow->nhops = flow->nhops - (flow->to - flow->from) + flow->path.n;

    for (i = 0; i < flow->nhops; i++) {
        flow->hops[i]->index = i;
    }
}


static int
plan_open(flow_t *flow, uint32_t replay_to)
{
    size_t  i;
    hop_t  *hop;

    for (i = 0; i < flow->path.n; i++) {
        hop = flow->hops[flow->from + i];
        hop->replay_to = replay_to;
        hop->built_answers = flow->answers;

        if (replay_to > 0) {
            hop->shard->turn = flow;
        }

        if (hop_open(hop) != 0) {
            return -1;
        }
    }

    return 0;
}


void
plan_build(flow_t *flow)
{
    int        is_rewind;
    hop_t     *hops[SHARD_HOPS_MAX];
    uint32_t   replay_to;

    replay_to = plan_replay_to(flow);
    is_rewind = flow->from == 0 && flow->hops[0]->in.base > 0;

    if (plan_create(flow, hops) != 0) {
        flow_lose(flow, "out_of_memory", "no memory for a pipeline");
        return;
    }

    plan_log(flow, replay_to, is_rewind);

    if (is_rewind) {
        plan_rewind(flow);
    }

    if (replay_to > 0) {
        flow->flows->replays++;
    }

    plan_put(flow, hops);

    if (plan_open(flow, replay_to) != 0) {
        flow_lose(flow, "out_of_memory", "no memory for a session");

    } else if (flow->path.n == flow->nhops && replay_to == 0) {
        audits_begin(flow);
    }
}
