
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
    void                   *channel;    /* made by options.channel */
    const char             *reason;     /* why it ends, while it lingers */
    grpc_conn_closed_pt     on_closed;
    void                  (*on_gone)(grpc_conn_t *conn);    /* called for the
                                                               server */
    void                  (*on_ready)(grpc_conn_t *conn);   /* likewise; NULL:
                                                               the first frame
                                                               has come */
    void                   *data;
    address_t               peer;
    int                     fd;
    int                     connect_errno;
    uint64_t                read_ms;    /* the peer's last byte, monotonic */

    uint8_t                *rest;       /* bytes the socket did not take */
    size_t                  rest_start;
    size_t                  rest_end;

    grpc_server_t          *server;     /* NULL: a client */
    grpc_conn_t           **list;       /* of the server's lists, the one it is
                                           in */
    grpc_conn_t            *prev;
    grpc_conn_t            *next;

    unsigned                busy;       /* the session is calling back */
    unsigned                is_connecting:1;    /* not open yet */
    unsigned                is_shaking:1;       /* in its channel's handshake */
    unsigned                is_heard:1;     /* the peer has sent something */
    unsigned                is_pinged:1;    /* and has sent nothing since */
    unsigned                is_lingering:1;
    unsigned                is_destroyed:1;
};

typedef llmgw_grpc_session_t *(*grpc_conn_session_pt)(
    const llmgw_grpc_config_t *config);

/*
 * Creates a connection, and takes over fd unless it returns NULL.  No watcher
 * is started.  options may be NULL.
 */
grpc_conn_t *grpc_conn_create(struct ev_loop *loop, int fd,
    const address_t *peer, const grpc_conn_options_t *options,
    const llmgw_grpc_config_t *config, grpc_conn_session_pt create);

/* The socket is connected: begins its channel's handshake, or the session. */
void grpc_conn_open(grpc_conn_t *conn);

/* The socket is ready for more of the handshake, or it took too long. */
void grpc_conn_shake(grpc_conn_t *conn);
void grpc_conn_shake_late(grpc_conn_t *conn);

/*
 * Looks at the peer's first bytes: they may show a mistake worth a line in the
 * log.
 */
void grpc_conn_look(grpc_conn_t *conn, const uint8_t *data, size_t len);

/* The session begins to read and to write. */
void grpc_conn_begin(grpc_conn_t *conn);

/*
 * The session has read: checks whether a server's client has now sent its first
 * frame.
 */
void grpc_conn_check_ready(grpc_conn_t *conn);

/* From now on the timer measures the peer's silence. */
void grpc_conn_wait_for_silence(grpc_conn_t *conn, double seconds);

/*
 * Ends the connection for that reason (NULL: orderly) when the peer has
 * received all we wrote.
 */
void grpc_conn_linger(grpc_conn_t *conn, const char *reason);

/* The client's socket became writable: it is connected, or could not be. */
void grpc_conn_connected(grpc_conn_t *conn);

/* Ends a connection, for whatever reason; tell: on_closed is called. */
void grpc_conn_end(grpc_conn_t *conn, const char *reason, int tell);

#endif /* GRPC_CONN_INNER_H */
