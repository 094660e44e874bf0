
/*
 * The weights service: connections, the slot, and what each is told.
 *
 * roles.h decides; memfile.h and digest.h see that the bytes are what they are
 * said to be; docs/weights.md has the lines.  Each connection has one role at
 * most, and its end releases that role and nothing else.  What takes long
 * (hashing, freeing memory) is done by threads, so that a connection's end is
 * seen at once whatever runs; except while a file is sealed, once, 5 ms a GiB.
 */

#ifndef WEIGHTS_STORE_H
#define WEIGHTS_STORE_H

#include <ev.h>

#include "common/log.h"
#include "common/service/service.h"


/*
 * Two engines, a few people and their scripts.  Where all places are taken, a
 * newcomer gets that of a connection without a role; where there is none it is
 * told "busy".
 */
#define STORE_MAX_CONNS  64

/* A connection without a role may be silent for so long. */
#define STORE_IDLE_MS    60000

/* How often clients hear how far the hashing is, and how often the log does. */
#define STORE_TELL_S     1.0
#define STORE_LOG_S      10.0

typedef struct store_s  store_t;

/*
 * Serves at path; device is what STATE says, adopt_window_ms how long nobody
 * becomes a writer.  NULL and one line in error (UNIX_LISTENER_ERROR_BYTES).
 */
store_t *store_create(struct ev_loop *loop, const log_t *log,
    const char *path, int64_t device, uint64_t adopt_window_ms, char *error);

/* Until a signal, or its socket is removed; the process's exit status. */
int store_run(store_t *store);

/* Ends all connections.  Weights that engines hold stay theirs. */
void store_destroy(store_t *store);

#endif /* WEIGHTS_STORE_H */
