
/*
 * Least load: the eligible peer with the least load for its weight, ties by
 * lots from the request's random number.
 */

#include "core/policy/lot.h"
#include "core/policy/policy.h"


typedef struct {
    uint32_t  n;                /* eligible so far */
    uint32_t  peer;             /* the best of them */
    uint64_t  load;
    uint64_t  weight;
    uint64_t  lot;
} least_t;

_Static_assert(sizeof(least_t) <= LLMGW_POLICY_SCRATCH, "a policy's scratch");


static void
least_compare(least_t *least, const llmgw_policy_round_t *round, uint32_t i)
{
    uint64_t                  load, weight, lot, mine, best;
    const llmgw_pick_peer_t  *peer;

    peer = &round->pool->peers[i];
    load = llmgw_peer_load(peer);
    weight = llmgw_peer_weight(peer);

    mine = load * least->weight;
    best = least->load * weight;

    if (least->n++ != 0 && mine > best) {
        return;
    }

    lot = llmgw_lot(round->key->random, i);

    if (least->n > 1 && mine == best && lot >= least->lot) {
        return;
    }

    least->peer = i;
    least->load = load;
    least->weight = weight;
    least->lot = lot;
}


static int
least_begin(const llmgw_policy_round_t *round, void *scratch,
    llmgw_picked_t *picked)
{
    least_t  *least = scratch;

    *least = (least_t) { 0 };

    return 0;
}


static void
least_note(const llmgw_policy_round_t *round, void *scratch,
    const uint32_t *peers, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        least_compare(scratch, round, peers[i]);
    }
}


static int
least_choose(const llmgw_policy_round_t *round, void *scratch,
    llmgw_picked_t *picked)
{
    least_t  *least = scratch;

    if (least->n == 0) {
        return 0;
    }

    picked->peer = least->peer;
    picked->route = LLMGW_ROUTE_LEAST_CONN;

    return 1;
}


const llmgw_policy_t  llmgw_policy_least_load = {
    least_begin, least_note, least_choose
};
