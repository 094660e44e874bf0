
/*
 * load-balance: the inverse of the load.  Unlike min-max it weighs a difference
 * by the load: much among idle replicas, little among busy ones.
 */

#include "core/policy/score.h"


static void
score_load_balance(const llmgw_scoring_t *scoring, double *scores)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        scores[i] = 1 / (1 + (double) llmgw_candidate_load(
                                  &scoring->candidates[i]));
    }
}


const llmgw_scorer_t  llmgw_scorer_load_balance = {
    "load-balance", 0, score_load_balance
};
