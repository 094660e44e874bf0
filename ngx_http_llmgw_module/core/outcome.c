
#include "core/outcome.h"


static const struct {
    const char  *name;
    const char  *text;
} llmgw_outcomes[] = {

    [LLMGW_OUTCOME_SERVED] = { "ok", "" },

    [LLMGW_OUTCOME_QUEUE_FULL] =
        { "queue_full", "all replicas are full" },
    [LLMGW_OUTCOME_QUEUE_TIMEOUT] =
        { "queue_timeout", "no replica had room in time" },
    [LLMGW_OUTCOME_QUEUE_TTL] =
        { "queue_ttl", "it waited in the queue for longer than its ttl" },
    [LLMGW_OUTCOME_QUEUE_SHED] =
        { "queue_shed", "it was shed from a full queue for another request" },
    [LLMGW_OUTCOME_NO_REPLICAS] =
        { "no_replicas", "no replica can be used" },
    [LLMGW_OUTCOME_CIRCUITS_OPEN] =
        { "circuits_open", "the circuits of all replicas are open" },
    [LLMGW_OUTCOME_TRIES_EXHAUSTED] =
        { "tries_exhausted", "no replica finished it" },
    [LLMGW_OUTCOME_NOT_RESUMABLE] =
        { "not_resumable", "it broke off and cannot be resumed" },
    [LLMGW_OUTCOME_REJECT_ALL] =
        { "admission_reject_all", "no request is admitted" },
    [LLMGW_OUTCOME_TOKEN_BUCKET] =
        { "admission_token_bucket", "the token bucket holds too little" },
    [LLMGW_OUTCOME_TENANT_BUDGET] =
        { "admission_tenant_budget", "the tenant is over its budget" },
    [LLMGW_OUTCOME_GONE] =
        { "client_gone", "the client went away" },
    [LLMGW_OUTCOME_INVALID_KEY] =
        { "invalid_api_key", "no valid API key was given" },
    [LLMGW_OUTCOME_KEY_FORBIDS] =
        { "key_forbids", "this key has limits of models or tokens, which "
        "cannot be enforced here" },
    [LLMGW_OUTCOME_RATE_LIMIT] =
        { "rate_limit_exceeded", "the rate limit of this key is exceeded" },
    [LLMGW_OUTCOME_QUOTA] =
        { "insufficient_quota", "the token budget of this key is used up" },
    [LLMGW_OUTCOME_ACCOUNTS_FULL] =
        { "accounts_full", "the gateway has no room to count this request" },

    [LLMGW_OUTCOME_DEADLINE] = { "deadline", "deadline exceeded" },
    [LLMGW_OUTCOME_BAD_REQUEST] =
        { "bad_request", "the request is not valid" },
    [LLMGW_OUTCOME_TOO_LARGE] = { "too_large", "the request is too large" },
    [LLMGW_OUTCOME_UNKNOWN_METHOD] = { "unknown_method", "no such method" },
    [LLMGW_OUTCOME_NOT_FOUND] = { "not_found", "not found" },
    [LLMGW_OUTCOME_INTERNAL] = { "internal", "out of memory" },
    [LLMGW_OUTCOME_REFUSED] = { "refused", "" },
};


const char *
llmgw_outcome_reason(llmgw_outcome_t outcome)
{
    return outcome != LLMGW_OUTCOME_SERVED && outcome < LLMGW_NREASONS
           ? llmgw_outcomes[outcome].name : NULL;
}


const char *
llmgw_outcome_name(llmgw_outcome_t outcome)
{
    return llmgw_outcomes[outcome].name;
}


const char *
llmgw_outcome_text(llmgw_outcome_t outcome)
{
    return llmgw_outcomes[outcome].text;
}
