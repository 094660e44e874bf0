
/*
 * Rules of admission: core's, and two more that read the fleet.
 *
 *     tier-shed     where some replica's load is above `overload`, only
 *                   requests of at least `min_priority`
 *     gaie-legacy   where the fleet is saturated (core/flow/saturation.h:
 *                   utilization), only requests that may not be shed
 *
 * core's rule comes first, so budgets of tenants come before either.
 *
 * Semantics, names and the words of refusals are those of BLIS.
 */

#ifndef FLEET_RULES_H
#define FLEET_RULES_H

#include "core/admission/rules.h"
#include "core/policy/candidate.h"


#define FLEET_REASON_BYTES  192

typedef enum {
    FLEET_RULE_CORE = 0,
    FLEET_RULE_TIER_SHED,
    FLEET_RULE_GAIE_LEGACY
} fleet_rule_kind_t;

typedef struct {
    fleet_rule_kind_t  kind;
    llmgw_rule_t       core;            /* always-admit beside another kind */
    int64_t            overload;        /* tier-shed: above this load */
    int32_t            min_priority;    /* tier-shed */
    double             queue_depth;     /* gaie-legacy: of a full replica */
    double             kv_utilization;  /* gaie-legacy: likewise */
} fleet_rule_t;


/*
 * Sets the kinds to those of that name, with '-' or '_' between words: 0; -1:
 * there is none.
 */
int fleet_rule_find(fleet_rule_t *rule, const char *name, size_t len);

/*
 * Whether a request is admitted, judged by n candidates. 0: refused, and reason
 * has a text like "tier-shed: class=batch priority=-1 < min=3 load=7", cut to
 * its bytes; else reason is "".
 */
int fleet_rule_admits(const fleet_rule_t *rule,
    const llmgw_rule_request_t *request, const char *class_name,
    const llmgw_candidate_t *candidates, uint32_t n,
    char reason[FLEET_REASON_BYTES]);

#endif /* FLEET_RULES_H */
