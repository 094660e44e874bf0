
/* kv-utilization: prefers the replica with the most free KV memory. */

#include "core/policy/score.h"


static void
score_kv_utilization(const llmgw_scoring_t *scoring, double *scores)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        scores[i] = 1 - scoring->candidates[i].kv_utilization;
    }
}


const llmgw_scorer_t  llmgw_scorer_kv_utilization = {
    "kv-utilization", 0, score_kv_utilization
};
