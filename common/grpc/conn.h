
/*
 * A gRPC session on a libev socket: what the daemons put between
 * proto/grpc/session.h and the network.
 *
 * Output is gathered: what the callbacks of one event-loop iteration queue is
 * sent at its end, in as few writes as the socket takes, and not one write per
 * message.
 */

#ifndef GRPC_CONN_H
#define GRPC_CONN_H

#include <ev.h>

#include "common/address.h"
#include "common/grpc/channel.h"
#include "proto/grpc/session.h"


typedef struct grpc_conn_s    grpc_conn_t;
typedef struct grpc_server_s  grpc_server_t;

/*
 * Called once when a connection is gone, after every stream's on_close; reason
 * is for a log line ("connection refused"), NULL for an orderly end.  The
 * session no longer exists, and the connection is freed afterwards.  Not called
 * for grpc_conn_destroy().
 */
typedef void (*grpc_conn_closed_pt)(grpc_conn_t *conn, const char *reason);

/* Options of a connection beside those of its session; zeroed: none. */
typedef struct {
    /* Client: the address to connect from, of this host; its port may be 0. */
    const address_t  *source;

    /*
     * A peer that is silent for ping_ms gets a PING; after answer_ms more of
     * silence the connection ends.  0: no PING.
     */
    uint64_t          ping_ms;
    uint64_t          answer_ms;

    /* Layer between socket and session; NULL: none. */
    const grpc_channel_t  *channel;
    void                  *channel_context;

    /*
     * Names of which the other end's certificate must have one, for a channel
     * (common/tls/peer.h); outlives the connection.  NULL: a client requires
     * the address that it connects to, a server requires no name.
     */
    const char            *names;

    /*
     * Server: the time for a channel's handshake and the client's first frame
     * (a client's is the rest of its connect_timeout_ms; 0: 10 s), and a
     * callback for failed handshakes, for clients that use TLS with a server
     * that does not, and for addresses with too many unfinished ones.
     */
    uint64_t          handshake_timeout_ms;
    void            (*on_refused)(void *data, const address_t *peer,
                                  const char *reason);
    void             *refused_data;
} grpc_conn_options_t;

/*
 * Client: connects without blocking; calls may be made at once and leave when
 * the connection stands.  config->data is the caller's; the session's data
 * is the connection (llmgw_grpc_session_data() gives the grpc_conn_t).
 * connect_timeout_ms bounds the connect.  NULL: no socket or memory, errno.
 */
grpc_conn_t *grpc_conn_connect(struct ev_loop *loop, const address_t *address,
    const llmgw_grpc_config_t *config, uint64_t connect_timeout_ms,
    grpc_conn_closed_pt on_closed);

/* The same with options, which are copied. */
grpc_conn_t *grpc_conn_connect_with(struct ev_loop *loop,
    const address_t *address, const grpc_conn_options_t *options,
    const llmgw_grpc_config_t *config, uint64_t connect_timeout_ms,
    grpc_conn_closed_pt on_closed);

/*
 * The session.  NULL as soon as the connection ends, already in its streams'
 * on_close.
 */
llmgw_grpc_session_t *grpc_conn_session(grpc_conn_t *conn);
void *grpc_conn_data(grpc_conn_t *conn);
void grpc_conn_peer(const grpc_conn_t *conn, address_t *address);

/*
 * To be called when something was queued outside of the session's own callbacks
 * (by a timer): it is then written before the loop sleeps.  Cheap, idempotent.
 */
void grpc_conn_wake(grpc_conn_t *conn);

/*
 * Every stream gets on_close.  Safe within callbacks: carried out when they
 * have returned.
 */
void grpc_conn_destroy(grpc_conn_t *conn);


/*
 * Server: listens (SO_REUSEADDR), accepts, one grpc_conn_t a client.  Clients
 * above max_conns wait in the kernel's backlog, clients above the limit of
 * their address (server.c) in the server.  NULL and a reason in error (>= 256
 * bytes).
 */
grpc_server_t *grpc_server_create(struct ev_loop *loop,
    const address_t *address, const llmgw_grpc_config_t *config,
    size_t max_conns, char *error);

/*
 * Creates a server in two steps: one that is bound has its port, and refuses
 * clients until it listens.  0, or -1 and a reason.
 */
grpc_server_t *grpc_server_bind(struct ev_loop *loop,
    const address_t *address, const llmgw_grpc_config_t *config,
    size_t max_conns, char *error);
int grpc_server_listen(grpc_server_t *server, char *error);

/* Sets the options of connections accepted from now on; they are copied. */
void grpc_server_set_options(grpc_server_t *server,
    const grpc_conn_options_t *options);

/* Accepts no more, sends GOAWAY on all; connections end with their streams. */
void grpc_server_goaway(grpc_server_t *server);
size_t grpc_server_conns(const grpc_server_t *server);

/* Destroys its connections, too.  Not to be called within their callbacks. */
void grpc_server_destroy(grpc_server_t *server);

#endif /* GRPC_CONN_H */
