
/*
 * How a replica is chosen: core's policies, and one more.
 *
 *     always-busiest the most load; shows the effect of a bad policy
 *
 * always-busiest is least-loaded with all ranks negated.
 */

#ifndef FLEET_POLICY_H
#define FLEET_POLICY_H

#include "core/policy/rank.h"


typedef struct {
    llmgw_ranker_t  ranker;
    int             is_busiest;
} fleet_policy_t;


/*
 * Sets *policy to the policy of that name, whose words may be joined by '-' or
 * '_'; weights are not set.  0, or -1: there is none of that name.
 */
int fleet_policy_find(fleet_policy_t *policy, const char *name, size_t len);

const char *fleet_policy_name(const fleet_policy_t *policy);

/* Ranks candidates, as llmgw_rank() does. */
void fleet_policy_rank(const fleet_policy_t *policy,
    const llmgw_scoring_t *scoring, double *ranks, double *scores);

/*
 * The position of the highest rank, or LLMGW_RANK_NONE if n is 0.  Among equal
 * ranks: the first, or, if random is not NULL, the one that this number
 * selects.
 */
uint32_t fleet_policy_best(const double *ranks, uint32_t n,
    const uint64_t *random);

#endif /* FLEET_POLICY_H */
