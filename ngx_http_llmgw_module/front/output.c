
/*
 * Output: a stream's tokens on their way into nginx's response body.
 *
 * Tokens are packed one behind another into chunks (chunk.c), and flushed once
 * a turn of the event loop.  As long as nginx holds bytes of ours, the client
 * is slow, or its connection is held for the rest of the turn (cork.c): the
 * stream counts as blocked, and its replica gets no more window.
 */

#include "front/answer.h"
#include "front/output.h"


static ngx_buf_t *ngx_http_llmgw_output_room(ngx_http_llmgw_stream_t *stream,
    size_t size);
static ngx_int_t ngx_http_llmgw_output_send(ngx_http_llmgw_stream_t *stream,
    ngx_uint_t last);


/*
 * Within a callback of the session: packs the token, sends nothing yet.  The
 * replica's message and its signature are the client's message, as
 * proto/token_message.h has it.
 */

ngx_int_t
ngx_http_llmgw_output_append(ngx_http_llmgw_stream_t *stream,
    const u_char *message, size_t len)
{
    u_char     *p;
    ngx_buf_t  *b;
    ngx_str_t  *signature;

    signature = &stream->serving->replica->signature;

    b = ngx_http_llmgw_output_room(stream, LLMGW_GRPC_PREFIX_BYTES + len
                                           + signature->len);
    if (b == NULL) {
        return NGX_ERROR;
    }

    p = ngx_http_llmgw_answer_prefix(b->last, len + signature->len);
    p = ngx_cpymem(p, message, len);
    b->last = ngx_cpymem(p, signature->data, signature->len);

    return NGX_OK;
}


static ngx_buf_t *
ngx_http_llmgw_output_room(ngx_http_llmgw_stream_t *stream, size_t size)
{
    ngx_chain_t  *cl;

    cl = stream->last;

    if (stream->out && (size_t) (cl->buf->end - cl->buf->last) >= size) {
        return cl->buf;
    }

    cl = ngx_http_llmgw_chunk_get(stream->pool->worker,
                                  stream->out ? stream->last : NULL, size);
    if (cl == NULL) {
        return NULL;
    }

    if (stream->out) {
        stream->last->next = cl;
    } else {
        stream->out = cl;
    }

    stream->last = cl;

    return cl->buf;
}


/* NGX_OK: the client has all; NGX_AGAIN: it is slow; else the end of it. */

ngx_int_t
ngx_http_llmgw_output_flush(ngx_http_llmgw_stream_t *stream)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = stream->request;

    if (stream->out || stream->busy || r->connection->buffered) {
        if (ngx_http_llmgw_output_send(stream, 0) == NGX_ERROR) {
            return NGX_ERROR;
        }
    }

    wev = r->connection->write;

    if (stream->busy == NULL && !r->connection->buffered) {
        if (wev->timer_set && !wev->delayed) {
            ngx_del_timer(wev);
        }

        return NGX_OK;
    }

    if (r->connection->buffered == NGX_HTTP_V2_BUFFERED) {
        /* frames in the connection's queue, which has a timer of its own */
        return NGX_AGAIN;
    }

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->timer_set && !wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    return NGX_AGAIN;
}


static ngx_int_t
ngx_http_llmgw_output_send(ngx_http_llmgw_stream_t *stream, ngx_uint_t last)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = stream->request;

    if (stream->out || r->out) {
        ngx_http_llmgw_cork(stream->pool->worker, r);
    }

    if (!r->header_sent) {
        rc = ngx_http_llmgw_answer_headers(r);
        if (rc == NGX_ERROR || rc > NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (stream->out) {
        stream->last->buf->flush = 1;
        stream->last->buf->last_buf = last;
    }

    rc = ngx_http_output_filter(r, stream->out);

    ngx_http_llmgw_chunk_sent(stream);

    return rc;
}


/*
 * 1: nginx has nothing of ours left, and the chunks are free.  What was held
 * leaves in full nearly always; another walk through all of nginx's filters,
 * to be told so, would cost as much as the first.
 */

ngx_uint_t
ngx_http_llmgw_output_is_sent(ngx_http_llmgw_stream_t *stream)
{
#if (NGX_HTTP_V2)
    ngx_http_request_t  *r;

    r = stream->request;

    if (r->stream == NULL || r->stream->queued || stream->out || r->out
        || r->connection->buffered != NGX_HTTP_V2_BUFFERED
        || r->connection->error)
    {
        return 0;
    }

    r->connection->buffered = 0;

    ngx_http_llmgw_chunk_sent(stream);

    return stream->busy == NULL;
#else
    return 0;
#endif
}


/* The client takes bytes again, or has taken none for send_timeout. */

void
ngx_http_llmgw_output_write_handler(ngx_http_request_t *r)
{
    ngx_event_t              *wev;
    ngx_http_llmgw_stream_t  *stream;

    wev = r->connection->write;
    stream = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "llmgw: client does not read");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (stream && !stream->finished
        && (stream->blocked || r->connection->error))
    {
        if (wev->timer_set && !wev->delayed) {
            ngx_del_timer(wev);     /* something moved: a new term */
        }

        ngx_http_llmgw_stream_unblocked(stream);
    }
}


/* The request may be gone when this returns. */

void
ngx_http_llmgw_output_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = stream->request;

    if (!r->header_sent && stream->out == NULL) {
        ngx_http_llmgw_answer(r, status, reason, message);
        return;
    }

    if (ngx_http_llmgw_answer_trailers(r, status, reason, message)
        != NGX_OK)
    {
        ngx_http_finalize_request(r, NGX_ERROR);
        return;
    }

    rc = stream->out ? ngx_http_llmgw_output_send(stream, 1)
                     : ngx_http_send_special(r, NGX_HTTP_LAST);

    ngx_http_finalize_request(r, rc);
}
