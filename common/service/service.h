
/*
 * A service on a unix socket, in one thread: its connections, with one JSON
 * object per line, and its life until SIGTERM.
 *
 * Connections are limited: if all are taken, a new one replaces the connection
 * that has been silent for longest and may be dropped.  A service whose socket
 * is removed exits so that its supervisor restarts it: otherwise it would run
 * for ever without new connections.
 *
 * The service's own struct of a connection begins with a service_conn_t.
 */

#ifndef SERVICE_H
#define SERVICE_H

#include <ev.h>
#include <jansson.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/line_conn.h"
#include "common/log.h"
#include "common/unix_listener.h"


/*
 * While more than this is unread, further requests of that connection wait in
 * its socket.
 */
#define SERVICE_ANSWERS_BYTES  (1024 * 1024)

typedef struct service_s       service_t;
typedef struct service_conn_s  service_conn_t;

struct service_conn_s {
    service_t       *service;
    line_conn_t     *line;
    pid_t            pid;           /* the peer's, when it connected; 0: in a
                                       namespace that we do not see */
    uid_t            uid;           /* likewise */
    uint64_t         heard_ms;      /* when it sent its last line, or
                                       connected */
    service_conn_t  *next;
};

typedef struct {
    size_t        conn_bytes;       /* size of the service's own struct */
    unsigned      conns_max;
    uint64_t      idle_ms;          /* a connection that may be dropped is,
                                       after this silence */
    const char   *full_reason;      /* for a connection that finds no place */
    const char   *full_error;

    /* Whether it may be dropped. */
    int         (*is_idle)(const service_conn_t *conn);
    /* A connection came; the service's own fields are zero. */
    void        (*on_open)(service_conn_t *conn);
    void        (*on_line)(service_conn_t *conn, char *text, size_t len);
    /*
     * The peer has closed; not called for service_drop().  The connection is
     * freed afterwards.
     */
    void        (*on_close)(service_conn_t *conn);
} service_type_t;

struct service_s {
    struct ev_loop        *loop;
    const log_t           *log;
    const service_type_t  *type;
    void                  *data;    /* the service's own */
    unix_listener_t        listener;
    service_conn_t        *conns;   /* the newest first */
    unsigned               nconns;
    int                    is_deaf; /* its socket was removed */
};


/*
 * Listens at path; *service must be zero before.  0, or -1 and one line in
 * error (UNIX_LISTENER_ERROR_BYTES).
 */
int service_init(service_t *service, struct ev_loop *loop, const log_t *log,
    const char *path, const service_type_t *type, void *data, char *error);

/* Drops idle connections, and checks the socket's file: to be called each
   second or more often. */
void service_tick(service_t *service);

/* Runs the loop until SIGTERM or SIGINT: returns 0; or until the socket was
   removed: returns 1.  This is the process's exit status. */
int service_run(service_t *service);

/* Ends all connections. */
void service_done(service_t *service);

/* Safe within on_line. */
void service_drop(service_conn_t *conn);

/*
 * Sends a message, and releases it; fd -1: none; otherwise it stays the
 * caller's.
 */
void service_send(service_conn_t *conn, json_t *json, int fd);

/* reason: a word for programs; error: for people. */
void service_refuse(service_conn_t *conn, const char *reason,
    const char *error);


/* --- field.c: of a line */

/* The text with that name; "": there is none. */
const char *service_text(const json_t *json, const char *name);

/*
 * Reads an integer of 0 .. max.  If the line has none, *number is unchanged,
 * and must be within the range, too.  0, or -1.
 */
int service_number(const json_t *json, const char *name, uint64_t max,
    uint64_t *number);

#endif /* SERVICE_H */
