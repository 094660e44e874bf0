
/*
 * The control socket: a unix stream socket, mode 0660, that speaks JSON lines.
 *
 * Connections and their limits are here; what a line means is in
 * agent/command.h.  The replica's reports come this way too, and the end of
 * the connection they came on is itself news.
 */

#ifndef CONTROL_H
#define CONTROL_H

#include <ev.h>

#include "command.h"


typedef struct control_s  control_t;

/* A connection of the replica's that had reported is gone. */
typedef void (*control_lost_pt)(void *data, command_peer_t *peer);

#define CONTROL_ERROR_BYTES  256

/*
 * Listens at path.  A socket file that nobody listens at any more is
 * replaced, a living agent's is not.  env must outlive the control; on_lost
 * is called with env->data.  NULL and a reason in error.
 */
control_t *control_create(struct ev_loop *loop, const char *path,
    const command_env_t *env, control_lost_pt on_lost, char *error);

/* Ends all connections (on_lost does not come) and removes its own file. */
void control_destroy(control_t *control);

#endif /* CONTROL_H */
