
/*
 * A listening socket whose connections are accepted, without busy loops.
 *
 * If accept(2) fails for want of descriptors or memory, the connection stays in
 * the backlog and the socket stays readable: a loop that tries again at once
 * takes a whole CPU.  So the listener then pauses for LISTENER_PAUSE_S.
 */

#ifndef LISTENER_H
#define LISTENER_H

#include <ev.h>

#include "common/address.h"


#define LISTENER_PAUSE_S  0.1

/* A shortage that continues is reported again after this time. */
#define LISTENER_LOG_S    60.0

/*
 * Called for each accepted connection.  fd belongs to the callee and is
 * non-blocking.  peer is empty for a unix socket.
 */
typedef void (*listener_accept_pt)(void *data, int fd, const address_t *peer);

/* accept() failed for lack of descriptors or memory; error is the errno. */
typedef void (*listener_starved_pt)(void *data, int error);

typedef struct {
    struct ev_loop       *loop;
    int                   fd;           /* -1: listener_done() was called */
    ev_io                 io;
    ev_timer              pause;
    listener_accept_pt    on_accept;
    listener_starved_pt   on_starved;   /* may be NULL */
    void                 *data;
    void                 *starved_data;
    int                   is_shut;
    double                logged_at;    /* last report of a shortage; 0: none */
} listener_t;


/*
 * Makes a TCP socket that is bound, with SO_REUSEADDR, and does not listen yet.
 * Returns it, or -1 and errno.
 */
int listener_socket(const address_t *address);

/* Takes over fd, listens on it, and begins to accept. */
void listener_init(listener_t *listener, struct ev_loop *loop, int fd,
    listener_accept_pt on_accept, void *data);

void listener_on_starved(listener_t *listener, listener_starved_pt on_starved,
    void *data);

/* Leaves new connections in the backlog, until listener_open().  Both are safe
   within on_accept, and may be called repeatedly. */
void listener_shut(listener_t *listener);
void listener_open(listener_t *listener);

/* Closes the socket.  Idempotent. */
void listener_done(listener_t *listener);

#endif /* LISTENER_H */
