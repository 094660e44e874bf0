
/*
 * A session: one HTTP/2 connection from this worker to a replica, shared by
 * all attempts there.
 *
 *            back-off passed          socket connected       SETTINGS came
 *   WAITING ----------------> CONNECTING -----------> CONNECTED ------> READY
 *      |                          |                       |               |
 *      +--------------------------+----- connect timeout -+               |
 *                                 v                                       v
 *                              failed <------ socket or HTTP/2 broke ---- +
 *                                                                         |
 *                  closed <--- last stream ended --- RETIRED <-- GOAWAY --+
 *
 * An attempt that comes before READY waits for the session; so the peer's limit
 * of concurrent streams is known before the first stream is opened, and a burst
 * does not open a connection for every hundred of them.  If the limit is
 * reached, or a GOAWAY has come, another session is opened.
 *
 * Timers here are cancelable, since streams have their own: an idle session
 * never keeps an old worker alive.  PINGs are not sent: during long silences
 * gRPC servers answer them with GOAWAY.
 */

#include "attempt/attempt.h"
#include "attempt/session_ssl.h"


/* Sessions per replica in a worker, whatever a peer's SETTINGS require. */
#define NGX_HTTP_LLMGW_MAX_SESSIONS  64


static ngx_http_llmgw_session_t *ngx_http_llmgw_session_create(
    ngx_http_llmgw_replica_t *replica, ngx_msec_t connect_timeout);
static llmgw_grpc_session_t *ngx_http_llmgw_session_grpc(
    ngx_http_llmgw_session_t *session);
static void ngx_http_llmgw_session_connect(ngx_http_llmgw_session_t *session);
static void ngx_http_llmgw_session_keep_alive(
    ngx_http_llmgw_session_t *session);
static ngx_int_t ngx_http_llmgw_session_test_connect(ngx_connection_t *c);
static void ngx_http_llmgw_session_useless(ngx_http_llmgw_session_t *session);
static void ngx_http_llmgw_session_end_waiting(
    ngx_http_llmgw_session_t *session, llmgw_ending_t ending,
    llmgw_cause_t cause);
static void ngx_http_llmgw_session_timer_handler(ngx_event_t *ev);


/*
 * The session for a new attempt: preferably one that can take a stream at once,
 * then one that will soon be ready, then a new one, then any, to wait until it
 * can.  NULL: none can be had.
 */

ngx_http_llmgw_session_t *
ngx_http_llmgw_session_get(ngx_http_llmgw_replica_t *replica,
    ngx_msec_t connect_timeout)
{
    ngx_uint_t                 n;
    ngx_queue_t               *q;
    ngx_http_llmgw_session_t  *session, *coming, *any;

    n = 0;
    coming = NULL;
    any = NULL;

    for (q = ngx_queue_head(&replica->sessions);
         q != ngx_queue_sentinel(&replica->sessions);
         q = ngx_queue_next(q))
    {
        session = ngx_queue_data(q, ngx_http_llmgw_session_t, queue);

        if (session->retired) {
            continue;
        }

        n++;

        if (!session->ready) {
            coming = session;
            continue;
        }

        if (llmgw_grpc_session_can_call(session->grpc)) {
            return session;
        }

        any = session;
    }

    if (coming) {
        return coming;
    }

    if (n >= NGX_HTTP_LLMGW_MAX_SESSIONS) {
        return any;
    }

    return ngx_http_llmgw_session_create(replica, connect_timeout);
}


static ngx_http_llmgw_session_t *
ngx_http_llmgw_session_create(ngx_http_llmgw_replica_t *replica,
    ngx_msec_t connect_timeout)
{
    ngx_http_llmgw_session_t  *session;

    session = ngx_calloc(sizeof(ngx_http_llmgw_session_t),
                         replica->pool->worker->log);
    if (session == NULL) {
        return NULL;
    }

    session->replica = replica;
    session->connect_timeout = connect_timeout;
    session->log = *replica->pool->worker->log;

    session->grpc = ngx_http_llmgw_session_grpc(session);
    if (session->grpc == NULL) {
        ngx_free(session);
        return NULL;
    }

    ngx_queue_init(&session->waiting);
    ngx_queue_insert_tail(&replica->sessions, &session->queue);
    replica->nsessions++;
    ngx_http_llmgw_metrics_sessions(replica->pool->zone, 1);

    session->flush.handler = ngx_http_llmgw_session_flush_handler;
    session->flush.data = session;
    session->flush.log = &session->log;

    session->timer.handler = ngx_http_llmgw_session_timer_handler;
    session->timer.data = session;
    session->timer.log = &session->log;
    session->timer.cancelable = 1;

    /*
     * connect() may fail at once, so the timer calls it: no caller then learns
     * of a failure before it has the session
     */

    ngx_add_timer(&session->timer,
                  llmgw_reach_wait_ms(&replica->reach, ngx_current_msec));

    return session;
}


