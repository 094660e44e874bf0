
/*
 * A file in memory (memfd) that came from a client, and its seals.
 *
 * Its facts come from the kernel and not from the client. Once sealed, it can
 * be neither written nor mapped for writing, neither cut nor grown, and the
 * seals cannot be removed by any holder of a descriptor.
 *
 * Hashing takes time by the file's size, so nothing may be large for free: a
 * file with holes is not taken.  The blocks that it has are counted, where
 * lseek(2) with SEEK_HOLE would have to walk all pages, would move the
 * offset that the client's descriptor shares, and does not see the holes of a
 * file of huge pages.  Allocated bytes that were never written count as
 * present: they cost their owner as much.  A last huge page that reaches beyond
 * the end can hide a hole of less than its size.
 */

#ifndef WEIGHTS_MEMFILE_H
#define WEIGHTS_MEMFILE_H

#include <stdint.h>
#include <sys/types.h>


/* More than a host has; bounds the list of what is hashed. */
#define MEMFILE_MAX_BYTES  (16ULL << 40)

typedef struct {
    int       fd;           /* -1: none */
    dev_t     dev;
    ino_t     ino;
    uint64_t  bytes;
    uint64_t  held_bytes;   /* of its pages, those that are swapped out too */
    int       seals;
} memfile_t;


/*
 * Looks at fd, which stays the caller's in any case.  These return NULL, or
 * why not in a word: no_fd, not_memfd, not_readable, bad_size.
 */
const char *memfile_look(memfile_t *file, int fd);

/* Can it be sealed, as far as one can see?  not_sealable. */
const char *memfile_can_seal(const memfile_t *file);

/*
 * Seals it.  sparse: it has holes, and may be filled; mapped: a process has it
 * mapped for writing, and may unmap it; both may ask again.  not_sealable;
 * bad_size: it was cut or grown since memfile_look().
 */
const char *memfile_seal(memfile_t *file);

int memfile_is_sealed(const memfile_t *file);

/* Without holes, when it was looked at. */
int memfile_is_whole(const memfile_t *file);

/* The same memory, not another with the same bytes. */
int memfile_is_same(const memfile_t *a, const memfile_t *b);

#endif /* WEIGHTS_MEMFILE_H */
