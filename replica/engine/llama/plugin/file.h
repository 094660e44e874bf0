
/*
 * Files that decide what is computed, by what is in them.
 */

#ifndef FILE_H
#define FILE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>


/* XXH3 of all bytes.  0, or -1 and errno: ECANCELED once is_stopping is set,
   since a model takes seconds. */
int file_hash(const char *path, const atomic_int *is_stopping, uint64_t *hash,
    uint64_t *bytes);

/* The same of all parts of a model: of one its own hash. */
int file_hash_parts(char *const *parts, size_t n,
    const atomic_int *is_stopping, uint64_t *hash, uint64_t *bytes);

/* Whether it begins as GGUF does: 0, -1 and errno, or 1: another kind. */
int file_check_gguf(const char *path);

/* What this process may use: of the machine, and of its control groups. */
uint64_t file_memory_bytes(void);

#endif /* FILE_H */
