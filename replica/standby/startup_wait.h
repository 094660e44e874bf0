
/*
 * Waits at the start until each of some unix sockets accepts connections.
 * Containers of one pod start in any order; an engine that started at once
 * would fail, and be restarted with growing pauses.
 */

#ifndef STARTUP_WAIT_H
#define STARTUP_WAIT_H

#include <ev.h>
#include <stddef.h>

#include "common/log.h"


typedef struct {
    /* the caller's */
    struct ev_loop  *loop;
    const log_t     *log;
    const char      *sockets;           /* PATH[,PATH...]; NULL: none */
    void           (*on_open)(void *data);
    void            *data;

    /* its own */
    const char      *next;              /* the socket that is waited for */
    int              is_logged;         /* that it is waited for was logged */
    ev_timer         timer;
} startup_wait_t;


/*
 * The caller has filled in the first part.  on_open() is called once, from the
 * loop, when all sockets accept connections.
 */
void startup_wait_init(startup_wait_t *wait);

void startup_wait_done(startup_wait_t *wait);

/* Whether a list consists of paths that fit a socket's address. */
int startup_wait_list_is_valid(const char *sockets);

#endif /* STARTUP_WAIT_H */
