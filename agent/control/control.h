
/*
 * The control socket: a unix stream socket, mode 0660, that speaks JSON lines.
 *
 * Connections and their limits are here; control/command.h has the meaning of
 * the lines.  The replica reports over this socket, too, and the end of its
 * connection is reported to the cluster.
 *
 * There are CONTROL_MAX_CONNS connections at most.  A connection that never
 * reported, listens to no events and waits for no answer is idle, and is closed
 * after CONTROL_IDLE_S without a line.  When all places are taken, a new
 * connection gets the place of the one that is idle for longest; those of other
 * users than root and the agent's own are closed first.  If none is idle, the
 * new one is answered "busy" and closed; CONTROL_OWNER_CONNS further places are
 * kept for root and the agent's own user, which must be able to find out what
 * is wrong.
 *
 * A slow reader costs bounded memory and is never waited for.  While
 * CONTROL_ANSWERS_BYTES are unread, further requests of the connection stay in
 * its socket, so at most one answer comes on top.  While CONTROL_EVENTS_BYTES
 * are unread, events are dropped and counted: {"event":"lost","count":N} before
 * the next event that finds room tells the reader to ask for the members again.
 */

#ifndef CONTROL_H
#define CONTROL_H

#include <ev.h>

#include "common/unix_listener.h"
#include "control/command.h"


typedef struct control_s  control_t;

/* The connection over which the replica reported is gone. */
typedef void (*control_lost_pt)(void *data, command_peer_t *peer);

/*
 * Enough for a replica, a few people and a metrics collector; each connection
 * may hold a long line in memory.
 */
#define CONTROL_MAX_CONNS    64
#define CONTROL_OWNER_CONNS  8

/* Longer than metrics collectors wait between two requests. */
#define CONTROL_IDLE_S       60.0
#define CONTROL_SWEEP_S      5.0

/*
 * Room for the members of a large cluster; scripts that pipeline requests need
 * far less.
 */
#define CONTROL_ANSWERS_BYTES  (1024 * 1024)

/* Room for the events of a thousand members when all their fields change. */
#define CONTROL_EVENTS_BYTES  (1024 * 1024)

/*
 * Listens at path.  A socket file without a listener is replaced; one of a
 * living agent is not.  env must outlive the control; on_lost is called with
 * env->data.  NULL and a reason in error (UNIX_LISTENER_ERROR_BYTES).
 */
control_t *control_create(struct ev_loop *loop, const char *path,
    const command_env_t *env, control_lost_pt on_lost, char *error);

/* on_starved is called when an incoming connection finds no descriptor. */
void control_on_starved(control_t *control, listener_starved_pt on_starved,
    void *data);

/*
 * Closes connections that are idle for that long.  The control itself does so
 * every CONTROL_SWEEP_S with CONTROL_IDLE_S.
 */
void control_expire(control_t *control, double idle_s);

/* For env's functions, while the peer's connection exists: */

/* The connection's socket, which must not be read or written. */
int control_socket(const command_peer_t *peer);

/* When the connection was accepted, in the form that pidfd_of_peer() takes. */
uint64_t control_accepted_ticks(const command_peer_t *peer);

/*
 * Takes the descriptor that the peer passed along, which belongs to the caller
 * from now on; -1: none.
 */
int control_take_fd(command_peer_t *peer);

/* Sends the peer one more line, and releases it. */
void control_send(command_peer_t *peer, json_t *line);

/* Closes the peer's connection; on_lost is not called. */
void control_drop(command_peer_t *peer);

/*
 * A member changed, in the form that command_events() takes: sends the events
 * to all listeners.
 */
void control_tell(control_t *control, const llmgw_member_t *before,
    const llmgw_member_t *after);

/*
 * Ends all connections, without on_lost; a connection that waits for the end of
 * the agent gets its last line.  Removes the socket's file if it is its own.
 */
void control_destroy(control_t *control);

#endif /* CONTROL_H */
