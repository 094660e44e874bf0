
/*
 * The control socket: a unix stream socket, mode 0660, that speaks JSON lines.
 *
 * Connections and their limits are here; control/command.h has the meaning of
 * the lines.  The replica reports over this socket, too, and the end of its
 * connection is reported to the cluster.
 *
 * There are CONTROL_MAX_CONNS connections at most.  One that never reported,
 * listens to no events and waits for no answer is idle, and is closed after
 * CONTROL_IDLE_S without a line; when all places are taken, the one that is
 * idle for longest gives its place to the newcomer, strangers' first.  Where
 * none is idle, a new one is answered "busy" and closed; CONTROL_OWNER_CONNS
 * further places are kept for root and the agent's own user, which have to get
 * in to see what is the matter.
 *
 * A slow reader costs bounded memory and is never waited for.  While
 * CONTROL_ANSWERS_BYTES are unread, further requests of the connection stay in
 * its socket, so at most one answer comes on top.  While CONTROL_EVENTS_BYTES
 * are, events are dropped and counted: {"event":"lost","count":N} before the
 * next event that finds room tells the reader to ask for the members again.
 */

#ifndef CONTROL_H
#define CONTROL_H

#include <ev.h>

#include "common/unix_listener.h"
#include "control/command.h"


typedef struct control_s  control_t;

/* The replica's connection, which had reported, is gone. */
typedef void (*control_lost_pt)(void *data, command_peer_t *peer);

/*
 * Enough for a replica, a few people and a metrics collector; each connection
 * may hold a long line in memory.
 */
#define CONTROL_MAX_CONNS    64
#define CONTROL_OWNER_CONNS  8

/* Longer than collectors wait between two questions. */
#define CONTROL_IDLE_S       60.0
#define CONTROL_SWEEP_S      5.0

/* The members of a large cluster; what a script pipelines is far below. */
#define CONTROL_ANSWERS_BYTES  (1024 * 1024)

/* A thousand members that change all that they have. */
#define CONTROL_EVENTS_BYTES  (1024 * 1024)

/*
 * Listens at path.  A socket file without a listener is
 * replaced, a living agent's is not.  env must outlive the control; on_lost
 * is called with env->data.  NULL and a reason in error
 * (UNIX_LISTENER_ERROR_BYTES).
 */
control_t *control_create(struct ev_loop *loop, const char *path,
    const command_env_t *env, control_lost_pt on_lost, char *error);

/* on_starved is called when an incoming connection finds no descriptor. */
void control_on_starved(control_t *control, listener_starved_pt on_starved,
    void *data);

/*
 * Ends connections that are idle for that long.  The control does so itself
 * every CONTROL_SWEEP_S with CONTROL_IDLE_S.
 */
void control_expire(control_t *control, double idle_s);

/* For env's functions, and while the peer's connection stands: */

/* Its socket, not to be read or written. */
int control_socket(const command_peer_t *peer);

/* When it was accepted, as pidfd_of_peer() asks for it. */
uint64_t control_accepted_ticks(const command_peer_t *peer);

/* The descriptor it passed along, the caller's from now on; -1: none. */
int control_take_fd(command_peer_t *peer);

/* One more line for it; takes the reference. */
void control_send(command_peer_t *peer, json_t *line);

/* Ends it; on_lost does not come. */
void control_drop(command_peer_t *peer);

/* A member changed, as command_events() takes it: tells all listeners. */
void control_tell(control_t *control, const llmgw_member_t *before,
    const llmgw_member_t *after);

/*
 * Ends all connections (on_lost does not come), those that wait for the end
 * with their last line, and removes its own file.
 */
void control_destroy(control_t *control);

#endif /* CONTROL_H */
