
/*
 * The id of weights: SHA-256 (FIPS 180-4) over the list of the SHA-256 of each
 * 64 MiB of the file, where the last piece may be shorter; each has 32 bytes in
 * the list.  So the pieces can be hashed by all processors at once.  libcrypto
 * is used, since it has the processor's instructions for it: 1.3 GiB/s for each
 * processor, where libsodium reaches 0.3.  The digest can be computed with
 * common tools:
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

/* id: in the digest_t; NULL: the file could not be read, or digest_stop() was
   called. */
typedef void (*digest_done_pt)(void *data, const char *id);

typedef struct {
    threads_t         threads;
    int               fd;
    uint64_t          bytes;
    size_t            nchunks;
    uint8_t          *hashes;           /* of the chunks */
    atomic_size_t     next;             /* the next chunk to hash */
    atomic_ullong     done_bytes;
    atomic_int        is_broken;        /* a read failed, or it was stopped */
    digest_done_pt    on_done;
    void             *data;
    char              id[DIGEST_ID_BYTES];
} digest_t;


/*
 * Hashes in as many threads as there are processors; fd stays the caller's, who
 * keeps it open.  0: on_done is called later, from the loop; -1: out of memory.
 */
int digest_start(digest_t *digest, struct ev_loop *loop, int fd,
    uint64_t bytes, digest_done_pt on_done, void *data);

/* Cancels; on_done is still called from the loop, with NULL. */
void digest_stop(digest_t *digest);

/* Cancels, and waits a few milliseconds for the threads; on_done is not
   called. */
void digest_cancel(digest_t *digest);

/* Number of bytes that were hashed so far, while it runs. */
uint64_t digest_done_bytes(const digest_t *digest);

#endif /* WEIGHTS_DIGEST_H */
