
/* Scorers.  scorers.h has the formulas. */

#include "core/policy/scorer/spread.h"
#include "core/policy/weighted.h"
#include "sim/fleet/policy/scorers.h"


#define FULL_QUEUE  128


static void
score_load_aware(const llmgw_scoring_t *scoring, double *scores)
{
    int32_t   depth;
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        depth = scoring->candidates[i].queue_depth;
        depth = depth < FULL_QUEUE ? depth : FULL_QUEUE;

        scores[i] = 0.5 * (1 - (double) depth / FULL_QUEUE);
    }
}


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


static void
score_lora_affinity(const llmgw_scoring_t *scoring, double *scores)
{
    spread_all(scoring, scores, 1);
}


static void
score_effective_depth(const llmgw_scoring_t *scoring, double *scores)
{
    llmgw_scorer_effective_load.score(scoring, scores);
}


static const llmgw_scorer_t  load_aware = {
    "load-aware", 0, score_load_aware
};

static const llmgw_scorer_t  lora_affinity = {
    "lora-affinity", 0, score_lora_affinity
};

static const llmgw_scorer_t  vllm_dp = {
    "vllm-dp", 0, score_vllm_dp
};

const llmgw_scorer_t *const  fleet_scorers[] = {
    LLMGW_SCORERS, &load_aware, &lora_affinity, &vllm_dp, NULL
};

_Static_assert(sizeof(fleet_scorers) / sizeof(fleet_scorers[0])
               <= LLMGW_WEIGHTS_MAX + 1, "scorers of a table");

const llmgw_scorer_t  fleet_effective_depth = {
    "queue-depth", 0, score_effective_depth
};
