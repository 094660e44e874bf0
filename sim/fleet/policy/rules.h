
/*
 * Rules of admission: core's, and two more that read the fleet.
 *
 *     tier-shed     where some replica's load is above `overload`, only
 *                   requests of at least `min_priority`
 *     gaie-legacy   where the fleet is saturated (core/flow/saturation.h:
 *                   utilization), only requests that may not be shed
 *
 * core's rule is applied first, so tenants' budgets are checked before these
 * two.
 *
 * Semantics, names and texts of refusals are those of BLIS.
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
    int64_t            overload;        /* tier-shed: greatest load at which all
                                           requests are admitted */
    int32_t            min_priority;    /* tier-shed */
    double             queue_depth;     /* gaie-legacy: of a full replica */
    double             kv_utilization;  /* gaie-legacy: of a full replica */
} fleet_rule_t;


/*
 * Sets the kinds to those of that name, whose words may be joined by '-' or
 * '_'.  0, or -1: there is none of that name.
 */
int fleet_rule_find(fleet_rule_t *rule, const char *name, size_t len);

/*
 * Whether the rule admits a request, given n candidates.  If not, returns 0 and
 * writes a reason like "tier-shed: class=batch priority=-1 < min=3 load=7", cut
 * to the room there is; else reason is "".
 */
int fleet_rule_admits(const fleet_rule_t *rule,
    const llmgw_rule_request_t *request, const char *class_name,
    const llmgw_candidate_t *candidates, uint32_t n,
    char reason[FLEET_REASON_BYTES]);

#endif /* FLEET_RULES_H */
