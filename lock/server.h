
/*
 * The lock service on its socket: connections, processes and the state file
 * around the machine (lock/machine.h), which decides.
 *
 * One thread.  The fsync of a grant stands in it: nothing else here is in a
 * hurry, and the machine's time does not pass meanwhile.
 */

#ifndef LOCK_SERVER_H
#define LOCK_SERVER_H

#include <ev.h>

#include "common/log.h"
#include "lock/machine.h"


#define SERVER_CONNS_MAX    512     /* engines and people who ask */
#define SERVER_IDLE_MS      60000   /* a connection that acquires nothing */
#define SERVER_PINGS_BYTES  4096    /* unread; no further ping then */
#define SERVER_ERROR_BYTES  512

typedef struct server_s  server_t;

/* NULL, and one line in error. */
server_t *server_create(struct ev_loop *loop, const char *socket,
    const char *state_file, const machine_settings_t *settings,
    const log_t *log, char *error);

/* Until a signal, or its socket is removed; the process's exit status. */
int server_run(server_t *server);

/* Engines keep what they hold: they lose their connections, no more. */
void server_destroy(server_t *server);

#endif /* LOCK_SERVER_H */