static llmgw_grpc_session_t *
ngx_http_llmgw_session_grpc(ngx_http_llmgw_session_t *session)
{
    llmgw_grpc_config_t  config;

    ngx_memzero(&config, sizeof(llmgw_grpc_config_t));

    config.callbacks = ngx_http_llmgw_generate_callbacks();
    config.data = session;
    config.max_message_bytes = NGX_HTTP_LLMGW_MAX_RESPONSE;

    return llmgw_grpc_client_create(&config);
}


static void
ngx_http_llmgw_session_timer_handler(ngx_event_t *ev)
{
    ngx_http_llmgw_session_t  *session = ev->data;

    if (session->ready) {
        if (llmgw_grpc_session_streams(session->grpc) == 0
            && ngx_queue_empty(&session->waiting))
        {
            ngx_http_llmgw_session_fail(session, "idle");
        }

        return;
    }

    if (session->connecting || session->shaking || session->connected) {
        ngx_log_error(NGX_LOG_WARN, &session->log, NGX_ETIMEDOUT,
                      "llmgw: replica \"%V\" at %V did not take the "
                      "connection within %M ms%s",
                      &session->replica->node.str, &session->replica->address,
                      session->connect_timeout, session->shaking
                      ? ", in the TLS handshake: does it speak TLS" : "");
        ngx_http_llmgw_replica_connect_failed(session->replica);
        ngx_http_llmgw_session_fail(session, "connect timeout");
        return;
    }

    ngx_http_llmgw_session_connect(session);
}


static void
ngx_http_llmgw_session_connect(ngx_http_llmgw_session_t *session)
{
    ngx_int_t                  rc;
    ngx_connection_t          *c;
    ngx_peer_connection_t     *peer;
    ngx_http_llmgw_replica_t  *replica;

    replica = session->replica;
    peer = &session->peer;

    peer->sockaddr = &replica->sockaddr.sockaddr;
    peer->socklen = replica->socklen;
    peer->name = &replica->address;
    peer->get = ngx_event_get_peer;
    peer->log = &session->log;
    peer->log_error = NGX_ERROR_ERR;

    rc = ngx_event_connect_peer(peer);

    if (rc == NGX_ERROR || rc == NGX_BUSY || rc == NGX_DECLINED) {
        ngx_http_llmgw_replica_connect_failed(replica);
        ngx_http_llmgw_session_fail(session, "connect failed");
        return;
    }

    c = peer->connection;
    c->data = session;
    c->log = &session->log;
    c->read->log = c->log;
    c->write->log = c->log;
    c->read->handler = ngx_http_llmgw_session_read_handler;
    c->write->handler = ngx_http_llmgw_session_write_handler;
    session->log.connection = c->number;
    session->connecting = 1;

    ngx_add_timer(&session->timer, session->connect_timeout);

    if (rc == NGX_OK) {
        ngx_http_llmgw_session_connected(session);
    }
}


void
ngx_http_llmgw_session_connected(ngx_http_llmgw_session_t *session)
{
    ngx_connection_t  *c;

    c = session->peer.connection;

    if (ngx_http_llmgw_session_test_connect(c) != NGX_OK) {
        ngx_http_llmgw_replica_connect_failed(session->replica);
        ngx_http_llmgw_session_fail(session, "connect failed");
        return;
    }

    session->connecting = 0;

    (void) ngx_tcp_nodelay(c);
    ngx_http_llmgw_session_keep_alive(session);

    if (session->replica->pool->conf->ssl.made) {
        ngx_http_llmgw_session_ssl_begin(session);
        return;
    }

    ngx_http_llmgw_session_open(session);
}


/* From here on the session speaks HTTP/2. */

