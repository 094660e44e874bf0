
/*
 * The front's operations: they turn replicas' messages into an answer.
 *
 *                  the client reads a stream      it does not
 *     data         an event, as it is             -
 *     raw          passed on, piece by piece      held until it is whole, if
 *                                                 its length is known
 *     text         chunks of our own              one object of our own, held
 *
 * Clients consider a body with a normal end a complete answer.  So a stream
 * that breaks off ends with an error event, and never with [DONE]; and buffered
 * output is dropped, so that the status is correct.
 */

#include "fleet/body_memory.h"
#include "front/clients.h"
#include "front/openai/openai_inner.h"
#include "front/output.h"
#include "http/header.h"
#include "proto/json/write.h"


static ngx_int_t ngx_http_llmgw_openai_begin(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_openai_stream_headers(ngx_http_request_t *r);
static ngx_int_t ngx_http_llmgw_openai_token(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token);
static void ngx_http_llmgw_openai_note(ngx_http_llmgw_openai_t *o,
    const Llmgateway__GenerateResponse *more);
static void ngx_http_llmgw_openai_finish(ngx_http_llmgw_openai_t *o,
    const char *reason);
static ngx_int_t ngx_http_llmgw_openai_raw(ngx_http_llmgw_stream_t *stream,
    const Llmgateway__Raw *raw);
static ngx_int_t ngx_http_llmgw_openai_chunk(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token);
static void ngx_http_llmgw_openai_last(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_hold(ngx_http_llmgw_stream_t *stream,
    size_t bytes);
static void ngx_http_llmgw_openai_stop(ngx_http_llmgw_stream_t *stream,
    ngx_uint_t status, llmgw_grpc_status_t grpc, const char *text);
static ngx_int_t ngx_http_llmgw_openai_restart(
    ngx_http_llmgw_stream_t *stream);
static ngx_int_t ngx_http_llmgw_openai_ping(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_ended(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end);
static ngx_int_t ngx_http_llmgw_openai_complete(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_openai_fail(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end);
static ngx_int_t ngx_http_llmgw_openai_fault(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end, ngx_uint_t *status, ngx_str_t *json);
static ngx_uint_t ngx_http_llmgw_openai_is_events(
    ngx_http_llmgw_openai_t *o);


const ngx_http_llmgw_front_t  ngx_http_llmgw_openai_front = {
    .read = ngx_http_llmgw_openai_read,
    .begin = ngx_http_llmgw_openai_begin,
    .token = ngx_http_llmgw_openai_token,
    .restart = ngx_http_llmgw_openai_restart,
    .ping = ngx_http_llmgw_openai_ping,
    .end = ngx_http_llmgw_openai_ended,
};


static ngx_int_t
ngx_http_llmgw_openai_begin(ngx_http_request_t *r)
{
    ngx_chain_t              *cl;
    const ngx_str_t          *type;
    ngx_http_llmgw_openai_t  *o;
    ngx_http_llmgw_stream_t  *stream;
    static const ngx_str_t    json = ngx_string("application/json");
    static const ngx_str_t    events =
        ngx_string("text/event-stream; charset=utf-8");

    stream = ngx_http_llmgw_stream_of(r);
    o = stream->data;

    type = o->raw_status ? &o->raw_type : stream->holds ? &json : &events;

    if (ngx_http_llmgw_openai_header(r, o->raw_status ? o->raw_status
                                                      : NGX_HTTP_OK, type)
        != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (!stream->holds) {
        return ngx_http_llmgw_openai_stream_headers(r);
    }

    r->headers_out.content_length_n = 0;

    for (cl = stream->out; cl; cl = cl->next) {
        r->headers_out.content_length_n += ngx_buf_size(cl->buf);
    }

    return ngx_http_send_header(r);
}


/* Nothing on the way to the client may wait for more than one event. */

static ngx_int_t
ngx_http_llmgw_openai_stream_headers(ngx_http_request_t *r)
{
    ngx_list_t                *list;
    ngx_http_core_loc_conf_t  *clcf;
    static const ngx_str_t     no_cache = ngx_string("no-cache");
    static const ngx_str_t     no = ngx_string("no");

    list = &r->headers_out.headers;
    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (ngx_http_llmgw_header_add(list, "Cache-Control", &no_cache) == NULL
        || ngx_http_llmgw_header_add(list, "X-Accel-Buffering", &no) == NULL)
    {
        return NGX_ERROR;
    }

#if (NGX_HTTP_GZIP)
    r->gzip_tested = 1;
    r->gzip_ok = 0;
#endif

    if (clcf->tcp_nodelay && ngx_tcp_nodelay(r->connection) != NGX_OK) {
        return NGX_ERROR;
    }

    return ngx_http_send_header(r);
}


static ngx_int_t
ngx_http_llmgw_openai_token(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    ngx_http_llmgw_openai_t             *o = stream->data;
    const Llmgateway__GenerateResponse  *more;

    more = token->more;

    if (stream->verdict) {
        return NGX_OK;
    }

    if (more) {
        o->has_more = 1;
        ngx_http_llmgw_openai_note(o, more);

        if (*more->response_id != '\0') {
            ngx_http_llmgw_openai_chain_note(stream, more->response_id);
        }

        if (more->raw) {
            return ngx_http_llmgw_openai_raw(stream, more->raw);
        }

        if (more->extra && stream->holds
            && ngx_http_llmgw_openai_whole_extra(stream, more->extra) != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    if (o->raw_status) {
        return NGX_OK;
    }

    if (token->count && (more == NULL || more->n_token_ids == 0)) {
        o->lacks_ids = 1;
    }

    if (o->is_pass) {
        if (token->count) {
            ngx_http_llmgw_openai_stop(stream, NGX_HTTP_NOT_FOUND,
                                       LLMGW_GRPC_UNIMPLEMENTED,
                                       "the engines behind this model do not "
                                       "serve this API");
        }

        return NGX_OK;
    }

    if (o->head.len == 0 && ngx_http_llmgw_openai_head(stream) != NGX_OK) {
        return NGX_ERROR;
    }

    if (token->is_final) {
        ngx_http_llmgw_openai_last(stream);
    }

    if (!stream->holds) {
        return ngx_http_llmgw_openai_chunk(stream, token);
    }

    return ngx_http_llmgw_openai_whole_text(stream, token);
}


/* Fills the record, for all kinds of answers. */

static void
ngx_http_llmgw_openai_note(ngx_http_llmgw_openai_t *o,
    const Llmgateway__GenerateResponse *more)
{
    size_t  i;

    for (i = 0; i < more->n_finish; i++) {
        ngx_http_llmgw_openai_finish(o, more->finish[i]->reason);
    }

    if (more->usage) {
        o->has_usage = 1;
        o->usage.prompt_tokens = more->usage->prompt_tokens;
        o->usage.completion_tokens = more->usage->completion_tokens;
        o->usage.cached_tokens = more->usage->cached_tokens;
        o->usage.reasoning_tokens = more->usage->reasoning_tokens;

    } else if (more->prompt && !o->has_usage) {
        o->usage.prompt_tokens = more->prompt->tokens;
    }
}


static void
ngx_http_llmgw_openai_finish(ngx_http_llmgw_openai_t *o, const char *reason)
{
    if (o->nfinished++ == 0) {
        o->usage.finish_len = ngx_min(ngx_strlen(reason),
                                      sizeof(o->usage.finish));
        ngx_memcpy(o->usage.finish, reason, o->usage.finish_len);
    }
}


/* The first piece has status and type of the whole, also after a failure. */

static ngx_int_t
ngx_http_llmgw_openai_raw(ngx_http_llmgw_stream_t *stream,
    const Llmgateway__Raw *raw)
{
    ngx_buf_t                *b;
    ngx_str_t                 type;
    ngx_http_llmgw_openai_t  *o = stream->data;

    if (o->raw_status == 0) {
        o->raw_status = raw->status ? raw->status : NGX_HTTP_OK;
        stream->holds &= !raw->is_open;

        type.data = (u_char *) raw->content_type;
        type.len = ngx_strlen(type.data);
        o->raw_type.len = type.len;
        o->raw_type.data = ngx_pstrdup(stream->request->pool, &type);

        if (o->raw_type.data == NULL) {
            return NGX_ERROR;
        }
    }

    if (raw->data.len == 0) {
        return NGX_OK;
    }

    b = ngx_http_llmgw_openai_room(stream, raw->data.len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, raw->data.data, raw->data.len);

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_openai_chunk(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    ngx_http_llmgw_openai_t             *o = stream->data;
    const Llmgateway__GenerateResponse  *more;

    more = token->more;

    if (more && more->data.len) {
        o->has_data = 1;
        o->has_role = 1;
        o->shows_usage |= (more->usage != NULL);
        o->shows_finish |= (more->n_finish != 0);

        return ngx_http_llmgw_openai_chunk_data(stream, &more->data);
    }

    if (token->text_len
        && ngx_http_llmgw_openai_chunk_choice(stream, token) != NGX_OK)
    {
        return NGX_ERROR;
    }

    if (o->nfinished && !o->shows_finish) {
        o->shows_finish = 1;
        return ngx_http_llmgw_openai_chunk_choice(stream, NULL);
    }

    return NGX_OK;
}


/*
 * The final message came without a finish_reason.  A replica that sends plain
 * tokens reports none.  An engine that reports them ends without one only if
 * the gateway has found the stream complete.
 */

static void
ngx_http_llmgw_openai_last(ngx_http_llmgw_stream_t *stream)
{
    ngx_uint_t                is_full;
    ngx_http_llmgw_openai_t  *o = stream->data;

    is_full = (stream->record.tokens >= stream->ask.max_tokens);

    if (o->nfinished == 0 && (is_full || !o->has_more)) {
        ngx_http_llmgw_openai_finish(o, is_full ? "length" : "stop");
    }
}


ngx_buf_t *
ngx_http_llmgw_openai_room(ngx_http_llmgw_stream_t *stream, size_t size)
{
    ngx_buf_t                *b;
    ngx_chain_t              *last;
    ngx_http_llmgw_openai_t  *o = stream->data;

    last = stream->out ? stream->last : NULL;
    b = ngx_http_llmgw_output_room(stream, size);
    o->text_end = NULL;

    if (b && stream->holds && stream->last != last) {
        ngx_http_llmgw_openai_hold(stream, b->end - b->start);
    }

    return b;
}


/*
 * Counts a kept answer's bytes.  If there is no room for them, the stream ends
 * in this iteration.
 */

static void
ngx_http_llmgw_openai_hold(ngx_http_llmgw_stream_t *stream, size_t bytes)
{
    ngx_http_llmgw_openai_t  *o = stream->data;

    if (ngx_http_llmgw_body_memory_take(stream->pool, LLMGW_SHARE_ANSWERS,
                                        bytes)
        == NGX_OK)
    {
        o->held += bytes;
        return;
    }

    ngx_http_llmgw_openai_stop(stream, NGX_HTTP_BAD_GATEWAY,
                               LLMGW_GRPC_RESOURCE_EXHAUSTED,
                               "the answer needs more memory than "
                               "llmgw_body_memory leaves");
}


/*
 * Called within a callback of the session: notes how the stream is to end when
 * it is run.
 */

static void
ngx_http_llmgw_openai_stop(ngx_http_llmgw_stream_t *stream,
    ngx_uint_t status, llmgw_grpc_status_t grpc, const char *text)
{
    ngx_http_llmgw_openai_t  *o = stream->data;

    o->verdict.outcome = LLMGW_OUTCOME_REFUSED;
    o->verdict.status = grpc;
    o->verdict.http = status;
    o->verdict.text = text;
    o->verdict.text_len = ngx_strlen(text);

    stream->verdict = &o->verdict;
}


static ngx_int_t
ngx_http_llmgw_openai_restart(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_openai_t  *o = stream->data;

    if (stream->request->header_sent
        && (o->has_data || o->has_text || o->raw_status))
    {
        return NGX_DECLINED;
    }

    ngx_http_llmgw_chunk_drop(stream);
    ngx_http_llmgw_body_memory_give(stream->pool, LLMGW_SHARE_ANSWERS, o->held);

    stream->holds = !o->request.stream;
    o->held = 0;
    o->raw_status = 0;
    o->nfinished = 0;
    o->has_role = 0;
    o->has_more = 0;
    o->has_data = 0;
    o->has_text = 0;
    o->has_usage = 0;
    o->shows_usage = 0;
    o->shows_finish = 0;
    o->lacks_ids = 0;
    o->usage.cached_tokens = 0;
    o->usage.reasoning_tokens = 0;
    o->usage.finish_len = 0;
    o->has_extra = 0;
    o->extra_answer.len = 0;
    o->extra_choice.len = 0;
    o->extra_usage.len = 0;

    return NGX_OK;
}


/*
 * One line, without a blank one: some clients take a blank line after a comment
 * for an event without data.
 */

static ngx_int_t
ngx_http_llmgw_openai_ping(ngx_http_llmgw_stream_t *stream)
{
    ngx_buf_t  *b;

    b = ngx_http_llmgw_openai_room(stream, sizeof(": ping\n") - 1);
    if (b == NULL) {
        return NGX_ERROR;
    }

    b->last = ngx_cpymem(b->last, ": ping\n", sizeof(": ping\n") - 1);

    return NGX_OK;
}


static void
ngx_http_llmgw_openai_ended(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end)
{
    ngx_http_llmgw_openai_t   *o = stream->data;
    static const llmgw_end_t   cut = { .outcome = LLMGW_OUTCOME_NOT_RESUMABLE };

    if (end->outcome != LLMGW_OUTCOME_SERVED) {
        ngx_http_llmgw_openai_fail(stream, end);
        return;
    }

    if (o->raw_status == 0 && o->nfinished == 0) {
        /* the replica reported the end, but the answer has none */
        ngx_http_llmgw_openai_fail(stream, &cut);
        return;
    }

    if (ngx_http_llmgw_openai_complete(stream) != NGX_OK) {
        ngx_http_finalize_request(stream->request, NGX_ERROR);
        return;
    }

    ngx_http_llmgw_output_last(stream);
}


/* Writes what follows all choices. */

static ngx_int_t
ngx_http_llmgw_openai_complete(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_openai_t  *o = stream->data;

    if (!o->has_usage) {
        o->usage.completion_tokens = stream->record.tokens;
    }

    if (o->raw_status) {
        return stream->out || stream->request->header_sent
               ? NGX_OK : ngx_http_llmgw_openai_begin(stream->request);
    }

    if (stream->holds) {
        return ngx_http_llmgw_openai_whole_end(stream);
    }

    if (o->request.include_usage && !o->shows_usage
        && ngx_http_llmgw_openai_knows_usage(stream)
        && ngx_http_llmgw_openai_chunk_usage(stream) != NGX_OK)
    {
        return NGX_ERROR;
    }

    return ngx_http_llmgw_openai_chunk_done(stream);
}


static void
ngx_http_llmgw_openai_fail(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end)
{
    ngx_int_t                 rc;
    ngx_str_t                 json;
    ngx_uint_t                status;
    ngx_http_request_t       *r;
    ngx_http_llmgw_openai_t  *o = stream->data;

    r = stream->request;

    o->nfinished = 0;
    ngx_http_llmgw_openai_finish(o, "error");

    rc = ngx_http_llmgw_openai_fault(stream, end, &status, &json);

    if (rc == NGX_OK && !r->header_sent) {
        ngx_http_llmgw_chunk_drop(stream);
        rc = ngx_http_llmgw_openai_error_headers(r, status, end->pushback_ms);

        if (rc == NGX_OK) {
            rc = ngx_http_llmgw_header_reason(&r->headers_out.headers, end);
        }

        if (rc == NGX_OK) {
            rc = ngx_http_llmgw_openai_answer(r, status, &json);
        }

        ngx_http_finalize_request(r, rc);
        return;
    }

    if (rc != NGX_OK || !ngx_http_llmgw_openai_is_events(o)
        || ngx_http_llmgw_openai_chunk_error(stream, &json) != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    ngx_http_llmgw_output_last(stream);
}


/* The status and the JSON of an error: the engine's own, or ours. */

static ngx_int_t
ngx_http_llmgw_openai_fault(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end, ngx_uint_t *status, ngx_str_t *json)
{
    ngx_str_t             said;
    ngx_http_request_t   *r;
    llmgw_openai_error_t  error;

    r = stream->request;

    if (end->http && end->body_len) {
        said.data = (u_char *) end->body;
        said.len = end->body_len;
        *status = end->http;

        return ngx_http_llmgw_openai_error_shape(r, end->http, &said, json);
    }

    ngx_http_llmgw_openai_error_of_end(&error, end);
    *status = error.status;

    return ngx_http_llmgw_openai_error_json(r, &error, json);
}


/* 1: an error can be reported in the middle of the answer. */

static ngx_uint_t
ngx_http_llmgw_openai_is_events(ngx_http_llmgw_openai_t *o)
{
    static const char  events[] = "text/event-stream";

    return o->raw_status == 0
           || (o->raw_type.len >= sizeof(events) - 1
               && ngx_strncasecmp(o->raw_type.data, (u_char *) events,
                                  sizeof(events) - 1)
                  == 0);
}
