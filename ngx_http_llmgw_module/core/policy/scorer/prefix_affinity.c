
/*
 * prefix-affinity: the share of the prompt that the router has sent there
 * before, which may be more or less than the replica's cache still has.
 */

#include "core/policy/score.h"


static void
score_prefix_affinity(const llmgw_scoring_t *scoring, double *scores)
{
    double    nblocks;
    uint32_t  i;

    nblocks = scoring->nblocks;

    for (i = 0; i < scoring->n; i++) {
        scores[i] = scoring->nblocks == 0 ? 0
                    : scoring->matched[scoring->candidates[i].replica]
                      / nblocks;
    }
}


const llmgw_scorer_t  llmgw_scorer_prefix_affinity = {
    "prefix-affinity", LLMGW_NEEDS_MATCHED, score_prefix_affinity
};
