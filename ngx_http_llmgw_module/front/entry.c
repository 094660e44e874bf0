
/*
 * How a stream enters and leaves (admit/admit.h): once each, whatever becomes
 * of it in between.
 */

#include "fleet/pool.h"
#include "front/stream.h"


static ngx_int_t ngx_http_llmgw_entry_prompt_tokens(
    ngx_http_llmgw_stream_t *stream);


ngx_int_t
ngx_http_llmgw_entry_said(ngx_http_llmgw_stream_t *stream,
    const ngx_http_llmgw_said_t *said)
{
    ngx_http_llmgw_identity_t  *identity;

    if (!ngx_http_llmgw_admits(stream->conf, stream->pool->conf)) {
        return NGX_OK;
    }

    identity = ngx_pcalloc(stream->request->pool,
                           sizeof(ngx_http_llmgw_identity_t));
    if (identity == NULL) {
        return NGX_ERROR;
    }

    identity->said = *said;
    stream->identity = identity;

    return NGX_OK;
}


ngx_uint_t
ngx_http_llmgw_entry_refused(ngx_http_llmgw_stream_t *stream)
{
    llmgw_end_t  end;

    if (stream->identity == NULL) {
        return 0;
    }

    ngx_http_llmgw_identify(stream->request, stream->pool, stream->identity,
                            &stream->record, &stream->claim);

    if (ngx_http_llmgw_enter(stream->pool, stream->identity, &stream->claim,
                             &end)
        == NGX_OK)
    {
        return 0;
    }

    ngx_http_llmgw_stream_answer(stream, &end);

    return 1;
}


void
ngx_http_llmgw_entry_first_token(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_identity_t  *identity;

    identity = stream->identity;

    if (identity == NULL) {
        return;
    }

    if (identity->class_cohort) {
        ngx_http_llmgw_cohorts_first_token(identity->class_cohort,
                                           stream->record.first_token_ms);
    }

    if (identity->tenant_cohort) {
        ngx_http_llmgw_cohorts_first_token(identity->tenant_cohort,
                                           stream->record.first_token_ms);
    }
}


/* A stream without any token has had none by its end. */

void
ngx_http_llmgw_entry_ends(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome)
{
    ngx_msec_t               start;
    ngx_http_llmgw_leave_t   leave;
    ngx_http_llmgw_record_t  *record;

    if (stream->identity == NULL) {
        return;
    }

    record = &stream->record;
    ngx_memzero(&leave, sizeof(ngx_http_llmgw_leave_t));

    leave.outcome = outcome;
    leave.has_times = 1;
    leave.tokens = record->tokens;
    leave.first_token_ms = ngx_current_msec - record->start_ms;
    leave.prompt_tokens = ngx_http_llmgw_entry_prompt_tokens(stream);

    if (record->has_first_token) {
        start = record->start_ms + record->first_token_ms;
        leave.first_token_ms = record->first_token_ms;
        leave.tokens_ms = stream->token_ms - start;
    }

    ngx_http_llmgw_leave(stream->pool, stream->identity, &leave);
}


/* As its engine counted them; none if it got no engine; -1: not known. */

static ngx_int_t
ngx_http_llmgw_entry_prompt_tokens(ngx_http_llmgw_stream_t *stream)
{
    const llmgw_delivered_t  *delivered;

    if (stream->record.attempts == 0) {
        return 0;
    }

    delivered = stream->ask.delivered;

    return delivered && (delivered->has_prompt || delivered->has_usage)
           ? (ngx_int_t) delivered->prompt_tokens : -1;
}
