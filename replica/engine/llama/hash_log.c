
/*
 * Lines of the hash log.
 */

#include <stdio.h>
#include <unistd.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "replica/engine/llama/hash_log.h"


void
hash_log_row(int fd, uint64_t name, uint32_t layer, uint32_t position,
    const float *row, size_t n)
{
    int      len;
    char     line[96];
    ssize_t  written;

    if (fd == 0) {
        return;
    }

    len = snprintf(line, sizeof(line), "%016lx %u %u %016lx\n", name, layer,
                   position, XXH3_64bits(row, n * sizeof(float)));
    written = write(fd, line, (size_t) len);
    (void) written;     /* a line that is missing fails the comparison */
}
