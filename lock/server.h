
/*
 * The lock service on its socket: connections, processes and the state file
 * around the machine (lock/machine.h), which decides.
 *
 * There is one thread, which the fsync of a grant blocks: nothing else here is
 * urgent, and the machine's time does not advance meanwhile.
 */

#ifndef LOCK_SERVER_H
#define LOCK_SERVER_H

#include <ev.h>

#include "common/log.h"
#include "lock/machine.h"


#define SERVER_CONNS_MAX    512     /* of engines, and of people's queries */
#define SERVER_IDLE_MS      60000   /* for a connection that acquires nothing */
#define SERVER_PINGS_BYTES  4096    /* with so many unread, no further ping is
                                       sent */
#define SERVER_ERROR_BYTES  512

typedef struct server_s  server_t;

/* NULL and one line in error: it cannot serve. */
server_t *server_create(struct ev_loop *loop, const char *socket,
    const char *state_file, const machine_settings_t *settings,
    const log_t *log, char *error);

/* Runs until a signal comes or the socket is removed; returns the process's
   exit status. */
int server_run(server_t *server);

/* Ends all connections; engines keep the groups that they hold. */
void server_destroy(server_t *server);

#endif /* LOCK_SERVER_H */
