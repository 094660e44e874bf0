
/*
 * The startup gate: nothing begins before each of some unix sockets accepts
 * connections.  Containers of one pod start in any order; an engine that began
 * at once would fail, and be restarted with growing pauses.
 */

#ifndef GATE_H
#define GATE_H

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
    const char      *next;              /* the one that is waited for */
    int              is_told;           /* the log has it */
    ev_timer         timer;
} gate_t;


/* The caller has filled in the first part.  on_open() comes from the loop. */
void gate_init(gate_t *gate);

void gate_done(gate_t *gate);

/* Whether a list is one of paths that a socket can have. */
int gate_list_is_valid(const char *sockets);

#endif /* GATE_H */
