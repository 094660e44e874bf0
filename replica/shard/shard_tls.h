
/*
 * TLS between orchestrators and shards: mutual, with PINGs that detect a peer
 * which is gone.  Each end opens a tls_door_t, and gives its `conn` to its
 * connections.
 *
 * Without either, a shard computes for every process that reaches it, and
 * activations reveal much of a prompt.  So off loopback it needs TLS or a key
 * (key.h), or it does not start.  The key decides who may use it; only TLS
 * hides what is sent.
 */

#ifndef SHARD_TLS_H
#define SHARD_TLS_H

#include "common/tls/endpoint.h"


#define SHARD_TLS_ERROR_BYTES  TLS_ERROR_BYTES

/* A PING after this silence, and the end after as much again. */
#define SHARD_PING_MS           30000


/*
 * Checks the command line's files: all three or none.  0, or -1 and one line in
 * error (SHARD_TLS_ERROR_BYTES) with what would be accepted.
 */
int shard_tls_check(const tls_files_t *files, char *error);

/*
 * Checks whether a shard may serve at this address, which is the one that is
 * bound: a name might resolve to another one later.  key_file: NULL for none.
 * 0, or -1 and such a line.
 */
int shard_tls_check_address(const tls_files_t *files, const char *key_file,
    const address_t *address, char *error);

/* Calls tls_endpoint_open() and sets up PINGs; tls_endpoint_close() closes. */
int shard_tls_open(tls_endpoint_t *tls, const tls_files_t *files,
    const log_t *log, char *error);

#endif /* SHARD_TLS_H */
