
/* Policies that read the fleet.  rank.h has the rules. */

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "core/policy/lot.h"
#include "core/policy/name.h"
#include "core/policy/rank.h"


static const char *const  policies[] = {
    [LLMGW_RANK_ROUND_ROBIN] = "round-robin",
    [LLMGW_RANK_LEAST_LOADED] = "least-loaded",
    [LLMGW_RANK_ALWAYS_BUSIEST] = "always-busiest",
    [LLMGW_RANK_WEIGHTED] = "weighted",
    [LLMGW_RANK_AFFINITY] = "affinity"
};


int
llmgw_rank_policy(const char *name, size_t len, llmgw_rank_policy_t *policy)
{
    int  found;

    found = llmgw_name_find(policies, sizeof(policies) / sizeof(policies[0]),
                            name, len);
    if (found == -1) {
        return -1;
    }

    *policy = (llmgw_rank_policy_t) found;

    return 0;
}


const char *
llmgw_rank_policy_name(llmgw_rank_policy_t policy)
{
    return policies[policy];
}


unsigned
llmgw_rank_needs(const llmgw_ranker_t *ranker)
{
    return ranker->policy == LLMGW_RANK_WEIGHTED ? ranker->weighted.needs : 0;
}


static void
rank_by_turn(const llmgw_ranker_t *ranker, uint32_t n, double *ranks)
{
    uint32_t  i, turn;

    turn = n == 0 ? 0 : (uint32_t) (ranker->turn % n);

    for (i = 0; i < n; i++) {
        ranks[i] = -(double) (i >= turn ? i - turn : i + n - turn);
    }
}


static void
rank_by_load(const llmgw_scoring_t *scoring, double sign, double *ranks)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        ranks[i] = sign
                   * (double) llmgw_candidate_load(&scoring->candidates[i]);
    }
}


/* All candidates are eligible; replicas that are none are not. */
static llmgw_pick_pool_t
rank_pool(const llmgw_rank_ring_t *ring, const llmgw_scoring_t *scoring)
{
    uint32_t             i;
    size_t               n;
    llmgw_pick_peer_t   *peer;

    n = llmgw_ring_nnodes(ring->ring);
    memset(ring->peers, 0, n * sizeof(llmgw_pick_peer_t));

    for (i = 0; i < scoring->n; i++) {
        peer = &ring->peers[scoring->candidates[i].replica];
        peer->state = LLMGW_PEER_ALIVE;
        peer->weight = 1;
        peer->foreign = (uint32_t) scoring->candidates[i].in_flight;
    }

    return (llmgw_pick_pool_t) {
        .ring = ring->ring, .peers = ring->peers, .npeers = n,
        .load_factor_permille = ring->load_factor_permille,
        .min_load = ring->min_load
    };
}


static void
rank_by_ring(const llmgw_rank_ring_t *ring, const llmgw_scoring_t *scoring,
    double *ranks)
{
    uint32_t           i;
    llmgw_picked_t     picked;
    llmgw_pick_key_t   key = { .hash = scoring->key, .random = scoring->key };
    llmgw_pick_pool_t  pool;

    pool = rank_pool(ring, scoring);
    picked.peer = UINT32_MAX;
    (void) llmgw_pick(&pool, &key, &picked);

    for (i = 0; i < scoring->n; i++) {
        ranks[i] = scoring->candidates[i].replica == picked.peer;
    }
}


void
llmgw_rank(const llmgw_ranker_t *ranker, const llmgw_scoring_t *scoring,
    double *ranks, double *scores)
{
    switch (ranker->policy) {

    case LLMGW_RANK_ROUND_ROBIN:
        rank_by_turn(ranker, scoring->n, ranks);
        return;

    case LLMGW_RANK_LEAST_LOADED:
        rank_by_load(scoring, -1, ranks);
        return;

    case LLMGW_RANK_ALWAYS_BUSIEST:
        rank_by_load(scoring, 1, ranks);
        return;

    case LLMGW_RANK_WEIGHTED:
        llmgw_weighted_rank(&ranker->weighted, scoring, ranks, scores);
        return;

    case LLMGW_RANK_AFFINITY:
        rank_by_ring(&ranker->ring, scoring, ranks);
        return;
    }
}


/* As llmgw_order_next() would begin. */

uint32_t
llmgw_rank_best(const double *ranks, uint32_t n, const uint64_t *random)
{
    uint32_t  i, best;

    if (n == 0) {
        return LLMGW_RANK_NONE;
    }

    best = 0;

    for (i = 1; i < n; i++) {
        if (ranks[i] > ranks[best]
            || (ranks[i] == ranks[best] && random != NULL
                && llmgw_lot(*random, i) < llmgw_lot(*random, best)))
        {
            best = i;
        }
    }

    return best;
}


void
llmgw_rank_note(llmgw_ranker_t *ranker, const llmgw_scoring_t *scoring,
    uint32_t chosen)
{
    unsigned  needs;

    ranker->turn++;
    needs = llmgw_rank_needs(ranker);

    if (needs & LLMGW_NEEDS_MATCHED) {
        llmgw_prefix_record(ranker->index,
                            scoring->candidates[chosen].replica,
                            scoring->blocks, scoring->nblocks);
    }

    if (needs & LLMGW_NEEDS_COLD && llmgw_scoring_is_cold(scoring)) {
        llmgw_cold_note(ranker->cold, scoring->candidates, scoring->n,
                        chosen);
    }
}


void
llmgw_rank_reason(const llmgw_ranker_t *ranker, const llmgw_scoring_t *scoring,
    const double *ranks, uint32_t chosen,
    char reason[LLMGW_RANK_REASON_BYTES])
{
    int64_t  load;

    load = llmgw_candidate_load(&scoring->candidates[chosen]);

    switch (ranker->policy) {

    case LLMGW_RANK_ROUND_ROBIN:
        (void) snprintf(reason, LLMGW_RANK_REASON_BYTES,
                        "round-robin[%" PRIu64 "]", ranker->turn);
        return;

    case LLMGW_RANK_LEAST_LOADED:
    case LLMGW_RANK_ALWAYS_BUSIEST:
    case LLMGW_RANK_AFFINITY:
        (void) snprintf(reason, LLMGW_RANK_REASON_BYTES,
                        "%s (load=%" PRId64 ")", policies[ranker->policy],
                        load);
        return;

    case LLMGW_RANK_WEIGHTED:
        (void) snprintf(reason, LLMGW_RANK_REASON_BYTES,
                        "weighted-scoring (score=%.3f)", ranks[chosen]);
        return;
    }
}
