
/*
 * Hashes of files that decide what is computed, and memory.
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

/* The same for all parts of a model; of one part it is the file's own hash. */
int file_hash_parts(char *const *parts, size_t n,
    const atomic_int *is_stopping, uint64_t *hash, uint64_t *bytes);

/* 0: the file begins as GGUF does; 1: it does not; -1 and errno. */
int file_check_gguf(const char *path);

/* Memory that this process may use, by the machine's size and the limits of its
   control groups. */
uint64_t file_memory_bytes(void);

#endif /* FILE_H */
