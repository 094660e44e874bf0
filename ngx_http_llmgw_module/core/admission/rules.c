
/* Admission rules.  rules.h describes each of them. */

#include "core/admission/rules.h"
#include "core/policy/name.h"


static const char *const  kinds[] = {
    [LLMGW_RULE_ALWAYS] = "always-admit",
    [LLMGW_RULE_REJECT_ALL] = "reject-all",
    [LLMGW_RULE_TOKEN_BUCKET] = "token-bucket"
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


const char *
llmgw_rule_word(llmgw_rule_kind_t kind)
{
    static const char *const  words[] = {
        [LLMGW_RULE_ALWAYS] = "always",
        [LLMGW_RULE_REJECT_ALL] = "reject_all",
        [LLMGW_RULE_TOKEN_BUCKET] = "token_bucket"
    };

    return words[kind];
}


llmgw_rule_code_t
llmgw_rule_admit(const llmgw_rule_t *rule, const llmgw_rule_request_t *request)
{
    if (request->tenant != NULL && request->priority < 0
        && llmgw_tenant_is_over(request->tenant, rule->capacity))
    {
        return LLMGW_RULE_TENANT_BUDGET;
    }

    switch (rule->kind) {

    case LLMGW_RULE_REJECT_ALL:
        return LLMGW_RULE_REJECTED;

    case LLMGW_RULE_TOKEN_BUCKET:
        return llmgw_bucket_take(rule->bucket, (double) request->tokens,
                                 request->now_us)
               ? LLMGW_RULE_ADMITTED : LLMGW_RULE_NO_TOKENS;

    default:
        return LLMGW_RULE_ADMITTED;
    }
}


int
llmgw_tenant_init(llmgw_tenant_t *tenant, double fraction)
{
    if (!(fraction >= 0 && fraction <= 1)) {
        return -1;
    }

    tenant->fraction = fraction;
    tenant->has_budget = 1;
    tenant->in_flight = 0;

    return 0;
}
