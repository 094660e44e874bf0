
/* queue-depth: prefers the replica with the shortest queue. */

#include "core/policy/scorer/spread.h"


static int64_t
queue_depth(const llmgw_candidate_t *candidate)
{
    return candidate->queue_depth;
}


static void
score_queue_depth(const llmgw_scoring_t *scoring, double *scores)
{
    spread_least(scoring, scores, queue_depth);
}


const llmgw_scorer_t  llmgw_scorer_queue_depth = {
    "queue-depth", 0, score_queue_depth
};