void
ngx_http_llmgw_session_open(ngx_http_llmgw_session_t *session)
{
    session->connected = 1;
    ngx_http_llmgw_session_wake(session);
}


/*
 * Detects dead peers: an idle connection by TCP keepalive, which also keeps a
 * NAT's flow alive, a busy one by TCP_USER_TIMEOUT.
 */

static void
ngx_http_llmgw_session_keep_alive(ngx_http_llmgw_session_t *session)
{
    size_t             i;
    ngx_connection_t  *c;

    static const struct {
        int  level, name, value;
    } options[] = {
        { SOL_SOCKET,  SO_KEEPALIVE,     1 },
        { IPPROTO_TCP, TCP_KEEPIDLE,     15 },      /* seconds */
        { IPPROTO_TCP, TCP_KEEPINTVL,    5 },
        { IPPROTO_TCP, TCP_KEEPCNT,      3 },
        { IPPROTO_TCP, TCP_USER_TIMEOUT, 20000 }    /* milliseconds */
    };

    c = session->peer.connection;

    if (session->peer.sockaddr->sa_family == AF_UNIX) {
        return;
    }

    for (i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (setsockopt(c->fd, options[i].level, options[i].name,
                       (const void *) &options[i].value, sizeof(int)) == -1)
        {
            ngx_connection_error(c, ngx_socket_errno,
                                 "llmgw: setsockopt() of keepalive failed");
        }
    }
}


static ngx_int_t
ngx_http_llmgw_session_test_connect(ngx_connection_t *c)
{
    int        err;
    socklen_t  len;

    err = 0;
    len = sizeof(int);

    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, (void *) &err, &len) == -1) {
        err = ngx_socket_errno;
    }

    if (err) {
        (void) ngx_connection_error(c, err, "llmgw: connect() failed");
        return NGX_ERROR;
    }

    return NGX_OK;
}


/*
 * The peer's SETTINGS have come: its limit is known, and attempts that wait may
 * start.
 */

void
ngx_http_llmgw_session_ready(ngx_http_llmgw_session_t *session)
{
    if (session->ready) {
        return;
    }

    session->ready = 1;

    if (session->timer.timer_set) {
        ngx_del_timer(&session->timer);
    }

    if (session->retired) {
        ngx_http_llmgw_session_useless(session);
    }

    ngx_http_llmgw_session_wake(session);
}


/*
 * The replica accepts connections but allows no stream on them.  That counts as
 * a refusal: waiting attempts go elsewhere, and the back-off grows.
 */

static void
ngx_http_llmgw_session_useless(ngx_http_llmgw_session_t *session)
{
    ngx_http_llmgw_replica_connect_failed(session->replica);
    ngx_http_llmgw_session_end_waiting(session, LLMGW_ENDING_FAILED,
                                       LLMGW_CAUSE_CONNECT);
}


/* A call was answered: the back-off of the replica begins anew. */

void
ngx_http_llmgw_session_proves(ngx_http_llmgw_session_t *session)
{
    if (!session->proven) {
        session->proven = 1;
        ngx_http_llmgw_replica_connected(session->replica);
    }
}


/*
 * GOAWAY has come: running streams finish here, new ones use another session.
 */

void
ngx_http_llmgw_session_retire(ngx_http_llmgw_session_t *session)
{
    session->retired = 1;

    if (session->ready && !session->called) {
        ngx_http_llmgw_session_useless(session);
    }

    ngx_http_llmgw_session_wake(session);
    ngx_http_llmgw_session_wake_waiting(session->replica);
}


/*
 * The replica has moved or is no longer listed, which is not a failure. Running
 * streams stay; attempts that wait for a session claim again, and a session
 * that is not ready ends.
 */

void
ngx_http_llmgw_session_retire_all(ngx_http_llmgw_replica_t *replica)
{
    ngx_queue_t               *q, *next;
    ngx_http_llmgw_session_t  *session;

    for (q = ngx_queue_head(&replica->sessions);
         q != ngx_queue_sentinel(&replica->sessions);
         q = next)
    {
        next = ngx_queue_next(q);
        session = ngx_queue_data(q, ngx_http_llmgw_session_t, queue);

        session->retired = 1;
        ngx_http_llmgw_session_end_waiting(session, LLMGW_ENDING_REFUSED,
                                           LLMGW_CAUSE_GOAWAY);

        if (session->ready) {
            ngx_http_llmgw_session_wake(session);

        } else {
            ngx_http_llmgw_session_fail(session, "not wanted");
        }
    }
}


