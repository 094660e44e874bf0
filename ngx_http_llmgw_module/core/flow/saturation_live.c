
/* How full a live fleet is, by facts that may be old or missing. */

#include "core/flow/saturation.h"


/* The facts that at least one candidate reports. */
static unsigned
saturation_known(const llmgw_fleet_t *fleet, const uint32_t *peers, uint32_t n)
{
    uint32_t  i;
    unsigned  known;

    known = 0;

    for (i = 0; i < n; i++) {
        known |= llmgw_facts_known(&fleet->facts[peers[i]], fleet->clock_ms);
    }

    return known;
}


double
llmgw_saturation_live(const llmgw_saturation_t *saturation,
    const llmgw_fleet_t *fleet, uint64_t now_ms,
    llmgw_candidate_t *candidates, uint32_t *peers, int *is_known)
{
    uint32_t            i, n;
    unsigned            known;
    llmgw_pick_key_t    key = { .now_ms = now_ms };
    llmgw_peer_state_t  state;

    *is_known = 1;
    n = llmgw_facts_candidates(fleet, &key, candidates, peers, &state);

    if (n == 0) {
        return 0;
    }

    if (saturation->kind == LLMGW_SATURATION_UTILIZATION) {
        known = saturation_known(fleet, peers, n);
        *is_known = (known & (LLMGW_FACT_WAITING | LLMGW_FACT_KV)) != 0;

        /* what the gateway counts itself is no queue in the replica */
        for (i = 0; i < n && !(known & LLMGW_FACT_WAITING); i++) {
            candidates[i].queue_depth = 0;
        }
    }

    return llmgw_saturation(saturation, candidates, n);
}
