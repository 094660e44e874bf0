
/*
 * A session's bytes: reading, and one flush for each iteration of the event
 * loop.
 *
 * Whatever is queued in an iteration (calls, windows, resets) leaves in as few
 * writes as the socket takes, after all callbacks have returned.  Reading and
 * writing use one buffer of the worker's; a session keeps bytes of its own
 * only while the socket refuses to take them.
 *
 * The flush is also where a session ends that has nothing left to do.
 */

#include "attempt/asking.h"
#include "attempt/attempt.h"
#include "attempt/session_ssl.h"


/* then others are read, and the rest in the next iteration */
#define NGX_HTTP_LLMGW_MAX_READS  8


static void ngx_http_llmgw_session_closed(ngx_http_llmgw_session_t *session);
static void ngx_http_llmgw_session_call_waiting(
    ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_session_send(
    ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_session_send_pending(
    ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_session_keep(
    ngx_http_llmgw_session_t *session, u_char *buf, size_t size);
static void ngx_http_llmgw_session_rest(ngx_http_llmgw_session_t *session);


void
ngx_http_llmgw_session_read_handler(ngx_event_t *rev)
{
    ngx_connection_t          *c;
    ngx_http_llmgw_session_t  *session;

    c = rev->data;
    session = c->data;

    if (session->connecting) {
        return;
    }

    if (session->shaking) {
        ngx_http_llmgw_session_ssl_shake(session);
        return;
    }

    ngx_http_llmgw_metrics_read(session->replica->pool->zone,
                                NGX_HTTP_LLMGW_READ_EVENT);
    ngx_http_llmgw_coalesce_event(session);
    ngx_http_llmgw_session_read(session);
}


/* The session may be gone when this returns. */

void
ngx_http_llmgw_session_read(ngx_http_llmgw_session_t *session)
{
    u_char            *io;
    ssize_t            n;
    ngx_uint_t         i;
    ngx_event_t       *rev;
    ngx_connection_t  *c;

    c = session->peer.connection;
    rev = c->read;
    io = session->replica->pool->worker->asking->io;

    for (i = 0; i < NGX_HTTP_LLMGW_MAX_READS; i++) {

        n = c->recv(c, io, NGX_HTTP_LLMGW_IO_BYTES);

        if (n == NGX_AGAIN) {
            break;
        }

        if (n == NGX_ERROR || n == 0) {
            ngx_http_llmgw_session_closed(session);
            return;
        }

        session->read_ms = ngx_current_msec;
        llmgw_coalesce_brought(&session->source);

        if (llmgw_grpc_session_recv(session->grpc, io, n)
            != LLMGW_GRPC_DONE)
        {
            ngx_log_error(NGX_LOG_ERR, &session->log, 0,
                          "llmgw: replica \"%V\" broke HTTP/2",
                          &session->replica->node.str);
            ngx_http_llmgw_session_fail(session, "HTTP/2 broken");
            return;
        }

        if (!rev->ready) {
            break;
        }
    }

    if (rev->ready) {
        ngx_post_event(rev, &ngx_posted_next_events);
    }

    if (ngx_handle_read_event(rev, 0) != NGX_OK) {
        ngx_http_llmgw_session_fail(session, "event failed");
        return;
    }

    if (llmgw_grpc_session_wants_write(session->grpc)
        || llmgw_grpc_session_is_over(session->grpc))
    {
        ngx_http_llmgw_session_wake(session);
    }
}


/* In HTTP/2 a server sends first; over TLS the client does. */

static void
ngx_http_llmgw_session_closed(ngx_http_llmgw_session_t *session)
{
    if (session->read_ms == 0 && session->ssl == NULL) {
        ngx_log_error(NGX_LOG_WARN, &session->log, 0,
                      "llmgw: replica \"%V\" at %V closed the connection "
                      "before it said anything: it may expect TLS, see "
                      "llmgw_ssl",
                      &session->replica->node.str, &session->replica->address);
    }

    ngx_http_llmgw_session_fail(session, "closed by the replica");
}


void
ngx_http_llmgw_session_write_handler(ngx_event_t *wev)
{
    ngx_connection_t          *c;
    ngx_http_llmgw_session_t  *session;

    c = wev->data;
    session = c->data;

    if (session->connecting) {
        ngx_http_llmgw_session_connected(session);
        return;
    }

    if (session->shaking) {
        ngx_http_llmgw_session_ssl_shake(session);
        return;
    }

    /* epoll says "writable" along with each "readable" */

    if (session->pending) {
        ngx_http_llmgw_session_wake(session);
    }

    if (ngx_http_llmgw_session_ssl_reads(session)) {
        ngx_post_event(c->read, &ngx_posted_events);
    }
}


void
ngx_http_llmgw_session_flush_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_session_t  *session = ev->data;

    if (!session->connected) {
        return;
    }

    if (session->ready) {
        ngx_http_llmgw_session_call_waiting(session);

        if (!session->retired && llmgw_grpc_session_can_call(session->grpc)) {
            ngx_http_llmgw_session_wake_waiting(session->replica);
        }
    }

    if (ngx_http_llmgw_session_send(session) != NGX_OK) {
        ngx_http_llmgw_session_fail(session, "broken");
        return;
    }

    ngx_http_llmgw_coalesce_written(session);
    ngx_http_llmgw_session_rest(session);
}


/*
 * Each waiting attempt gets its stream, or moves to another session, or waits
 * here again, at the end of the queue: so they are counted first.
 */

static void
ngx_http_llmgw_session_call_waiting(ngx_http_llmgw_session_t *session)
{
    ngx_uint_t                 n;
    ngx_queue_t               *q;
    ngx_http_llmgw_attempt_t  *attempt;

    n = 0;

    for (q = ngx_queue_head(&session->waiting);
         q != ngx_queue_sentinel(&session->waiting);
         q = ngx_queue_next(q))
    {
        n++;
    }

    while (n--) {
        q = ngx_queue_head(&session->waiting);
        attempt = ngx_queue_data(q, ngx_http_llmgw_attempt_t, wait_queue);

        ngx_queue_remove(q);
        attempt->waits = 0;

        ngx_http_llmgw_attempt_call(attempt);
    }
}


static ngx_int_t
ngx_http_llmgw_session_send(ngx_http_llmgw_session_t *session)
{
    u_char            *io;
    ssize_t            n, sent;
    ngx_connection_t  *c;

    c = session->peer.connection;
    io = session->replica->pool->worker->asking->io;

    if (session->pending
        && ngx_http_llmgw_session_send_pending(session) == NGX_ERROR)
    {
        return NGX_ERROR;
    }

    while (session->pending == NULL) {

        n = llmgw_grpc_session_write(session->grpc, io,
                                     NGX_HTTP_LLMGW_IO_BYTES);
        if (n < 0) {
            return NGX_ERROR;
        }

        if (n == 0) {
            break;
        }

        sent = c->send(c, io, n);

        if (sent == NGX_ERROR) {
            return NGX_ERROR;
        }

        if (sent == NGX_AGAIN) {
            sent = 0;
        }

        if (sent < n
            && ngx_http_llmgw_session_keep(session, io + sent, n - sent)
               != NGX_OK)
        {
            return NGX_ERROR;
        }
    }

    return ngx_handle_write_event(c->write, 0);
}


static ngx_int_t
ngx_http_llmgw_session_send_pending(ngx_http_llmgw_session_t *session)
{
    ssize_t            n;
    ngx_connection_t  *c;

    c = session->peer.connection;

    n = c->send(c, session->pending + session->pending_pos,
                session->pending_last - session->pending_pos);

    if (n == NGX_ERROR || n == NGX_AGAIN) {
        return n;
    }

    session->pending_pos += n;

    if (session->pending_pos == session->pending_last) {
        ngx_free(session->pending);
        session->pending = NULL;
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_session_keep(ngx_http_llmgw_session_t *session, u_char *buf,
    size_t size)
{
    session->pending = ngx_alloc(size, &session->log);
    if (session->pending == NULL) {
        return NGX_ERROR;
    }

    ngx_memcpy(session->pending, buf, size);
    session->pending_pos = 0;
    session->pending_last = size;

    return NGX_OK;
}


/*
 * Ends a session that is over, a retired one whose last stream has ended, and,
 * later, a spare one.
 */

static void
ngx_http_llmgw_session_rest(ngx_http_llmgw_session_t *session)
{
    if (llmgw_grpc_session_is_over(session->grpc)) {
        ngx_http_llmgw_session_fail(session, "over");
        return;
    }

    if (!session->ready) {
        return;
    }

    if (llmgw_grpc_session_streams(session->grpc)
        || !ngx_queue_empty(&session->waiting))
    {
        if (session->timer.timer_set) {
            ngx_del_timer(&session->timer);
        }

        return;
    }

    if (session->retired) {
        ngx_http_llmgw_session_fail(session, "retired");
        return;
    }

    if (session->replica->nsessions > 1 && !session->timer.timer_set) {
        ngx_add_timer(&session->timer, NGX_HTTP_LLMGW_IDLE_MS);
    }
}
