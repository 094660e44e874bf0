
/*
 * lora-affinity: who has the request's adapter loaded.  A request without one
 * asks nothing, so all are equal.
 */

#include "core/policy/scorer/spread_inner.h"


static int64_t
has_adapter(const llmgw_candidate_t *candidate)
{
    return candidate->has_adapter != 0;
}


static void
score_lora_affinity(const llmgw_scoring_t *scoring, double *scores)
{
    if (!scoring->wants_adapter) {
        spread_all(scoring, scores, 1);
        return;
    }

    spread_most(scoring, scores, has_adapter);
}


const llmgw_scorer_t  llmgw_scorer_lora_affinity = {
    "lora-affinity", LLMGW_NEEDS_ADAPTER, score_lora_affinity
};
