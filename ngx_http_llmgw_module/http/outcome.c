
#include "http/outcome.h"


#define NGX_HTTP_LLMGW_PUSHBACK_MS  1000


typedef struct {
    llmgw_grpc_status_t  grpc;
    int                  http;
    int                  pushback_ms;
} ngx_http_llmgw_outcome_t;


static const ngx_http_llmgw_outcome_t  ngx_http_llmgw_outcomes[] = {

    [LLMGW_OUTCOME_SERVED] = { LLMGW_GRPC_OK, 200, 0 },

    /* full: a client should wait this long before it retries (gRFC A6) */

    [LLMGW_OUTCOME_QUEUE_FULL] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 503, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_QUEUE_TIMEOUT] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 503, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_QUEUE_TTL] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_QUEUE_SHED] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, NGX_HTTP_LLMGW_PUSHBACK_MS },

    [LLMGW_OUTCOME_NO_REPLICAS] = { LLMGW_GRPC_UNAVAILABLE, 503, 0 },
    [LLMGW_OUTCOME_CIRCUITS_OPEN] = { LLMGW_GRPC_UNAVAILABLE, 503, 0 },
    [LLMGW_OUTCOME_TRIES_EXHAUSTED] = { LLMGW_GRPC_UNAVAILABLE, 502, 0 },
    [LLMGW_OUTCOME_NOT_RESUMABLE] = { LLMGW_GRPC_UNAVAILABLE, 502, 0 },
    [LLMGW_OUTCOME_REJECT_ALL] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_TOKEN_BUCKET] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_TENANT_BUDGET] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_GONE] = { LLMGW_GRPC_CANCELLED, 499, 0 },
    [LLMGW_OUTCOME_INVALID_KEY] = { LLMGW_GRPC_UNAUTHENTICATED, 401, 0 },
    [LLMGW_OUTCOME_KEY_FORBIDS] = { LLMGW_GRPC_PERMISSION_DENIED, 403, 0 },
    [LLMGW_OUTCOME_RATE_LIMIT] =
        { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_QUOTA] = { LLMGW_GRPC_RESOURCE_EXHAUSTED, 429, 0 },
    [LLMGW_OUTCOME_ACCOUNTS_FULL] =
        { LLMGW_GRPC_UNAVAILABLE, 503, NGX_HTTP_LLMGW_PUSHBACK_MS },
    [LLMGW_OUTCOME_DEADLINE] = { LLMGW_GRPC_DEADLINE_EXCEEDED, 504, 0 },
    [LLMGW_OUTCOME_BAD_REQUEST] = { LLMGW_GRPC_INVALID_ARGUMENT, 400, 0 },
    [LLMGW_OUTCOME_TOO_LARGE] = { LLMGW_GRPC_RESOURCE_EXHAUSTED, 413, 0 },
    [LLMGW_OUTCOME_UNKNOWN_METHOD] = { LLMGW_GRPC_UNIMPLEMENTED, 404, 0 },
    [LLMGW_OUTCOME_NOT_FOUND] = { LLMGW_GRPC_NOT_FOUND, 404, 0 },
    [LLMGW_OUTCOME_INTERNAL] = { LLMGW_GRPC_INTERNAL, 500, 0 },

    [LLMGW_OUTCOME_REFUSED] = { LLMGW_GRPC_UNKNOWN, 502, 0 }
};


/* HTTP's status for a replica's own refusal; 0: the general one above. */

static const int  ngx_http_llmgw_refusals[] = {
    [LLMGW_GRPC_INVALID_ARGUMENT] = 400,
    [LLMGW_GRPC_FAILED_PRECONDITION] = 400,
    [LLMGW_GRPC_OUT_OF_RANGE] = 400,
    [LLMGW_GRPC_UNAUTHENTICATED] = 401,
    [LLMGW_GRPC_PERMISSION_DENIED] = 403,
    [LLMGW_GRPC_NOT_FOUND] = 404,
    [LLMGW_GRPC_UNIMPLEMENTED] = 501
};


llmgw_grpc_status_t
ngx_http_llmgw_outcome_grpc(const llmgw_end_t *end)
{
    if (end->outcome == LLMGW_OUTCOME_REFUSED) {
        return end->status;
    }

    return ngx_http_llmgw_outcomes[end->outcome].grpc;
}


int
ngx_http_llmgw_outcome_http(const llmgw_end_t *end)
{
    int  http;

    http = end->http;

    if (http == 0 && end->outcome == LLMGW_OUTCOME_REFUSED && end->status >= 0
        && end->status <= LLMGW_GRPC_UNAUTHENTICATED)
    {
        http = ngx_http_llmgw_refusals[end->status];
    }

    return http ? http : ngx_http_llmgw_outcomes[end->outcome].http;
}


int
ngx_http_llmgw_outcome_pushback_ms(const llmgw_end_t *end)
{
    return end->pushback_ms ? end->pushback_ms
                            : ngx_http_llmgw_outcomes[end->outcome].pushback_ms;
}
