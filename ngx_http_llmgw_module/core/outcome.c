
#include "core/outcome.h"


static const struct {
    const char  *reason;
    const char  *text;
} llmgw_outcomes[] = {

    [LLMGW_OUTCOME_SERVED] = { 0, "" },

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

    [LLMGW_OUTCOME_DEADLINE] = { 0, "deadline exceeded" },
    [LLMGW_OUTCOME_BAD_REQUEST] = { 0, "the request is not valid" },
    [LLMGW_OUTCOME_TOO_LARGE] = { 0, "the request is too large" },
    [LLMGW_OUTCOME_UNKNOWN_METHOD] = { 0, "no such method" },
    [LLMGW_OUTCOME_NOT_FOUND] = { 0, "not found" },
    [LLMGW_OUTCOME_INTERNAL] = { 0, "out of memory" },
    [LLMGW_OUTCOME_REFUSED] = { 0, "" },
};


const char *
llmgw_outcome_reason(llmgw_outcome_t outcome)
{
    return llmgw_outcomes[outcome].reason;
}


const char *
llmgw_outcome_text(llmgw_outcome_t outcome)
{
    return llmgw_outcomes[outcome].text;
}
