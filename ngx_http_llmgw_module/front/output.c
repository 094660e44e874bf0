
/*
 * Output: a stream's bytes until they are in nginx's response body.
 *
 * A front packs tokens one after another into chunks (chunk.c), and they are
 * flushed once per iteration of the event loop.  nginx may keep some of them,
 * because the client is slow, or because its connection is corked for the rest
 * of the iteration (cork.c).  Until they are sent the stream is blocked, and
 * its replica gets no more window.
 */

#include "front/clients.h"
#include "front/output.h"


static ngx_int_t ngx_http_llmgw_output_send(ngx_http_llmgw_stream_t *stream,
    ngx_uint_t last);


ngx_buf_t *
ngx_http_llmgw_output_room(ngx_http_llmgw_stream_t *stream, size_t size)
{
    ngx_chain_t  *cl;

    cl = stream->last;

    if (stream->out && (size_t) (cl->buf->end - cl->buf->last) >= size) {
        return cl->buf;
    }

    cl = ngx_http_llmgw_chunk_get(stream->clients,
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


size_t
ngx_http_llmgw_output_bytes(ngx_http_llmgw_stream_t *stream)
{
    size_t        bytes;
    ngx_chain_t  *cl;

    bytes = 0;

    for (cl = stream->busy; cl; cl = cl->next) {
        bytes += cl->buf->end - cl->buf->start;
    }

    for (cl = stream->out; cl; cl = cl->next) {
        bytes += cl->buf->end - cl->buf->start;
    }

    return bytes;
}


ngx_int_t
ngx_http_llmgw_output_flush(ngx_http_llmgw_stream_t *stream)
{
    ngx_event_t               *wev;
    ngx_http_request_t        *r;
    ngx_http_core_loc_conf_t  *clcf;

    r = stream->request;

    if (stream->holds) {
        return NGX_OK;
    }

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

#if (NGX_HTTP_V2)
    if (r->connection->buffered == NGX_HTTP_V2_BUFFERED) {
        /* the frames are in the connection's queue, which has its own timer */
        return NGX_AGAIN;
    }
#endif

    clcf = ngx_http_get_module_loc_conf(r, ngx_http_core_module);

    if (!wev->timer_set && !wev->delayed) {
        ngx_add_timer(wev, clcf->send_timeout);
    }

    /* the connection is this request's own, unless it is an HTTP/2 one */

    if (r->http_version < NGX_HTTP_VERSION_20
        && ngx_handle_write_event(wev, clcf->send_lowat) != NGX_OK)
    {
        return NGX_ERROR;
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
        ngx_http_llmgw_cork(stream->clients, r);
    }

    if (!r->header_sent) {
        rc = stream->front->begin(r);
        if (rc == NGX_ERROR || rc > NGX_OK) {
            return NGX_ERROR;
        }
    }

    if (r->header_only) {
        /* nginx would write them after an answer that has no body */
        ngx_http_llmgw_chunk_drop(stream);
    }

    if (stream->out) {
        stream->last->buf->flush = 1;
        stream->last->buf->last_buf = last;
        stream->sent_ms = ngx_current_msec;
    }

    rc = ngx_http_output_filter(r, stream->out);

    ngx_http_llmgw_chunk_sent(stream);

    return rc;
}


/*
 * nginx calls the write handler when the frames of a corked connection are
 * sent, and nearly always that is all of them.  To learn that by passing
 * through all of nginx's filters once more would cost as much as the first
 * pass.
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


/* Called when the client takes bytes again, or took none for send_timeout. */

void
ngx_http_llmgw_output_write_handler(ngx_http_request_t *r)
{
    ngx_event_t              *wev;
    ngx_http_llmgw_stream_t  *stream;

    wev = r->connection->write;
    stream = ngx_http_llmgw_stream_of(r);

    if (wev->timedout) {
        ngx_log_error(NGX_LOG_INFO, r->connection->log, NGX_ETIMEDOUT,
                      "llmgw: client does not read");
        r->connection->timedout = 1;
        ngx_http_finalize_request(r, NGX_HTTP_REQUEST_TIME_OUT);
        return;
    }

    if (stream && !stream->record.finished
        && (stream->blocked || r->connection->error))
    {
        if (wev->timer_set && !wev->delayed) {
            ngx_del_timer(wev);     /* the client took some: the timeout starts
                                       anew */
        }

        ngx_http_llmgw_stream_unblocked(stream);
    }
}


void
ngx_http_llmgw_output_last(ngx_http_llmgw_stream_t *stream)
{
    ngx_int_t            rc;
    ngx_http_request_t  *r;

    r = stream->request;

    rc = stream->out ? ngx_http_llmgw_output_send(stream, 1)
                     : ngx_http_send_special(r, NGX_HTTP_LAST);

    ngx_http_finalize_request(r, rc);
}
