
/* The table of scorers. */

#include "core/policy/name.h"
#include "core/policy/score.h"


const llmgw_scorer_t *const  llmgw_scorers[LLMGW_NSCORERS] = {
    &llmgw_scorer_active_requests,
    &llmgw_scorer_effective_load,
    &llmgw_scorer_kv_utilization,
    &llmgw_scorer_load_aware,
    &llmgw_scorer_load_balance,
    &llmgw_scorer_lora_affinity,
    &llmgw_scorer_no_hit_lru,
    &llmgw_scorer_precise_prefix_cache,
    &llmgw_scorer_prefix_affinity,
    &llmgw_scorer_queue_depth,
    &llmgw_scorer_running_requests,
    &llmgw_scorer_vllm_dp
};


const llmgw_scorer_t *
llmgw_scorer_find(const char *name, size_t len)
{
    size_t  i;

    for (i = 0; i < LLMGW_NSCORERS; i++) {
        if (llmgw_name_is(llmgw_scorers[i]->name, name, len)) {
            return llmgw_scorers[i];
        }
    }

    return NULL;
}


int
llmgw_scoring_is_cold(const llmgw_scoring_t *scoring)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        if (scoring->candidates[i].cached != 0) {
            return 0;
        }
    }

    return 1;
}
