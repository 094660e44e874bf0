
/* Rules of admission.  rules.h describes each of them. */

#include <inttypes.h>
#include <stdio.h>

#include "core/flow/saturation.h"
#include "core/policy/name.h"
#include "sim/fleet/policy/rules.h"


int
fleet_rule_find(fleet_rule_t *rule, const char *name, size_t len)
{
    int  found;

    static const char *const  names[] = {
        [FLEET_RULE_CORE] = "",
        [FLEET_RULE_TIER_SHED] = "tier-shed",
        [FLEET_RULE_GAIE_LEGACY] = "gaie-legacy"
    };

    rule->kind = FLEET_RULE_CORE;

    if (llmgw_rule_kind(name, len, &rule->core.kind) == 0) {
        return 0;
    }

    found = llmgw_name_find(names, 3, name, len);
    rule->kind = found > 0 ? (fleet_rule_kind_t) found : FLEET_RULE_CORE;
    rule->core.kind = LLMGW_RULE_ALWAYS;

    return found > 0 ? 0 : -1;
}


/*
 * The fleet is overloaded if the load of one replica is above the limit;
 * without a replica it is not.
 */
static int
rule_tier_shed(const fleet_rule_t *rule, int32_t priority,
    const char *class_name, const llmgw_candidate_t *candidates, uint32_t n,
    char *reason)
{
    int64_t   load, most;
    uint32_t  i;

    for (i = 0, most = 0; i < n; i++) {
        load = llmgw_candidate_load(&candidates[i]);
        most = load > most ? load : most;
    }

    if (most <= rule->overload || priority >= rule->min_priority) {
        return 1;
    }

    (void) snprintf(reason, FLEET_REASON_BYTES,
                    "tier-shed: class=%s priority=%" PRId32 " < min=%" PRId32
                    " load=%" PRId64, class_name, priority,
                    rule->min_priority, most);
    return 0;
}


static int
rule_gaie_legacy(const fleet_rule_t *rule, int32_t priority,
    const char *class_name, const llmgw_candidate_t *candidates, uint32_t n,
    char *reason)
{
    double              saturation;
    llmgw_saturation_t  utilization = {
        .kind = LLMGW_SATURATION_UTILIZATION,
        .queue_depth = rule->queue_depth,
        .kv_utilization = rule->kv_utilization
    };

    if (priority >= 0) {
        return 1;
    }

    saturation = llmgw_saturation(&utilization, candidates, n);

    if (saturation < 1) {
        return 1;
    }

    (void) snprintf(reason, FLEET_REASON_BYTES,
                    "gaie-saturated: class=%s saturation=%.2f", class_name,
                    saturation);
    return 0;
}


int
fleet_rule_admits(const fleet_rule_t *rule,
    const llmgw_rule_request_t *request, const char *class_name,
    const llmgw_candidate_t *candidates, uint32_t n,
    char reason[FLEET_REASON_BYTES])
{
    llmgw_rule_code_t  code;

    static const char *const  refusals[] = {
        [LLMGW_RULE_ADMITTED] = "",
        [LLMGW_RULE_TENANT_BUDGET] = "tenant-budget-shed",
        [LLMGW_RULE_REJECTED] = "reject-all",
        [LLMGW_RULE_NO_TOKENS] = "insufficient tokens"
    };

    code = llmgw_rule_admit(&rule->core, request);
    (void) snprintf(reason, FLEET_REASON_BYTES, "%s", refusals[code]);

    if (code != LLMGW_RULE_ADMITTED || rule->kind == FLEET_RULE_CORE) {
        return code == LLMGW_RULE_ADMITTED;
    }

    return rule->kind == FLEET_RULE_TIER_SHED
           ? rule_tier_shed(rule, request->priority, class_name, candidates,
                            n, reason)
           : rule_gaie_legacy(rule, request->priority, class_name, candidates,
                              n, reason);
}
