
/*
 * TLS between orchestrators and shards: mutual, with PINGs that find a peer
 * which is gone.  Both ends open one, and give its `conn` to their
 * connections.
 *
 * A shard computes for whoever reaches it, and activations tell much of a
 * prompt.  So off loopback it has TLS or a key (key.h) or does not start.  The
 * key says who may use it; only TLS hides what is sent.
 */

#ifndef SHARD_TLS_H
#define SHARD_TLS_H

#include "common/tls/endpoint.h"


#define SHARD_TLS_ERROR_BYTES  TLS_ERROR_BYTES

/* A PING after this silence, and the end after as much again. */
#define SHARD_PING_MS           30000


/*
 * What the command line says: files are all three or none.  0, or -1 and one
 * line in error (SHARD_TLS_ERROR_BYTES) that says what would be right.
 */
int shard_tls_check(const tls_files_t *files, char *error);

/*
 * Whether a shard may serve at this address, which is the one that is bound: a
 * name may lead elsewhere when it is looked up again.  key_file: NULL for
 * none.  0, or -1 and such a line.
 */
int shard_tls_check_address(const tls_files_t *files, const char *key_file,
    const address_t *address, char *error);

/* tls_endpoint_open(), and PINGs.  tls_endpoint_close() closes it. */
int shard_tls_open(tls_endpoint_t *tls, const tls_files_t *files,
    const log_t *log, char *error);

#endif /* SHARD_TLS_H */
