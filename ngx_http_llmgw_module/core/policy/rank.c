
/* Policies that read the fleet.  rank.h has the rules. */

#include "core/policy/name.h"
#include "core/policy/rank.h"


static const char *const  policies[] = {
    [LLMGW_RANK_ROUND_ROBIN] = "round-robin",
    [LLMGW_RANK_LEAST_LOADED] = "least-loaded",
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


const char *
llmgw_rank_policy_word(llmgw_rank_policy_t policy)
{
    static const char *const  words[] = {
        [LLMGW_RANK_ROUND_ROBIN] = "round_robin",
        [LLMGW_RANK_LEAST_LOADED] = "least_loaded",
        [LLMGW_RANK_WEIGHTED] = "weighted",
        [LLMGW_RANK_AFFINITY] = "affinity"
    };

    return words[policy];
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
rank_by_load(const llmgw_scoring_t *scoring, double *ranks)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        ranks[i] = -(double) llmgw_candidate_load(&scoring->candidates[i]);
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
        rank_by_load(scoring, ranks);
        return;

    case LLMGW_RANK_WEIGHTED:
        llmgw_weighted_rank(&ranker->weighted, scoring, ranks, scores);
        return;

    case LLMGW_RANK_AFFINITY:
        return;
    }
}
