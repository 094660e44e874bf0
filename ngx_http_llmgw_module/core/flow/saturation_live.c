
/* How full a live fleet is, by facts that may be old or missing. */

#include "core/flow/saturation.h"


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
