
/*
 * A connection to a service of the same host that may be absent: JSON lines
 * over a unix socket.
 *
 * Connecting is tried for ever, with a pause of REDIAL_MIN_S that doubles up to
 * REDIAL_MAX_S: without a listener an attempt costs a system call or two.  The
 * log has one line when it is lost, however often it is tried then.
 */

#ifndef REDIAL_H
#define REDIAL_H

#include <ev.h>
#include <jansson.h>

#include "common/line_conn.h"
#include "common/log.h"


#define REDIAL_MIN_S  0.05
#define REDIAL_MAX_S  0.2

/* All from the loop; on_connected and on_lost also from redial_connect(). */
typedef struct {
    void  (*on_connected)(void *data);

    /* A line; NULL: it is no JSON. */
    void  (*on_message)(void *data, const json_t *message);

    /* The connection ended, or none could be made.  It is not tried again
       unless redial_again() or redial_after() is called. */
    void  (*on_lost)(void *data, const char *why);
} redial_callbacks_t;

typedef struct {
    /* the caller's */
    struct ev_loop            *loop;
    const log_t               *log;
    const char                *name;        /* in the log, before the path */
    const char                *path;
    const redial_callbacks_t  *callbacks;
    void                      *data;

    /* its own */
    line_conn_t               *conn;        /* NULL: not connected */
    ev_timer                   timer;
    double                     pause_s;
    int                        is_troubled; /* and the log has it */
} redial_t;


/* The caller has filled in the first part. */
void redial_init(redial_t *r);

void redial_connect(redial_t *r);

/*
 * Takes the message over; fd is -1, or goes along and stays the caller's.
 * Without a connection nothing is sent; the end of one is reported separately.
 * 0, or -1: no memory for it, or the message is NULL or not UTF-8.
 */
int redial_send(redial_t *r, json_t *message, int fd);

/*
 * To be called when all is well: the next problem is logged again.  Was there
 * trouble?
 */
int redial_fine(redial_t *r);

/* Logs the problem, and what is done then, unless it is logged already. */
void redial_trouble(redial_t *r, const char *what, const char *then);

/* The same, and tries again after the pause; ends a connection. */
void redial_again(redial_t *r, const char *what, const char *then);

/* Connects after s; ends a connection. */
void redial_after(redial_t *r, double s);

/* Nothing comes any more.  finish: queued messages are still sent. */
void redial_stop(redial_t *r);
void redial_finish(redial_t *r);

#endif /* REDIAL_H */
