
/*
 * Repeats a logged decision.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/log/replay.h"


static void
replay_free(report_replay_t *r)
{
    free(r->ranks);
    free(r->scores);
    free(r->matched);
    free(r->cold);
    r->max = 0;
}


/* Provides memory for n candidates; 0, or -1. */
int
report_replay_grow(report_replay_t *r, uint32_t n)
{
    if (n <= r->max) {
        return 0;
    }

    replay_free(r);

    r->ranks = calloc(n, sizeof(double));
    r->scores = calloc(n, sizeof(double));
    r->matched = calloc(n, sizeof(uint32_t));
    r->cold = calloc(1, llmgw_cold_bytes(n));

    if (r->ranks == NULL || r->scores == NULL || r->matched == NULL
        || r->cold == NULL)
    {
        return -1;
    }

    r->max = n;

    return 0;
}


/*
 * Restores the order in which replicas got cold requests.  The logged ranks are
 * this order, which is all that the scorer reads: the lowest is the oldest.
 */
static int
replay_cold(report_replay_t *r, const report_log_entry_t *e)
{
    uint32_t   i, at, *order;

    order = r->matched;         /* matched[] is not in use yet */
    memset(order, 0xff, e->n * sizeof(*order));

    for (i = 0; i < e->n; i++) {
        if (!(e->candidates[i].cold >= 0 && e->candidates[i].cold < e->n)
            || order[(uint32_t) e->candidates[i].cold] != UINT32_MAX)
        {
            return -1;
        }

        order[(uint32_t) e->candidates[i].cold] = i;
    }

    memset(r->cold, 0, llmgw_cold_bytes(r->max));
    llmgw_cold_init(r->cold, r->max);

    for (i = 0; i < e->n; i++) {
        at = order[i];
        r->cold->links[at].is_listed = 1;
        r->cold->links[at].older = i == 0 ? 0 : order[i - 1] + 1;
        r->cold->links[at].newer = i + 1 == e->n ? 0 : order[i + 1] + 1;
    }

    r->cold->oldest = order[0] + 1;
    r->cold->newest = order[e->n - 1] + 1;

    return 0;
}


static int
replay_has_all(const report_log_entry_t *e, const fleet_policy_t *policy)
{
    uint32_t  i;
    unsigned  needs;

    needs = llmgw_rank_needs(&policy->ranker);

    if (e->n == 0 || e->n != e->of
        || (policy->ranker.policy == LLMGW_RANK_ROUND_ROBIN && !e->has_turn))
    {
        return 0;
    }

    for (i = 0; i < e->n; i++) {
        if (needs & ~e->candidates[i].has) {
            return 0;
        }
    }

    return 1;
}


report_replay_rc_t
report_replay(report_replay_t *replay, const report_log_entry_t *entry,
    const fleet_policy_t *policy, uint32_t *best)
{
    uint32_t         i;
    fleet_policy_t   with;
    llmgw_scoring_t  scoring;

    if (!replay_has_all(entry, policy)) {
        return REPORT_REPLAY_LACKS;
    }

    if (report_replay_grow(replay, entry->n) != 0) {
        return REPORT_REPLAY_NO_MEMORY;
    }

    if ((llmgw_rank_needs(&policy->ranker) & LLMGW_NEEDS_COLD)
        && replay_cold(replay, entry) != 0)
    {
        return REPORT_REPLAY_LACKS;
    }

    for (i = 0; i < entry->n; i++) {
        replay->matched[i] = entry->candidates[i].matched;
    }

    memset(&scoring, 0, sizeof(scoring));
    scoring.candidates = entry->facts;
    scoring.n = entry->n;
    scoring.nblocks = entry->nblocks;
    scoring.matched = replay->matched;
    scoring.cold = replay->cold;

    with = *policy;
    with.ranker.turn = entry->turn;
    fleet_policy_rank(&with, &scoring, replay->ranks, replay->scores);

    for (i = 0; i < entry->n; i++) {
        if (entry->candidates[i].has_failed) {
            replay->ranks[i] = -INFINITY;
        }
    }

    *best = fleet_policy_best(replay->ranks, entry->n,
                              entry->has_random ? &entry->random : NULL);

    return REPORT_REPLAYED;
}


/* Whether the candidates have the pick's inputs, not the policy's. */
static int
replay_is_by_pick(const report_log_entry_t *e)
{
    return e->n != 0 && e->candidates[0].has_pick;
}


/*
 * Whether the choice was forced: a replica was chosen though it was not
 * available.  When all circuits are open, one is tried, and ranks do not tell
 * which.
 */
static int
replay_is_forced(const report_log_entry_t *e)
{
    return e->n == e->of && e->candidates[e->chosen].has_failed;
}


report_replay_rc_t
report_replay_own(report_replay_t *replay, const report_log_entry_t *entry,
    uint32_t *best)
{
    if (entry->pool == NULL || entry->chosen == LLMGW_RANK_NONE) {
        return REPORT_REPLAY_LACKS;
    }

    switch (entry->pool->how) {

    case REPORT_LOG_RANKED:
        if (replay_is_by_pick(entry)) {
            return report_replay_pick(replay, entry, best);
        }

        return replay_is_forced(entry) ? REPORT_REPLAY_LACKS
               : report_replay(replay, entry, &entry->pool->policy, best);

    case REPORT_LOG_BY_RING:
        return report_replay_pick(replay, entry, best);

    default:
        return REPORT_REPLAY_LACKS;
    }
}


void
report_replay_done(report_replay_t *replay)
{
    replay_free(replay);
    report_pick_done(replay);
    memset(replay, 0, sizeof(*replay));
}
