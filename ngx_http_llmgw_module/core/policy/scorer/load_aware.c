
/*
 * load-aware: an empty queue scores 0.5, a queue of 128 or more 0, as in
 * llm-d.
 */

#include "core/policy/score.h"


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


const llmgw_scorer_t  llmgw_scorer_load_aware = {
    "load-aware", 0, score_load_aware
};
