
/*
 * vllm-dp: how vLLM spreads requests over its own data-parallel engines.  One
 * that waits weighs as much as four that run.
 */

#include "core/policy/scorer/spread_inner.h"


static int64_t
waiting_and_running(const llmgw_candidate_t *candidate)
{
    return (int64_t) candidate->queue_depth * 4 + candidate->batch_size;
}


static void
score_vllm_dp(const llmgw_scoring_t *scoring, double *scores)
{
    spread_least(scoring, scores, waiting_and_running);
}


const llmgw_scorer_t  llmgw_scorer_vllm_dp = {
    "vllm-dp", 0, score_vllm_dp
};
