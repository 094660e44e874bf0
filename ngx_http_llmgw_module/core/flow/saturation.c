
/* How full the fleet is.  saturation.h has the formulas. */

#include "core/flow/saturation.h"


static double
saturation_utilization(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n)
{
    double    sum, queue, kv;
    uint32_t  i;

    sum = 0;

    for (i = 0; i < n; i++) {
        queue = candidates[i].queue_depth / saturation->queue_depth;
        kv = candidates[i].kv_utilization / saturation->kv_utilization;
        sum += queue > kv ? queue : kv;
    }

    return sum / n;
}


static double
saturation_concurrency(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n)
{
    int64_t   in_flight;
    uint32_t  i;

    in_flight = 0;

    for (i = 0; i < n; i++) {
        in_flight += candidates[i].in_flight;
    }

    return (double) in_flight / (double) (n * saturation->max_concurrency);
}


double
llmgw_saturation(const llmgw_saturation_t *saturation,
    const llmgw_candidate_t *candidates, uint32_t n)
{
    if (saturation->kind == LLMGW_SATURATION_NEVER) {
        return 0;
    }

    if (n == 0) {
        return 1;
    }

    return saturation->kind == LLMGW_SATURATION_UTILIZATION
           ? saturation_utilization(saturation, candidates, n)
           : saturation_concurrency(saturation, candidates, n);
}


/* Which facts some candidate tells. */
static unsigned
saturation_told(const llmgw_fleet_t *fleet, const uint32_t *peers, uint32_t n)
{
    uint32_t  i;
    unsigned  told;

    told = 0;

    for (i = 0; i < n; i++) {
        told |= llmgw_facts_known(&fleet->facts[peers[i]], fleet->clock_ms);
    }

    return told;
}


double
llmgw_saturation_live(const llmgw_saturation_t *saturation,
    const llmgw_fleet_t *fleet, uint64_t now_ms,
    llmgw_candidate_t *candidates, uint32_t *peers, int *is_known)
{
    uint32_t            i, n;
    unsigned            told;
    llmgw_pick_key_t    key = { .now_ms = now_ms };
    llmgw_peer_state_t  state;

    *is_known = 1;
    n = llmgw_facts_candidates(fleet, &key, candidates, peers, &state);

    if (n == 0) {
        return 0;
    }

    if (saturation->kind == LLMGW_SATURATION_UTILIZATION) {
        told = saturation_told(fleet, peers, n);
        *is_known = (told & (LLMGW_FACT_WAITING | LLMGW_FACT_KV)) != 0;

        /* what the gateway counts itself is no queue of the replica's */
        for (i = 0; i < n && !(told & LLMGW_FACT_WAITING); i++) {
            candidates[i].queue_depth = 0;
        }
    }

    return llmgw_saturation(saturation, candidates, n);
}