/*
 * An attempt has received nothing since then.  If no other attempt has either,
 * the connection may be silently dead: a firewall or NAT that has forgotten the
 * flow drops all packets.  Then the next attempt opens a new connection.
 */

void
ngx_http_llmgw_session_timed_out(ngx_http_llmgw_session_t *session,
    ngx_msec_t since_ms)
{
    if (session->retired || !session->ready
        || (ngx_msec_int_t) (session->read_ms - since_ms) > 0)
    {
        return;
    }

    ngx_log_error(NGX_LOG_WARN, &session->log, 0,
                  "llmgw: replica \"%V\" at %V sent nothing for %M ms, the "
                  "connection is given up", &session->replica->node.str,
                  &session->replica->address, ngx_current_msec - since_ms);

    ngx_http_llmgw_session_retire(session);
}


/*
 * Something is to be written, or a stream has ended: flush when the event
 * loop's iteration ends.
 */

void
ngx_http_llmgw_session_wake(ngx_http_llmgw_session_t *session)
{
    ngx_post_event(&session->flush, &ngx_posted_events);
}


/*
 * Attempts that wait for one session may have a place at another one now, or
 * may open one more: they ask again.
 */

void
ngx_http_llmgw_session_wake_waiting(ngx_http_llmgw_replica_t *replica)
{
    ngx_queue_t               *q;
    ngx_http_llmgw_session_t  *session;

    for (q = ngx_queue_head(&replica->sessions);
         q != ngx_queue_sentinel(&replica->sessions);
         q = ngx_queue_next(q))
    {
        session = ngx_queue_data(q, ngx_http_llmgw_session_t, queue);

        if (!ngx_queue_empty(&session->waiting)) {
            ngx_http_llmgw_session_wake(session);
        }
    }
}


/* Notifies the session's attempts; the session is freed when this returns. */

void
ngx_http_llmgw_session_fail(ngx_http_llmgw_session_t *session,
    const char *error)
{
    ngx_log_debug2(NGX_LOG_DEBUG_HTTP, &session->log, 0,
                   "llmgw: session to \"%V\" ends: %s",
                   &session->replica->node.str, error);

    ngx_http_llmgw_session_destroy(session);
}


static void
ngx_http_llmgw_session_end_waiting(ngx_http_llmgw_session_t *session,
    llmgw_ending_t ending, llmgw_cause_t cause)
{
    ngx_queue_t               *q;
    ngx_http_llmgw_attempt_t  *attempt;

    while (!ngx_queue_empty(&session->waiting)) {
        q = ngx_queue_head(&session->waiting);
        attempt = ngx_queue_data(q, ngx_http_llmgw_attempt_t, wait_queue);

        ngx_http_llmgw_attempt_end(attempt, ending, cause);
    }
}


void
ngx_http_llmgw_session_destroy(ngx_http_llmgw_session_t *session)
{
    session->retired = 1;

    ngx_http_llmgw_session_end_waiting(session, LLMGW_ENDING_FAILED,
                                       LLMGW_CAUSE_CONNECT);
    llmgw_grpc_session_destroy(session->grpc);

    if (session->timer.timer_set) {
        ngx_del_timer(&session->timer);
    }

    if (session->flush.posted) {
        ngx_delete_posted_event(&session->flush);
    }

    ngx_http_llmgw_coalesce_leave(session);
    ngx_http_llmgw_session_ssl_done(session);

    if (session->peer.connection) {
        ngx_close_connection(session->peer.connection);
    }

    if (session->pending) {
        ngx_free(session->pending);
    }

    ngx_queue_remove(&session->queue);
    session->replica->nsessions--;
    ngx_http_llmgw_session_wake_waiting(session->replica);
    ngx_http_llmgw_metrics_sessions(session->replica->pool->zone, -1);

    ngx_free(session);
}


void
ngx_http_llmgw_session_destroy_all(ngx_http_llmgw_replica_t *replica)
{
    ngx_queue_t  *q;

    while (!ngx_queue_empty(&replica->sessions)) {
        q = ngx_queue_head(&replica->sessions);
        ngx_http_llmgw_session_destroy(
            ngx_queue_data(q, ngx_http_llmgw_session_t, queue));
    }
}
