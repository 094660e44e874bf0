
/* running-requests: prefers the replica that runs the fewest requests. */

#include "core/policy/scorer/spread.h"


static int64_t
batch_size(const llmgw_candidate_t *candidate)
{
    return candidate->batch_size;
}


static void
score_running_requests(const llmgw_scoring_t *scoring, double *scores)
{
    spread_least(scoring, scores, batch_size);
}


const llmgw_scorer_t  llmgw_scorer_running_requests = {
    "running-requests", 0, score_running_requests
};
