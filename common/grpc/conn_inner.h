
/*
 * Private to conn.c and server.c: what both know of a connection.
 */

#ifndef GRPC_CONN_INNER_H
#define GRPC_CONN_INNER_H

#include "common/grpc/conn.h"


struct grpc_conn_s {
    struct ev_loop         *loop;
    ev_io                   reader;
    ev_io                   writer;     /* connecting, or the socket is full */
    ev_prepare              waker;      /* never started, only fed */
    ev_timer                timer;      /* connecting, or lingering */
    llmgw_grpc_session_t   *session;
    grpc_conn_closed_pt     on_closed;
    void                  (*on_gone)(grpc_conn_t *conn);    /* the server's */
    void                   *data;
    address_t               peer;
    int                     fd;
    int                     connect_errno;

    uint8_t                *rest;       /* bytes the socket did not take */
    size_t                  rest_start;
    size_t                  rest_end;

    grpc_server_t          *server;     /* and its list; NULL: a client */
    grpc_conn_t            *prev;
    grpc_conn_t            *next;

    unsigned                busy;       /* the session is calling back */
    unsigned                is_connecting:1;
    unsigned                is_lingering:1;
    unsigned                is_destroyed:1;
};

typedef llmgw_grpc_session_t *(*grpc_conn_session_pt)(
    const llmgw_grpc_config_t *config);

/* Takes fd over, where it does not return NULL.  No watcher is started. */
grpc_conn_t *grpc_conn_create(struct ev_loop *loop, int fd,
    const address_t *peer, const llmgw_grpc_config_t *config,
    grpc_conn_session_pt create);

/* The socket is connected: begins to read and to write. */
void grpc_conn_open(grpc_conn_t *conn);

#endif /* GRPC_CONN_INNER_H */
