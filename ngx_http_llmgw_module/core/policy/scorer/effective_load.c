
/*
 * effective-load: the least load, which is what waits and runs in the replica
 * and what this gateway has in flight there.  The gateway's own requests count
 * twice, those of others once and as late as the replica reports them.
 */

#include "core/policy/scorer/spread.h"


static void
score_effective_load(const llmgw_scoring_t *scoring, double *scores)
{
    spread_least(scoring, scores, llmgw_candidate_load);
}


const llmgw_scorer_t  llmgw_scorer_effective_load = {
    "effective-load", 0, score_effective_load
};
