
/*
 * What is kept of a replica whose refusal is ambiguous, since the request or
 * the replica may be at fault (core/serve/serve.h): its lease and its refusal.
 */

#include "fleet/pool.h"
#include "front/stream.h"


struct ngx_http_llmgw_ambiguous_s {
    ngx_http_llmgw_lease_t        lease;
    ngx_http_llmgw_replica_t     *replica;      /* kept from being freed */
    llmgw_end_t                   end;          /* the refusal */
};


ngx_uint_t
ngx_http_llmgw_ambiguous_reserve(ngx_http_llmgw_stream_t *stream)
{
    if (stream->ambiguous == NULL) {
        stream->ambiguous = ngx_pcalloc(stream->request->pool,
                                        sizeof(ngx_http_llmgw_ambiguous_t));
    }

    return stream->ambiguous != NULL;
}


void
ngx_http_llmgw_ambiguous_keep(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_ambiguous_t  *kept;

    kept = stream->ambiguous;

    kept->lease = attempt->lease;
    kept->replica = attempt->replica;
    kept->replica->holders++;
    ngx_http_llmgw_ended_refusal(attempt, &kept->end);

    attempt->lease.replica = NULL;
}


void
ngx_http_llmgw_ambiguous_settle(ngx_http_llmgw_stream_t *stream,
    llmgw_verdict_t verdict)
{
    ngx_http_llmgw_ambiguous_t  *kept;

    kept = stream->ambiguous;

    if (kept == NULL || kept->replica == NULL) {
        return;
    }

    if (verdict == LLMGW_VERDICT_FAILURE) {
        ngx_http_llmgw_lease_fails(&kept->lease);
        ngx_http_llmgw_metrics_attempt_failed(stream->pool->zone,
                                              LLMGW_CAUSE_STATUS);

        ngx_log_error(NGX_LOG_WARN, stream->request->connection->log, 0,
                      "llmgw: replica \"%V\" answered %s to a request that "
                      "another one serves", &kept->replica->node.str,
                      llmgw_grpc_status_name(kept->end.status));
    }

    ngx_http_llmgw_lease_end(&kept->lease, verdict);

    kept->replica->holders--;
    kept->replica = NULL;
}


void
ngx_http_llmgw_ambiguous_answer(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_stream_answer(stream, &stream->ambiguous->end);
}
