
/* What the server's own files share. */

#ifndef LOCK_SERVER_INNER_H
#define LOCK_SERVER_INNER_H

#include <limits.h>

#include <jansson.h>

#include "common/line_conn.h"
#include "common/os/pidfd.h"
#include "common/unix_listener.h"
#include "lock/server.h"


typedef struct conn_s  conn_t;

struct conn_s {
    server_t          *server;
    line_conn_t       *line;
    machine_engine_t  *engine;      /* NULL: it has acquired nothing */
    uint64_t           accepted_ticks;
    uid_t              uid;         /* of the engine, when it connected */
    uint64_t           heard_ms;
    uint64_t           ping_seq;
    conn_t            *prev;
    conn_t            *next;
};

struct server_s {
    struct ev_loop    *loop;
    const log_t       *log;
    unix_listener_t    listener;
    ev_timer           tick;
    machine_t          machine;
    char               id[MACHINE_NONCE_BYTES];     /* of this instance */
    char               boot_id[PIDFD_BOOT_ID_BYTES];
    char               dir[PATH_MAX];   /* of the lock files */
    const char        *state_file;
    int                is_deaf;
    int                state_owner;     /* descriptor, see kept_own() */
    int                is_state_broken; /* told once */
    int                file_error;      /* the same, of a lock file */
    conn_t            *conns;
    unsigned           nconns;
};


/* conn.c */

extern const line_conn_callbacks_t  conn_callbacks;

/* Unlinks it; its line is the caller's to end. */
void conn_free(conn_t *conn);

/* Ends its line, too; an engine has to be told by the caller. */
void conn_drop(conn_t *conn);

/* Takes the reference. */
void conn_send(conn_t *conn, json_t *json);

void conn_refuse(conn_t *conn, const char *reason, const char *error);

/* For people. */
const char *conn_reason_text(machine_rc_t why);

/* ops.c: of a server_t */

extern const machine_ops_t  server_ops;

#endif /* LOCK_SERVER_INNER_H */
