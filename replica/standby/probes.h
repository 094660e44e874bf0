
/*
 * A small HTTP/1.1 server for liveness, startup and readiness probes.
 *
 *   GET /livez      503 in Init; 200 in Standby, and in Waking until the waking
 *                   timeout; in Active, 200 if Generate is answered
 *   GET /startupz   200 when Init is over
 *   GET /readyz     200 while it serves and does not drain
 *
 * A connection carries one request, which has to be whole within
 * PROBES_TIMEOUT_S and PROBES_REQUEST_BYTES.  Beyond PROBES_CONNS of them, the
 * next waits in the backlog.
 */

#ifndef PROBES_H
#define PROBES_H

#include <ev.h>

#include "common/listener.h"
#include "replica/standby/life.h"


#define PROBES_CONNS          16
#define PROBES_REQUEST_BYTES  2048
#define PROBES_TIMEOUT_S      1.0
#define PROBES_ERROR_BYTES    256

/* Returns the current answer, 1 or 0, and sets *state to the state's name. */
typedef int (*probes_ask_pt)(void *data, life_question_t question,
                             const char **state);

typedef struct probes_s  probes_t;

typedef struct {
    probes_t  *probes;          /* NULL: the place is free */
    ev_io      io;
    ev_timer   timer;
    size_t     bytes;           /* of the request, received so far */
    int        is_answered;
    char       request[PROBES_REQUEST_BYTES];
} probes_conn_t;

struct probes_s {
    struct ev_loop  *loop;
    listener_t       listener;
    probes_ask_pt    ask;
    void            *data;
    int              nconns;
    probes_conn_t    conns[PROBES_CONNS];
};


/* Listens at HOST:PORT.  0, or -1 and a reason (PROBES_ERROR_BYTES). */
int probes_init(probes_t *probes, struct ev_loop *loop, const char *address,
    probes_ask_pt ask, void *data, char *error);

void probes_done(probes_t *probes);

#endif /* PROBES_H */
