
/*
 * Files.  A model's hash costs one reading of it, which brings it into the
 * page cache where libllama maps it from.
 */

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/os/memory.h"
#include "replica/engine/llama/plugin/file.h"


#define FILE_BLOCK_BYTES  (1024 * 1024)


/* Adds a file to the hash. */
static int
file_read(const char *path, const atomic_int *is_stopping,
    XXH3_state_t *state, uint64_t *bytes)
{
    int       fd;
    char     *block;
    ssize_t   n;

    fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }

    block = malloc(FILE_BLOCK_BYTES);

    if (block == NULL) {
        close(fd);
        return -1;
    }

    while ((n = read(fd, block, FILE_BLOCK_BYTES)) > 0) {
        XXH3_64bits_update(state, block, (size_t) n);
        *bytes += (uint64_t) n;

        if (atomic_load(is_stopping)) {
            errno = ECANCELED;
            n = -1;
            break;
        }
    }

    free(block);
    close(fd);

    return n < 0 ? -1 : 0;
}


int
file_hash(const char *path, const atomic_int *is_stopping, uint64_t *hash,
    uint64_t *bytes)
{
    int            rc;
    XXH3_state_t  *state;

    state = XXH3_createState();
    *bytes = 0;

    if (state == NULL) {
        return -1;
    }

    XXH3_64bits_reset(state);
    rc = file_read(path, is_stopping, state, bytes);
    *hash = XXH3_64bits_digest(state);
    XXH3_freeState(state);

    return rc;
}


int
file_hash_parts(char *const *parts, size_t n, const atomic_int *is_stopping,
    uint64_t *hash, uint64_t *bytes)
{
    size_t    i;
    uint64_t  hashes[2], part_bytes;

    if (n == 1) {
        return file_hash(parts[0], is_stopping, hash, bytes);
    }

    *bytes = 0;
    hashes[0] = 0;

    for (i = 0; i < n; i++) {
        if (file_hash(parts[i], is_stopping, &hashes[1], &part_bytes) != 0) {
            return -1;
        }

        hashes[0] = XXH3_64bits(hashes, sizeof(hashes));
        *bytes += part_bytes;
    }

    *hash = hashes[0];

    return 0;
}


int
file_check_gguf(const char *path)
{
    int      fd;
    char     magic[4];
    ssize_t  n;

    fd = open(path, O_RDONLY | O_CLOEXEC);

    if (fd < 0) {
        return -1;
    }

    n = read(fd, magic, sizeof(magic));
    close(fd);

    if (n < 0) {
        return -1;
    }

    return n == sizeof(magic) && memcmp(magic, "GGUF", 4) == 0 ? 0 : 1;
}


uint64_t
file_memory_bytes(void)
{
    memory_t  memory;

    memory_read(&memory, "");

    return memory.limit_bytes;
}
