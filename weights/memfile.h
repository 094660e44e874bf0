
/*
 * A file in memory (memfd) that came from a client, and its seals.
 *
 * Its facts come from the kernel and not from the client. Once sealed, it can
 * be neither written nor mapped for writing, neither cut nor grown, and the
 * seals cannot be removed by any holder of a descriptor.
 *
 * Hashing takes time by the file's size, so a client must not get a large size
 * without using memory: a file with holes is not accepted.  Its blocks are
 * counted, since lseek(2) with SEEK_HOLE would have to walk all pages, would
 * move the offset that the client's descriptor shares, and does not see the
 * holes of a file of huge pages.  Allocated bytes that were never written count
 * as present, since they use as much memory.  A last huge page that reaches
 * beyond the end can hide a hole of less than its size.
 */

#ifndef WEIGHTS_MEMFILE_H
#define WEIGHTS_MEMFILE_H

#include <stdint.h>
#include <sys/types.h>


/* More than a host has; bounds the list of chunks that are hashed. */
#define MEMFILE_MAX_BYTES  (16ULL << 40)

typedef struct {
    int       fd;           /* -1: none */
    dev_t     dev;
    ino_t     ino;
    uint64_t  bytes;
    uint64_t  held_bytes;   /* of its pages, swapped-out ones included */
    int       seals;
} memfile_t;


/*
 * Reads the facts of fd, which stays the caller's in any case.  These functions
 * return NULL, or a reason as one word; here: no_fd, not_memfd, not_readable,
 * bad_size.
 */
const char *memfile_look(memfile_t *file, int fd);

/* Whether it can probably be sealed; else not_sealable. */
const char *memfile_can_seal(const memfile_t *file);

/*
 * Seals it.  sparse: it has holes, which the client may fill; mapped: a process
 * has it mapped for writing, and may unmap it.  After these two the client may
 * try again; not after not_sealable, nor after bad_size: it was cut or grown
 * since memfile_look().
 */
const char *memfile_seal(memfile_t *file);

int memfile_is_sealed(const memfile_t *file);

/* Whether it had no holes when its facts were read. */
int memfile_is_whole(const memfile_t *file);

/* Whether both are the same memory, not only equal bytes. */
int memfile_is_same(const memfile_t *a, const memfile_t *b);

#endif /* WEIGHTS_MEMFILE_H */
