
/* Ranked candidates for the pick.  ranked.h has the idea. */

#include "core/policy/round.h"
#include "core/policy/ranked.h"


/* Adds a position to the best few; the last of these may drop out. */
static void
ranked_insert(llmgw_ranked_t *ranked, uint32_t position)
{
    uint32_t  i;

    if (ranked->nbest < LLMGW_RANKED_BEST) {
        ranked->nbest++;
    }

    for (i = ranked->nbest - 1;
         i > 0 && llmgw_ranked_is_before(ranked, position,
                                         ranked->best[i - 1]);
         i--)
    {
        ranked->best[i] = ranked->best[i - 1];
    }

    ranked->best[i] = position;
}


void
llmgw_ranked_init(llmgw_ranked_t *ranked, llmgw_peer_state_t state,
    const uint32_t *peers, const double *ranks, uint32_t n,
    const uint64_t *random)
{
    uint32_t  i;

    ranked->ranks = ranks;
    ranked->random = random;
    ranked->peers = peers;
    ranked->n = n;
    ranked->state = state;
    ranked->nbest = 0;
    ranked->is_drawn = 0;
    ranked->ndraws = 0;

    for (i = 0; i < n; i++) {
        if (ranked->nbest < LLMGW_RANKED_BEST
            || llmgw_ranked_is_before(ranked, i,
                                      ranked->best[LLMGW_RANKED_BEST - 1]))
        {
            ranked_insert(ranked, i);
        }
    }
}


int
llmgw_ranked_has_eligible(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key)
{
    uint32_t               i;
    const llmgw_ranked_t  *ranked;

    ranked = pool->ranked;

    for (i = 0; i < ranked->nbest; i++) {
        if (llmgw_peer_lacks(pool, key, ranked->state,
                             ranked->peers[ranked->best[i]])
            == LLMGW_LACKS_NOTHING)
        {
            return 1;
        }
    }

    return 0;
}


/*
 * A claim that starts over has drawn the best few already: the survey covers
 * them.
 */
int
llmgw_find_first(llmgw_round_t *round, llmgw_picked_t *picked)
{
    uint32_t         i, position;
    llmgw_lacks_t    lacks;
    llmgw_ranked_t  *ranked;

    ranked = round->pool->ranked;
    round->find = (llmgw_find_t) { 0, UINT32_MAX };

    if (round->state != ranked->state || ranked->is_drawn) {
        return 0;
    }

    ranked->is_drawn = 1;

    for (i = 0; i < ranked->nbest; i++) {
        position = ranked->best[i];
        lacks = llmgw_peer_lacks(round->pool, round->key, round->state,
                                 ranked->peers[position]);

        if (lacks == LLMGW_LACKS_NOTHING) {
            picked->peer = ranked->peers[position];
            picked->route = LLMGW_ROUTE_POLICY;
            return 1;
        }

        ranked->draws[ranked->ndraws++] = (llmgw_draw_t) { position, lacks };
    }

    return 0;
}


/* Candidates ascend like peers, so both are walked side by side. */
void
llmgw_find_note(llmgw_round_t *round, uint32_t peer)
{
    llmgw_find_t          *find = &round->find;
    const llmgw_ranked_t  *ranked;

    ranked = round->pool->ranked;

    if (round->state != ranked->state) {
        return;
    }

    while (find->next < ranked->n && ranked->peers[find->next] < peer) {
        find->next++;
    }

    if (find->next < ranked->n && ranked->peers[find->next] == peer
        && (find->best == UINT32_MAX
            || llmgw_ranked_is_before(ranked, find->next, find->best)))
    {
        find->best = find->next;
    }
}


int
llmgw_find_best(llmgw_round_t *round, llmgw_picked_t *picked)
{
    if (round->find.best == UINT32_MAX) {
        return 0;
    }

    picked->peer = round->pool->ranked->peers[round->find.best];
    picked->route = LLMGW_ROUTE_POLICY;

    return 1;
}


uint32_t
llmgw_ranked_position(const llmgw_ranked_t *ranked, uint32_t peer)
{
    uint32_t  from, to, middle;

    from = 0;
    to = ranked->n;

    while (from < to) {
        middle = from + (to - from) / 2;

        if (ranked->peers[middle] == peer) {
            return middle;
        }

        if (ranked->peers[middle] < peer) {
            from = middle + 1;

        } else {
            to = middle;
        }
    }

    return UINT32_MAX;
}
