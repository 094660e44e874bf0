
/*
 * The weights service: connections, the slot, and messages to each.
 *
 * roles.h decides; memfile.h and digest.h verify the bytes; docs/weights.md has
 * the lines.  Each connection has one role at most, and its end releases that
 * role and nothing else.  Long work (hashing, freeing memory) is done by
 * threads, so that a connection's end is noticed at once; except while a file
 * is sealed, once, 5 ms for each GiB.
 */

#ifndef WEIGHTS_STORE_H
#define WEIGHTS_STORE_H

#include <ev.h>

#include "common/log.h"
#include "common/service/service.h"


/*
 * Two engines, a few people and their scripts.  If all connections are taken, a
 * new one replaces a connection without a role; if there is none, it gets
 * "busy".
 */
#define STORE_MAX_CONNS  64

/* A connection without a role may be silent for this time. */
#define STORE_IDLE_MS    60000

/*
 * How often the progress of hashing is sent to clients, and how often it is
 * logged.
 */
#define STORE_TELL_S     1.0
#define STORE_LOG_S      10.0

typedef struct store_s  store_t;

/*
 * Serves at path; device is shown in STATE, adopt_window_ms is the time at the
 * start without a writer.  NULL and one line in error
 * (UNIX_LISTENER_ERROR_BYTES).
 */
store_t *store_create(struct ev_loop *loop, const log_t *log,
    const char *path, int64_t device, uint64_t adopt_window_ms, char *error);

/* Runs until a signal comes or the socket is removed; returns the process's
   exit status. */
int store_run(store_t *store);

/* Ends all connections.  Engines keep the weights that they hold. */
void store_destroy(store_t *store);

#endif /* WEIGHTS_STORE_H */
