
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "weights/digest.h"


/* Bytes of one read, few enough to stay in a processor's cache until they are
   hashed. */
#define DIGEST_READ_BYTES  (128 * 1024)

#define DIGEST_HASH_BYTES  32


/* Reads the next bytes of a chunk, and returns their number; 0: the chunk has
   been read; -1: it cannot be. */
static ssize_t
digest_read(digest_t *digest, uint8_t *buf, uint64_t at, uint64_t end)
{
    size_t   len;
    ssize_t  n;

    if (at == end) {
        return 0;
    }

    len = end - at < DIGEST_READ_BYTES ? (size_t) (end - at)
                                       : DIGEST_READ_BYTES;

    do {
        n = pread(digest->fd, buf, len, (off_t) at);
    } while (n == -1 && errno == EINTR);

    return n > 0 && !atomic_load(&digest->is_broken) ? n : -1;
}


/* Hashes one chunk.  0, or -1: it cannot be read. */
static int
digest_update(digest_t *digest, size_t i, EVP_MD_CTX *hash)
{
    int       rc;
    ssize_t   n;
    uint64_t  at, end;

    uint8_t  buf[DIGEST_READ_BYTES];

    at = i * DIGEST_CHUNK_BYTES;
    end = at + DIGEST_CHUNK_BYTES < digest->bytes ? at + DIGEST_CHUNK_BYTES
                                                  : digest->bytes;
    rc = EVP_DigestInit_ex(hash, EVP_sha256(), NULL) == 1 ? 0 : -1;

    while (rc == 0 && (n = digest_read(digest, buf, at, end)) != 0) {
        rc = n > 0 && EVP_DigestUpdate(hash, buf, (size_t) n) == 1 ? 0 : -1;
        atomic_fetch_add(&digest->done_bytes, n > 0 ? (size_t) n : 0);
        at += (uint64_t) n;
    }

    return rc;
}


static void
digest_chunk(digest_t *digest, size_t i)
{
    EVP_MD_CTX  *hash;

    hash = EVP_MD_CTX_new();

    if (hash == NULL || digest_update(digest, i, hash) != 0
        || EVP_DigestFinal_ex(hash, digest->hashes + i * DIGEST_HASH_BYTES,
                              NULL)
           != 1)
    {
        atomic_store(&digest->is_broken, 1);
    }

    EVP_MD_CTX_free(hash);
}


/* Run by each thread: hashes chunks until there are no more. */
static void
digest_run(void *data)
{
    size_t     i;
    digest_t  *digest = data;

    while (!atomic_load(&digest->is_broken)) {
        i = atomic_fetch_add(&digest->next, 1);

        if (i >= digest->nchunks) {
            return;
        }

        digest_chunk(digest, i);
    }
}


static void
digest_end(void *data)
{
    int        i, is_right;
    uint8_t    hash[DIGEST_HASH_BYTES];
    digest_t  *digest = data;

    is_right = !atomic_load(&digest->is_broken)
               && EVP_Digest(digest->hashes,
                             digest->nchunks * DIGEST_HASH_BYTES, hash, NULL,
                             EVP_sha256(), NULL)
                  == 1;
    free(digest->hashes);
    digest->hashes = NULL;

    for (i = 0; is_right && i < DIGEST_HASH_BYTES; i++) {
        snprintf(digest->id + 2 * i, 3, "%02x", hash[i]);
    }

    digest->on_done(digest->data, is_right ? digest->id : NULL);
}


/* Number of processors that this process may use, at most one for each
   chunk. */
static int
digest_nthreads(size_t nchunks)
{
    int        n;
    cpu_set_t  cpus;

    n = sched_getaffinity(0, sizeof(cpus), &cpus) == 0 ? CPU_COUNT(&cpus) : 1;
    n = n < THREADS_MAX ? n : THREADS_MAX;

    return (size_t) n < nchunks ? n : (int) nchunks;
}


int
digest_start(digest_t *digest, struct ev_loop *loop, int fd, uint64_t bytes,
    digest_done_pt on_done, void *data)
{
    digest->fd = fd;
    digest->bytes = bytes;
    digest->nchunks = (size_t) ((bytes + DIGEST_CHUNK_BYTES - 1)
                                / DIGEST_CHUNK_BYTES);
    digest->on_done = on_done;
    digest->data = data;
    atomic_init(&digest->next, 0);
    atomic_init(&digest->done_bytes, 0);
    atomic_init(&digest->is_broken, 0);

    digest->hashes = calloc(digest->nchunks, DIGEST_HASH_BYTES);

    if (digest->hashes == NULL) {
        return -1;
    }

    threads_start(&digest->threads, loop, digest_nthreads(digest->nchunks),
                  digest_run, digest_end, digest);

    return 0;
}


void
digest_stop(digest_t *digest)
{
    atomic_store(&digest->is_broken, 1);
}


void
digest_cancel(digest_t *digest)
{
    digest_stop(digest);
    threads_join(&digest->threads);
    free(digest->hashes);
    digest->hashes = NULL;
}


uint64_t
digest_done_bytes(const digest_t *digest)
{
    return atomic_load(&digest->done_bytes);
}
