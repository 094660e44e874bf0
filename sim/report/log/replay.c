
/*
 * A logged decision, made once more.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/log/replay.h"


static int
replay_grow(report_replay_t *r, uint32_t n)
{
    if (n <= r->max) {
        return 0;
    }

    report_replay_done(r);

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
 * Who got a cold request when: the ranks in the log are an order, and that is
 * all the scorer reads.  So the list is made of it, the lowest the oldest.
 */
static int
replay_cold(report_replay_t *r, const report_log_entry_t *e)
{
    uint32_t   i, at, *order;

    order = r->matched;         /* not yet in use */
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
replay_has_all(const report_log_entry_t *e, const llmgw_ranker_t *ranker)
{
    uint32_t  i;
    unsigned  needs;

    needs = llmgw_rank_needs(ranker);

    if (e->n == 0 || e->n != e->of
        || (ranker->policy == LLMGW_RANK_ROUND_ROBIN && !e->has_turn))
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
    const llmgw_ranker_t *ranker, uint32_t *best)
{
    uint32_t         i;
    llmgw_ranker_t   with;
    llmgw_scoring_t  scoring;

    if (!replay_has_all(entry, ranker)) {
        return REPORT_REPLAY_LACKS;
    }

    if (replay_grow(replay, entry->n) != 0) {
        return REPORT_REPLAY_NO_MEMORY;
    }

    if ((llmgw_rank_needs(ranker) & LLMGW_NEEDS_COLD)
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

    with = *ranker;
    with.turn = entry->turn;
    llmgw_rank(&with, &scoring, replay->ranks, replay->scores);

    for (i = 0; i < entry->n; i++) {
        if (entry->candidates[i].has_failed) {
            replay->ranks[i] = -INFINITY;
        }
    }

    *best = llmgw_rank_best(replay->ranks, entry->n,
                            entry->has_random ? &entry->random : NULL);

    return REPORT_REPLAYED;
}


void
report_replay_done(report_replay_t *replay)
{
    free(replay->ranks);
    free(replay->scores);
    free(replay->matched);
    free(replay->cold);
    memset(replay, 0, sizeof(*replay));
}
