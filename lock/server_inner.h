
/* What the server's own files share. */

#ifndef LOCK_SERVER_INNER_H
#define LOCK_SERVER_INNER_H

#include <limits.h>

#include "common/os/pidfd.h"
#include "common/service/service.h"
#include "lock/server.h"


typedef struct conn_s  conn_t;

struct conn_s {
    service_conn_t     base;        /* first: see common/service/service.h */
    server_t          *server;
    machine_engine_t  *engine;      /* NULL: it has acquired nothing */
    uint64_t           accepted_ticks;
    uint64_t           ping_seq;
};

struct server_s {
    struct ev_loop    *loop;
    const log_t       *log;
    service_t          service;
    ev_timer           tick;
    machine_t          machine;
    char               id[MACHINE_NONCE_BYTES];     /* of this instance of the
                                                       service */
    char               boot_id[PIDFD_BOOT_ID_BYTES];
    char               dir[PATH_MAX];   /* directory of the lock files */
    const char        *state_file;
    int                state_owner;     /* descriptor, see lock_state_own() */
    int                is_state_broken; /* it was logged */
    int                file_error;      /* errno of the last lock file that was
                                           checked; 0: none */
};


/* conn.c */

extern const service_type_t  conn_type;

/* The text of a refusal, for people. */
const char *conn_reason_text(machine_rc_t why);

/* ops.c: of a server_t */

extern const machine_ops_t  server_ops;

#endif /* LOCK_SERVER_INNER_H */
