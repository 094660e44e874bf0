
/*
 * A session: one HTTP/2 connection from this worker to a replica, shared by
 * all attempts there.  session.c opens and ends it, session_io.c moves its
 * bytes.
 */

#ifndef _NGX_HTTP_LLMGW_SESSION_H_INCLUDED_
#define _NGX_HTTP_LLMGW_SESSION_H_INCLUDED_


#include "core/coalesce.h"
#include "proto/grpc/session.h"

#include "attempt/coalesce.h"
#include "fleet/replica.h"


#define NGX_HTTP_LLMGW_IDLE_MS        60000  /* of a spare session */
#define NGX_HTTP_LLMGW_MAX_RESPONSE   (1024 * 1024)   /* of one token */


typedef struct ngx_http_llmgw_session_ssl_s  ngx_http_llmgw_session_ssl_t;

struct ngx_http_llmgw_session_s {
    ngx_queue_t                   queue;        /* of the replica */
    ngx_http_llmgw_replica_t     *replica;
    ngx_peer_connection_t         peer;
    ngx_log_t                     log;
    llmgw_grpc_session_t         *grpc;
    ngx_queue_t                   waiting;      /* attempts with no call yet */
    ngx_event_t                   flush;        /* posted */
    ngx_event_t                   timer;        /* back-off, connect, idle */
    ngx_http_llmgw_session_ssl_t *ssl;          /* NULL: no TLS */

    u_char                       *pending;      /* the socket took no more */
    size_t                        pending_pos;
    size_t                        pending_last;

    ngx_msec_t                    connect_timeout;
    ngx_msec_t                    read_ms;      /* when bytes came last */
    llmgw_coalesce_source_t       source;
    ngx_queue_t                   coalesced;    /* in the worker's list of those
                                                   read at intervals */

    unsigned                      connecting:1;
    unsigned                      shaking:1;    /* in the TLS handshake */
    unsigned                      connected:1;
    unsigned                      ready:1;      /* the peer's SETTINGS came */
    unsigned                      retired:1;    /* no new streams */
    unsigned                      called:1;     /* a call was opened */
    unsigned                      proven:1;     /* a call was answered */
    unsigned                      has_more:1;   /* has sent more than tokens */
};


ngx_http_llmgw_session_t *ngx_http_llmgw_session_get(
    ngx_http_llmgw_replica_t *replica, ngx_msec_t connect_timeout);
void ngx_http_llmgw_session_wake(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_wake_waiting(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_session_ready(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_retire(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_proves(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_connected(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_open(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_read_handler(ngx_event_t *rev);
void ngx_http_llmgw_session_read(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_write_handler(ngx_event_t *wev);
void ngx_http_llmgw_session_flush_handler(ngx_event_t *ev);
void ngx_http_llmgw_session_fail(ngx_http_llmgw_session_t *session,
    const char *error);
void ngx_http_llmgw_session_destroy(ngx_http_llmgw_session_t *session);
void ngx_http_llmgw_session_destroy_all(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_session_retire_all(ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_session_timed_out(ngx_http_llmgw_session_t *session,
    ngx_msec_t since_ms);


#endif /* _NGX_HTTP_LLMGW_SESSION_H_INCLUDED_ */
