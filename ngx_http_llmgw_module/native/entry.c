
/*
 * How a native pass enters and leaves (admit/admit.h).
 *
 * nginx asks a balancer for a replica, and accepts only two answers: a replica,
 * or none, which is a 502.  So a pass that may not enter ends like one that has
 * waited too long (wait_within.c).
 *
 * The answer's contents are between client and replica: for a pass only the
 * outcome is counted, and no times.
 */

#include "fleet/pool.h"
#include "native/native.h"


static llmgw_outcome_t ngx_http_llmgw_native_outcome(
    ngx_http_llmgw_native_t *pass);


ngx_uint_t
ngx_http_llmgw_native_may_enter(ngx_http_llmgw_native_t *pass)
{
    ngx_http_llmgw_caller_t    *caller;
    ngx_http_llmgw_loc_conf_t  *llcf;

    llcf = ngx_http_get_module_loc_conf(pass->request, ngx_http_llmgw_module);
    caller = llcf->keys ? ngx_http_llmgw_caller(pass->request) : NULL;

    if (!ngx_http_llmgw_admits(llcf, pass->pool->conf, caller)) {
        return 1;
    }

    if (pass->pool->conf->rules->rule == LLMGW_RULE_TOKEN_BUCKET) {
        pass->identity.said.text_bytes =
            ngx_http_llmgw_native_text_bytes(pass->request);
    }

    ngx_http_llmgw_identify(pass->request, pass->pool, &pass->identity,
                            caller, &pass->record, &pass->claim);

    return ngx_http_llmgw_enter(pass->pool, &pass->identity, &pass->claim,
                                &pass->refusal)
           == NGX_OK;
}


void
ngx_http_llmgw_native_leave(ngx_http_llmgw_native_t *pass)
{
    ngx_http_llmgw_leave_t  leave;

    ngx_memzero(&leave, sizeof(ngx_http_llmgw_leave_t));

    leave.outcome = ngx_http_llmgw_native_outcome(pass);
    leave.prompt_tokens = pass->record.attempts ? -1 : 0;

    ngx_http_llmgw_leave(pass->pool, &pass->identity, &leave);
}


static llmgw_outcome_t
ngx_http_llmgw_native_outcome(ngx_http_llmgw_native_t *pass)
{
    ngx_connection_t  *client;

    if (pass->refusal.outcome != LLMGW_OUTCOME_SERVED) {
        return pass->refusal.outcome;
    }

    client = pass->request->connection;

    if (client->error || client->timedout
        || pass->request->headers_out.status
           == NGX_HTTP_CLIENT_CLOSED_REQUEST)
    {
        return LLMGW_OUTCOME_GONE;
    }

    return pass->is_served ? LLMGW_OUTCOME_SERVED : LLMGW_OUTCOME_REFUSED;
}
