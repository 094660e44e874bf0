
/* Admission rules.  rules.h says what each asks. */

#include <inttypes.h>
#include <stdio.h>

#include "core/admission/rules.h"
#include "core/flow/saturation.h"
#include "core/policy/name.h"


static const char *const  kinds[] = {
    [LLMGW_RULE_ALWAYS] = "always-admit",
    [LLMGW_RULE_REJECT_ALL] = "reject-all",
    [LLMGW_RULE_TOKEN_BUCKET] = "token-bucket",
    [LLMGW_RULE_TIER_SHED] = "tier-shed",
    [LLMGW_RULE_GAIE_LEGACY] = "gaie-legacy"
};


int
llmgw_rule_kind(const char *name, size_t len, llmgw_rule_kind_t *kind)
{
    int  found;

    found = llmgw_name_is("always", name, len)
            ? LLMGW_RULE_ALWAYS
            : llmgw_name_find(kinds, sizeof(kinds) / sizeof(kinds[0]), name,
                              len);
    if (found == -1) {
        return -1;
    }

    *kind = (llmgw_rule_kind_t) found;

    return 0;
}


/* Overloaded: a replica's load is above the limit.  Nobody is: no replica. */
static void
rule_tier_shed(const llmgw_rule_t *rule, const llmgw_rule_request_t *request,
    llmgw_rule_verdict_t *verdict)
{
    int64_t   load;
    uint32_t  i;

    for (i = 0; i < request->n; i++) {
        load = llmgw_candidate_load(&request->candidates[i]);
        verdict->load = load > verdict->load ? load : verdict->load;
    }

    if (verdict->load > rule->overload
        && request->priority < rule->min_priority)
    {
        verdict->code = LLMGW_RULE_TIER;
    }
}


static void
rule_gaie_legacy(const llmgw_rule_t *rule, const llmgw_rule_request_t *request,
    llmgw_rule_verdict_t *verdict)
{
    llmgw_saturation_t  utilization = {
        .kind = LLMGW_SATURATION_UTILIZATION,
        .queue_depth = rule->queue_depth,
        .kv_utilization = rule->kv_utilization
    };

    if (request->priority >= 0) {
        return;
    }

    verdict->saturation = llmgw_saturation(&utilization, request->candidates,
                                           request->n);

    if (verdict->saturation >= 1) {
        verdict->code = LLMGW_RULE_SATURATED;
    }
}


llmgw_rule_verdict_t
llmgw_rule_admit(const llmgw_rule_t *rule, const llmgw_rule_request_t *request)
{
    llmgw_rule_verdict_t  verdict = { .code = LLMGW_RULE_ADMITTED };

    verdict.priority = request->priority;
    verdict.min_priority = rule->min_priority;

    if (request->tenant != NULL && request->priority < 0
        && llmgw_tenant_is_over(request->tenant, rule->capacity))
    {
        verdict.code = LLMGW_RULE_TENANT_BUDGET;
        return verdict;
    }

    switch (rule->kind) {

    case LLMGW_RULE_ALWAYS:
        break;

    case LLMGW_RULE_REJECT_ALL:
        verdict.code = LLMGW_RULE_REJECTED;
        break;

    case LLMGW_RULE_TOKEN_BUCKET:
        if (!llmgw_bucket_take(rule->bucket, (double) request->tokens,
                               request->now_us))
        {
            verdict.code = LLMGW_RULE_NO_TOKENS;
        }

        break;

    case LLMGW_RULE_TIER_SHED:
        rule_tier_shed(rule, request, &verdict);
        break;

    case LLMGW_RULE_GAIE_LEGACY:
        rule_gaie_legacy(rule, request, &verdict);
        break;
    }

    return verdict;
}


void
llmgw_rule_reason(const llmgw_rule_verdict_t *verdict, const char *class_name,
    size_t class_len, char reason[LLMGW_RULE_REASON_BYTES])
{
    static const char *const  plain[] = {
        [LLMGW_RULE_ADMITTED] = "",
        [LLMGW_RULE_TENANT_BUDGET] = "tenant-budget-shed",
        [LLMGW_RULE_REJECTED] = "reject-all",
        [LLMGW_RULE_NO_TOKENS] = "insufficient tokens"
    };

    switch (verdict->code) {

    case LLMGW_RULE_TIER:
        (void) snprintf(reason, LLMGW_RULE_REASON_BYTES,
                        "tier-shed: class=%.*s priority=%" PRId32
                        " < min=%" PRId32 " load=%" PRId64, (int) class_len,
                        class_name, verdict->priority, verdict->min_priority,
                        verdict->load);
        return;

    case LLMGW_RULE_SATURATED:
        (void) snprintf(reason, LLMGW_RULE_REASON_BYTES,
                        "gaie-saturated: class=%.*s saturation=%.2f",
                        (int) class_len, class_name, verdict->saturation);
        return;

    default:
        (void) snprintf(reason, LLMGW_RULE_REASON_BYTES, "%s",
                        plain[verdict->code]);
        return;
    }
}
