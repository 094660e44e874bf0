
/*
 * A listening socket that is accepted from, and never spun on.
 *
 * accept(2) that fails for want of descriptors or memory leaves its connection
 * in the backlog and the socket readable: a loop that tries again at once
 * takes a whole CPU.  So the listener pauses for LISTENER_PAUSE_S then.
 */

#ifndef LISTENER_H
#define LISTENER_H

#include <ev.h>

#include "common/address.h"


#define LISTENER_PAUSE_S  0.1

/* A shortage that continues is reported again after this time. */
#define LISTENER_LOG_S    60.0

/* fd is the callee's, non-blocking.  peer is empty for a unix socket. */
typedef void (*listener_accept_pt)(void *data, int fd, const address_t *peer);

/* Nothing can be accepted for now. error: errno. */
typedef void (*listener_starved_pt)(void *data, int error);

typedef struct {
    struct ev_loop       *loop;
    int                   fd;           /* -1: it is done */
    ev_io                 io;
    ev_timer              pause;
    listener_accept_pt    on_accept;
    listener_starved_pt   on_starved;   /* NULL: it is not called */
    void                 *data;
    void                 *starved_data;
    int                   is_shut;
    double                logged_at;    /* 0: there was no shortage */
} listener_t;


/*
 * A TCP socket that is bound, with SO_REUSEADDR, and does not listen yet; -1
 * and errno.
 */
int listener_socket(const address_t *address);

/* Begins to accept on fd, which is taken over and listens. */
void listener_init(listener_t *listener, struct ev_loop *loop, int fd,
    listener_accept_pt on_accept, void *data);

void listener_on_starved(listener_t *listener, listener_starved_pt on_starved,
    void *data);

/* Leaves what comes in the backlog, until listener_open().  Both are safe
   within on_accept, and may be called again. */
void listener_shut(listener_t *listener);
void listener_open(listener_t *listener);

/* Closes the socket.  Idempotent. */
void listener_done(listener_t *listener);

#endif /* LISTENER_H */
