
/*
 * active-requests: prefers the replica with the fewest of our requests in
 * flight.  Measured from the highest, not between extremes: equal and busy is 0
 * for all, as in llm-d.
 */

#include "core/policy/scorer/spread.h"


static int64_t
in_flight(const llmgw_candidate_t *candidate)
{
    return candidate->in_flight;
}


static void
score_active_requests(const llmgw_scoring_t *scoring, double *scores)
{
    int64_t   x, min, max;
    uint32_t  i;

    spread_extremes(scoring, in_flight, &min, &max);

    for (i = 0; i < scoring->n; i++) {
        x = scoring->candidates[i].in_flight;
        scores[i] = x == 0 ? 1 : (double) (max - x) / (double) max;
    }
}


const llmgw_scorer_t  llmgw_scorer_active_requests = {
    "active-requests", 0, score_active_requests
};
