
/*
 * Private to common/grpc/: what its files know of a connection.
 */

#ifndef GRPC_CONN_INNER_H
#define GRPC_CONN_INNER_H

#include "common/grpc/conn.h"


struct grpc_conn_s {
    struct ev_loop         *loop;
    ev_io                   reader;
    ev_io                   writer;     /* connecting, or the socket is full */
    ev_prepare              waker;      /* never started, only fed */
    ev_timer                timer;      /* connecting, silence, lingering */
    llmgw_grpc_session_t   *session;
    grpc_conn_options_t     options;
    void                   *channel;    /* of options.channel */
    const char             *reason;     /* the reason of its end, while it
                                           lingers */
    grpc_conn_closed_pt     on_closed;
    void                  (*on_gone)(grpc_conn_t *conn);    /* the server's */
    void                  (*on_ready)(grpc_conn_t *conn);   /* the same; NULL:
                                                   the first frame has come */
    void                   *data;
    address_t               peer;
    int                     fd;
    int                     connect_errno;
    uint64_t                read_ms;    /* the peer's last byte, monotonic */

    uint8_t                *rest;       /* bytes the socket did not take */
    size_t                  rest_start;
    size_t                  rest_end;

    grpc_server_t          *server;     /* NULL: a client */
    grpc_conn_t           **list;       /* the server's that it is in */
    grpc_conn_t            *prev;
    grpc_conn_t            *next;

    unsigned                busy;       /* the session is calling back */
    unsigned                is_connecting:1;    /* not open yet */
    unsigned                is_shaking:1;       /* its channel's handshake */
    unsigned                is_heard:1;     /* the peer has sent something */
    unsigned                is_pinged:1;    /* and not heard of since */
    unsigned                is_lingering:1;
    unsigned                is_destroyed:1;
};

typedef llmgw_grpc_session_t *(*grpc_conn_session_pt)(
    const llmgw_grpc_config_t *config);

/*
 * Takes fd over, where it does not return NULL.  No watcher is started.
 * options may be NULL.
 */
grpc_conn_t *grpc_conn_create(struct ev_loop *loop, int fd,
    const address_t *peer, const grpc_conn_options_t *options,
    const llmgw_grpc_config_t *config, grpc_conn_session_pt create);

/* The socket is connected: its channel's handshake, if it has one. */
void grpc_conn_open(grpc_conn_t *conn);

/* The socket is ready for more of the handshake, or it took too long. */
void grpc_conn_shake(grpc_conn_t *conn);
void grpc_conn_shake_late(grpc_conn_t *conn);

/* The peer's first bytes: they may be a mistake that is worth a word. */
void grpc_conn_look(grpc_conn_t *conn, const uint8_t *data, size_t len);

/* The session begins to read and to write. */
void grpc_conn_begin(grpc_conn_t *conn);

/* The session has read: was that the first frame of a server's client? */
void grpc_conn_check_ready(grpc_conn_t *conn);

/* The timer is the peer's silence from now on. */
void grpc_conn_wait_for_silence(grpc_conn_t *conn, double seconds);

/* Ends it for that reason (NULL: orderly) when the peer has all we wrote. */
void grpc_conn_linger(grpc_conn_t *conn, const char *reason);

/* The client's socket became writable: it is connected, or cannot be. */
void grpc_conn_connected(grpc_conn_t *conn);

/* Ends a connection, for whatever reason; tell: its owner is notified. */
void grpc_conn_end(grpc_conn_t *conn, const char *reason, int tell);

#endif /* GRPC_CONN_INNER_H */
