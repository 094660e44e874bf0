
/*
 * Reading replicas at intervals while the worker is busy: core/coalesce.h has
 * the rule and its reason.
 *
 * A session that is read at intervals stays in epoll, and its socket gets a
 * low-water mark (SO_RCVLOWAT) that it does not reach: the kernel still wakes
 * us for a broken or closed connection, but no longer for a token.  One timer
 * of the worker reads all such sessions.  If so many bytes arrive that the
 * low-water mark is reached, the event is handled as usual.
 */

#include "attempt/asking.h"
#include "attempt/session.h"


/* Less than a stream's window: no replica waits for it to be reached. */
#define NGX_HTTP_LLMGW_COALESCE_BYTES   (NGX_HTTP_LLMGW_IO_BYTES / 2)

#define NGX_HTTP_LLMGW_COALESCE_MAX_MS  100


static void ngx_http_llmgw_coalesce_stop(ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_coalesce_mark(
    ngx_http_llmgw_session_t *session, int bytes);
static void ngx_http_llmgw_coalesce_handler(ngx_event_t *ev);
static void ngx_http_llmgw_coalesce_read(ngx_http_llmgw_session_t *session);


const ngx_http_llmgw_param_t  ngx_http_llmgw_coalesce_params[] = {
    ngx_http_llmgw_param(ngx_http_llmgw_main_conf_t, NULL, MSEC, coalesce,
        .max = NGX_HTTP_LLMGW_COALESCE_MAX_MS, .words = ngx_http_llmgw_off,
        .right = "off or 1ms to 100ms"),
    { .kind = 0 }
};


/*
 * Off if timer_resolution is as coarse as the interval: timers end by that
 * clock.
 */

void
ngx_http_llmgw_coalesce_init(ngx_http_llmgw_worker_t *worker,
    ngx_cycle_t *cycle)
{
    ngx_core_conf_t            *ccf;
    ngx_http_llmgw_coalesce_t  *coalesce;

    coalesce = &worker->asking->coalesce;
    ccf = (ngx_core_conf_t *) ngx_get_conf(cycle->conf_ctx, ngx_core_module);

    if (ccf->timer_resolution < worker->conf->coalesce) {
        coalesce->load.interval_ms = worker->conf->coalesce;
    }

    ngx_queue_init(&coalesce->sessions);

    coalesce->timer.handler = ngx_http_llmgw_coalesce_handler;
    coalesce->timer.data = worker;
    coalesce->timer.log = worker->log;
    coalesce->timer.cancelable = 1;
}


void
ngx_http_llmgw_coalesce_done(ngx_http_llmgw_worker_t *worker)
{
    ngx_event_t  *timer;

    timer = &worker->asking->coalesce.timer;

    if (timer->timer_set) {
        ngx_del_timer(timer);
    }
}


/*
 * An event: the session is read next, and perhaps at intervals from then on;
 * but not at intervals while a prompt waits for the replica's window, as
 * updates of that have to be read at once.
 */

void
ngx_http_llmgw_coalesce_event(ngx_http_llmgw_session_t *session)
{
    ngx_http_llmgw_coalesce_t  *coalesce;

    if (llmgw_grpc_session_unsent(session->grpc)) {
        return;
    }

    coalesce = &session->replica->pool->worker->asking->coalesce;

    if (!llmgw_coalesce_event(&coalesce->load, &session->source,
                              ngx_current_msec))
    {
        return;
    }

    if (ngx_http_llmgw_coalesce_mark(session, NGX_HTTP_LLMGW_COALESCE_BYTES)
        != NGX_OK)
    {
        session->source.at_intervals = 0;
        return;
    }

    ngx_queue_insert_tail(&coalesce->sessions, &session->coalesced);

    if (!coalesce->timer.timer_set) {
        ngx_add_timer(&coalesce->timer, coalesce->load.interval_ms);
    }
}


/* The socket has taken everything. */

void
ngx_http_llmgw_coalesce_written(ngx_http_llmgw_session_t *session)
{
    if (session->source.at_intervals
        && llmgw_grpc_session_unsent(session->grpc))
    {
        ngx_http_llmgw_coalesce_stop(session);
    }
}


/*
 * Returns the session to reading by events.  It stays at intervals if the mark
 * cannot be removed.
 */

static void
ngx_http_llmgw_coalesce_stop(ngx_http_llmgw_session_t *session)
{
    if (ngx_http_llmgw_coalesce_mark(session, 1) == NGX_OK) {
        ngx_http_llmgw_coalesce_leave(session);
    }
}


/* To be called when the session ends, or when its mark was removed. */

void
ngx_http_llmgw_coalesce_leave(ngx_http_llmgw_session_t *session)
{
    if (session->source.at_intervals) {
        session->source.at_intervals = 0;
        ngx_queue_remove(&session->coalesced);
    }
}


static ngx_int_t
ngx_http_llmgw_coalesce_mark(ngx_http_llmgw_session_t *session, int bytes)
{
    ngx_connection_t  *c;

    c = session->peer.connection;

    if (setsockopt(c->fd, SOL_SOCKET, SO_RCVLOWAT, (const void *) &bytes,
                   sizeof(int))
        == -1)
    {
        (void) ngx_connection_error(c, ngx_socket_errno,
                                    "llmgw: setsockopt(SO_RCVLOWAT) failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/* Any session may end while it is read, or while another one is. */

static void
ngx_http_llmgw_coalesce_handler(ngx_event_t *ev)
{
    ngx_queue_t                 due, *q;
    ngx_http_llmgw_worker_t    *worker = ev->data;
    ngx_http_llmgw_coalesce_t  *coalesce;

    coalesce = &worker->asking->coalesce;

    ngx_queue_init(&due);

    if (!ngx_queue_empty(&coalesce->sessions)) {
        ngx_queue_add(&due, &coalesce->sessions);
        ngx_queue_init(&coalesce->sessions);
    }

    while (!ngx_queue_empty(&due)) {
        q = ngx_queue_head(&due);

        ngx_queue_remove(q);
        ngx_queue_insert_tail(&coalesce->sessions, q);

        ngx_http_llmgw_coalesce_read(
            ngx_queue_data(q, ngx_http_llmgw_session_t, coalesced));
    }

    if (!ngx_queue_empty(&coalesce->sessions)) {
        ngx_add_timer(ev, coalesce->load.interval_ms);
    }
}


/*
 * The mark is removed first, so that bytes that arrive after this read cause an
 * event.  The session may be gone when this returns.
 */

static void
ngx_http_llmgw_coalesce_read(ngx_http_llmgw_session_t *session)
{
    ngx_event_t            *rev;
    ngx_http_llmgw_pool_t  *pool;

    pool = session->replica->pool;

    if (llmgw_coalesce_interval(&pool->worker->asking->coalesce.load,
                                &session->source))
    {
        ngx_http_llmgw_coalesce_stop(session);
    }

    /* as epoll would report it: bytes are available, of unknown number */

    rev = session->peer.connection->read;
    rev->ready = 1;
    rev->available = -1;

    ngx_http_llmgw_metrics_read(pool->zone, NGX_HTTP_LLMGW_READ_INTERVAL);
    ngx_http_llmgw_session_read(session);
}
