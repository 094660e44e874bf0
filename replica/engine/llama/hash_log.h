
/*
 * What was computed, as hashes: for tests that compare it between processes.
 *
 * A line is "NAME LAYER POSITION HASH", numbers in decimal, names and hashes
 * (XXH3, 64 bits) in 16 hexadecimal digits.  NAME is the hash of the prompt's
 * ids, so that it is the same wherever a stream goes on.  LAYER 1 to layers-1:
 * the row that enters this layer; LAYER layers: the logits.  A row that is
 * computed twice has two lines.
 */

#ifndef HASH_LOG_H
#define HASH_LOG_H

#include <stddef.h>
#include <stdint.h>


/* One write(2) a line, so that threads may share the file.  fd 0: no log. */
void hash_log_row(int fd, uint64_t name, uint32_t layer, uint32_t position,
    const float *row, size_t n);

#endif /* HASH_LOG_H */
