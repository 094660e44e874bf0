
/*
 * The id of weights: SHA-256 (FIPS 180-4) over the list of the SHA-256 of each
 * 64 MiB of the file, the last piece as long as it is; each 32 bytes, one
 * after the other.  So the pieces can be hashed by all processors at once.
 * libcrypto does it, which uses a processor's instructions for it: 1.3 GiB/s
 * each where libsodium comes to 0.3.  The digest can be computed with common
 * tools:
 *
 *   split -b 64M --filter='sha256sum | cut -c-64' FILE | xxd -r -p | sha256sum
 */

#ifndef WEIGHTS_DIGEST_H
#define WEIGHTS_DIGEST_H

#include <stddef.h>
#include <stdint.h>

#include "weights/threads.h"


#define DIGEST_CHUNK_BYTES  (64ULL << 20)
#define DIGEST_ID_BYTES     65          /* in hexadecimal, and a NUL */

/* id: of digest_t; NULL: it could not be read. */
typedef void (*digest_done_pt)(void *data, const char *id);

typedef struct {
    threads_t         threads;
    int               fd;
    uint64_t          bytes;
    size_t            nchunks;
    uint8_t          *hashes;           /* of the chunks */
    atomic_size_t     next;             /* chunk that nobody has begun */
    atomic_ullong     done_bytes;
    atomic_int        is_broken;        /* or given up */
    digest_done_pt    on_done;
    void             *data;
    char              id[DIGEST_ID_BYTES];
} digest_t;


/*
 * Hashes in as many threads as there are processors; fd stays the caller's,
 * and open.  0, and on_done comes from the loop; or -1: no memory.
 */
int digest_start(digest_t *digest, struct ev_loop *loop, int fd,
    uint64_t bytes, digest_done_pt on_done, void *data);

/* Cancels; on_done is still called from the loop, with NULL. */
void digest_stop(digest_t *digest);

/* Gives up, and waits the few milliseconds; on_done does not come. */
void digest_cancel(digest_t *digest);

/* Of the bytes, while it runs. */
uint64_t digest_done_bytes(const digest_t *digest);

#endif /* WEIGHTS_DIGEST_H */
