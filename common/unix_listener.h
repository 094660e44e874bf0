
/*
 * A service's unix stream socket, from its file to accept(2).
 *
 * The file has mode 0660 from its first moment.  A socket file without a
 * listener was left by a process that died, and is replaced; one with a
 * listener is not. If several processes start with one path at once, one of
 * them gets it.  At the end the file is removed if it is still our own.
 */

#ifndef UNIX_LISTENER_H
#define UNIX_LISTENER_H

#include <sys/stat.h>

#include "common/listener.h"


#define UNIX_LISTENER_ERROR_BYTES  256

typedef struct {
    listener_t   listener;
    char        *path;
    dev_t        dev;       /* device of our own file */
    ino_t        ino;
} unix_listener_t;


/*
 * Listens at path.  0, or -1 and one line in error
 * (UNIX_LISTENER_ERROR_BYTES).
 */
int unix_listener_init(unix_listener_t *listener, struct ev_loop *loop,
    const char *path, listener_accept_pt on_accept, void *data, char *error);

/* 1: the socket's file is still ours.  0: it was removed or replaced, so no new
   connection can be made. */
int unix_listener_is_there(const unix_listener_t *listener);

/* Closes the socket, and removes the file if it is still ours. */
void unix_listener_done(unix_listener_t *listener);

#endif /* UNIX_LISTENER_H */
