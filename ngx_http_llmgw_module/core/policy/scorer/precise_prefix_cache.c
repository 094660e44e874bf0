
/*
 * precise-prefix-cache: prefers the replica whose KV cache has the most of the
 * prompt.
 */

#include "core/policy/scorer/spread.h"


static int64_t
cached(const llmgw_candidate_t *candidate)
{
    return candidate->cached;
}


static void
score_precise_prefix_cache(const llmgw_scoring_t *scoring, double *scores)
{
    spread_most(scoring, scores, cached);
}


const llmgw_scorer_t  llmgw_scorer_precise_prefix_cache = {
    "precise-prefix-cache", LLMGW_NEEDS_CACHED, score_precise_prefix_cache
};
