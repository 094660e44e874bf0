
/* Policies.  policy.h says which. */

#include "core/policy/draw.h"
#include "core/policy/name.h"
#include "sim/fleet/policy/policy.h"


static const char  busiest[] = "always-busiest";


int
fleet_policy_find(fleet_policy_t *policy, const char *name, size_t len)
{
    fleet_policy_t  found = { .ranker.policy = LLMGW_RANK_LEAST_LOADED };

    found.is_busiest = llmgw_name_is(busiest, name, len);

    if (!found.is_busiest
        && llmgw_rank_policy(name, len, &found.ranker.policy) != 0)
    {
        return -1;
    }

    *policy = found;

    return 0;
}


const char *
fleet_policy_name(const fleet_policy_t *policy)
{
    return policy->is_busiest ? busiest
                              : llmgw_rank_policy_name(policy->ranker.policy);
}


void
fleet_policy_rank(const fleet_policy_t *policy, const llmgw_scoring_t *scoring,
    double *ranks, double *scores)
{
    uint32_t  i;

    llmgw_rank(&policy->ranker, scoring, ranks, scores);

    for (i = 0; policy->is_busiest && i < scoring->n; i++) {
        ranks[i] = -ranks[i];
    }
}


/* Chooses the candidate that llmgw_order_next() would return first. */
uint32_t
fleet_policy_best(const double *ranks, uint32_t n, const uint64_t *random)
{
    uint32_t  i, best;

    if (n == 0) {
        return LLMGW_RANK_NONE;
    }

    best = 0;

    for (i = 1; i < n; i++) {
        if (ranks[i] > ranks[best]
            || (ranks[i] == ranks[best] && random != NULL
                && llmgw_draw(*random, i) < llmgw_draw(*random, best)))
        {
            best = i;
        }
    }

    return best;
}
