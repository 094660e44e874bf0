
/*
 * What is kept of a replica that has refused a request, in doubt of whose fault
 * that is (core/serve/serve.h): its lease and its refusal.
 */

#include "fleet/pool.h"
#include "front/stream.h"


struct ngx_http_llmgw_doubt_s {
    ngx_http_llmgw_lease_t        lease;
    ngx_http_llmgw_replica_t     *replica;      /* held */
    llmgw_end_t                   end;          /* the refusal */
};


ngx_uint_t
ngx_http_llmgw_doubt_may_be(ngx_http_llmgw_stream_t *stream)
{
    if (stream->doubt == NULL) {
        stream->doubt = ngx_pcalloc(stream->request->pool,
                                    sizeof(ngx_http_llmgw_doubt_t));
    }

    return stream->doubt != NULL;
}


void
ngx_http_llmgw_doubt_take(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_doubt_t  *doubt;

    doubt = stream->doubt;

    doubt->lease = attempt->lease;
    doubt->replica = attempt->replica;
    doubt->replica->holders++;
    ngx_http_llmgw_ended_refusal(attempt, &doubt->end);

    attempt->lease.replica = NULL;
}


void
ngx_http_llmgw_doubt_judge(ngx_http_llmgw_stream_t *stream,
    llmgw_verdict_t verdict)
{
    ngx_http_llmgw_doubt_t  *doubt;

    doubt = stream->doubt;

    if (doubt == NULL || doubt->replica == NULL) {
        return;
    }

    if (verdict == LLMGW_VERDICT_FAILURE) {
        ngx_http_llmgw_lease_fails(&doubt->lease);
        ngx_http_llmgw_metrics_attempt_failed(stream->pool->zone,
                                              LLMGW_CAUSE_STATUS);

        ngx_log_error(NGX_LOG_WARN, stream->request->connection->log, 0,
                      "llmgw: replica \"%V\" answered %s to a request that "
                      "another one serves", &doubt->replica->node.str,
                      llmgw_grpc_status_name(doubt->end.status));
    }

    ngx_http_llmgw_lease_end(&doubt->lease, verdict);

    doubt->replica->holders--;
    doubt->replica = NULL;
}


void
ngx_http_llmgw_doubt_answer(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_stream_answer(stream, &stream->doubt->end);
}
