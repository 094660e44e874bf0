
/*
 * How much memory this process may use, and how much of that is still
 * available.
 *
 * The host's own figures are one bound.  Each control group that the process
 * is in is another, from its own up to the root of the hierarchy, as far as
 * this process sees them: a container's limit, a unit's MemoryMax, a slice's.
 * Both versions of control groups are read; on a host with both, the memory
 * controller is in one of them.
 *
 * What a group has in use includes page cache, which the kernel drops before it
 * kills a process, and which counts as available; MemAvailable of the host does
 * the same.  Shared memory is no such cache.
 */

#ifndef MEMORY_H
#define MEMORY_H

#include <stdint.h>


typedef struct {
    uint64_t  limit_bytes;
    uint64_t  available_bytes;
} memory_t;


/*
 * root: "" for this process; tests give a directory with proc/ and sys/ in it.
 * A file that cannot be read sets no bound; without any bound, figures are
 * UINT64_MAX.
 */
void memory_read(memory_t *memory, const char *root);

/* The same for another process, by its number. */
void memory_read_process(memory_t *memory, const char *root,
    const char *process);

#endif /* MEMORY_H */
