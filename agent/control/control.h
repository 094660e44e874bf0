
/*
 * The control socket: a unix stream socket, mode 0660, that speaks JSON lines.
 *
 * Connections and their limits are here; what a line means is in
 * control/command.h.  The replica's reports come this way too, and the end of
 * the connection they came on is itself news.
 *
 * Who listens to events has a queue of CONTROL_EVENTS_BYTES.  While it is full
 * events are dropped and counted, and the next one that finds room comes
 * behind {"event":"lost","count":N}: a slow reader costs bounded memory, is
 * never waited for, and knows that it has to ask for the members again.
 */

#ifndef CONTROL_H
#define CONTROL_H

#include <ev.h>

#include "control/command.h"


typedef struct control_s  control_t;

/* A connection of the replica's that had reported is gone. */
typedef void (*control_lost_pt)(void *data, command_peer_t *peer);

#define CONTROL_ERROR_BYTES  256

/* A thousand members that change all that they have. */
#define CONTROL_EVENTS_BYTES  (1024 * 1024)

/*
 * Listens at path.  A socket file that nobody listens at any more is
 * replaced, a living agent's is not.  env must outlive the control; on_lost
 * is called with env->data.  NULL and a reason in error.
 */
control_t *control_create(struct ev_loop *loop, const char *path,
    const command_env_t *env, control_lost_pt on_lost, char *error);

/* For env's functions, and while the peer's connection stands: */

/* Its socket, to be looked at alone. */
int control_socket(const command_peer_t *peer);

/* The descriptor it passed along, the caller's from now on; -1: none. */
int control_take_fd(command_peer_t *peer);

/* One more line for it; takes the reference. */
void control_send(command_peer_t *peer, json_t *line);

/* Ends it; on_lost does not come. */
void control_drop(command_peer_t *peer);

/* A member changed, as command_events() takes it: tells who listens. */
void control_tell(control_t *control, const llmgw_member_t *before,
    const llmgw_member_t *after);

/*
 * Ends all connections (on_lost does not come), those that wait for the end
 * with their last line, and removes its own file.
 */
void control_destroy(control_t *control);

#endif /* CONTROL_H */
