
/*
 * no-hit-lru: spreads requests that no cache knows over the fleet, and scores
 * all replicas equal for others.
 */

#include "core/policy/score.h"


static void
score_no_hit_lru(const llmgw_scoring_t *scoring, double *scores)
{
    double    last;
    uint32_t  i;

    if (!llmgw_scoring_is_cold(scoring)) {
        for (i = 0; i < scoring->n; i++) {
            scores[i] = 0.5;
        }

        return;
    }

    llmgw_cold_rank(scoring->cold, scoring->candidates, scoring->n, scores);

    last = (double) scoring->n - 1;

    for (i = 0; i < scoring->n; i++) {
        scores[i] = scoring->n == 1 ? 1 : 1 - scores[i] / last;
    }
}


const llmgw_scorer_t  llmgw_scorer_no_hit_lru = {
    "no-hit-lru", LLMGW_NEEDS_CACHED | LLMGW_NEEDS_COLD, score_no_hit_lru
};
