
/*
 * A connection to a service of the same host that may be absent: JSON lines
 * over a unix socket.
 *
 * Connecting is tried for ever, with a pause of REDIAL_MIN_S that doubles up to
 * REDIAL_MAX_S: without a listener an attempt costs a system call or two.  The
 * log gets one line when the connection is lost, however often a new one is
 * tried.
 */

#ifndef REDIAL_H
#define REDIAL_H

#include <ev.h>
#include <jansson.h>

#include "common/line_conn.h"
#include "common/log.h"


#define REDIAL_MIN_S  0.05
#define REDIAL_MAX_S  0.2

/*
 * All are called from the loop; on_connected and on_lost also from
 * redial_connect().
 */
typedef struct {
    void  (*on_connected)(void *data);

    /* A line came; message NULL: it is no JSON. */
    void  (*on_message)(void *data, const json_t *message);

    /* The connection ended, or could not be made.  It is not tried again unless
       redial_again() or redial_after() is called. */
    void  (*on_lost)(void *data, const char *why);
} redial_callbacks_t;

typedef struct {
    /* set by the caller */
    struct ev_loop            *loop;
    const log_t               *log;
    const char                *name;        /* for the log, before the path */
    const char                *path;
    const redial_callbacks_t  *callbacks;
    void                      *data;

    /* private */
    line_conn_t               *conn;        /* NULL: not connected */
    ev_timer                   timer;
    double                     pause_s;
    int                        is_troubled; /* there is trouble, which was
                                               logged */
} redial_t;


/* The caller has filled in the first part of the struct. */
void redial_init(redial_t *r);

void redial_connect(redial_t *r);

/*
 * Sends a message, and releases it; fd is -1, or is sent along and stays the
 * caller's.  Without a connection nothing is sent; its end is reported
 * separately.  0, or -1: no memory for it, or the message is NULL or not UTF-8.
 */
int redial_send(redial_t *r, json_t *message, int fd);

/*
 * To be called when all is well: the next problem is logged again.  Returns
 * whether there was trouble before.
 */
int redial_fine(redial_t *r);

/* Logs the problem, and what is done about it, unless one is logged already. */
void redial_trouble(redial_t *r, const char *what, const char *then);

/* The same; ends the connection, and tries again after the pause. */
void redial_again(redial_t *r, const char *what, const char *then);

/* Ends the connection, and connects after s seconds. */
void redial_after(redial_t *r, double s);

/* Calls no function any more.  finish: queued messages are still sent. */
void redial_stop(redial_t *r);
void redial_finish(redial_t *r);

#endif /* REDIAL_H */
