
/*
 * Rows of floats by their positions, base .. end - 1: appended at the end,
 * freed from the beginning.
 *
 * They are stored in blocks of SHARD_ROWS_MAX, so that a long history is never
 * copied to grow, and its beginning can be freed at once.  The steps of a
 * prompt begin at multiples of that number, so most are read without a copy.
 */

#ifndef FLOW_ROWS_H
#define FLOW_ROWS_H

#include <stddef.h>
#include <stdint.h>

#include "replica/shard/limits.h"


typedef struct {
    float     **blocks;
    size_t      nblocks;
    size_t      room;
    uint32_t    first;      /* number of blocks[0] */
    uint32_t    width;
    uint32_t    base;
    uint32_t    end;
    uint64_t   *bytes;      /* bytes of all blocks of several rows_t, this one's
                               included */
} rows_t;


void rows_init(rows_t *rows, uint32_t width, uint64_t *bytes);

/* Frees all rows; it may then be filled again from position 0. */
void rows_done(rows_t *rows);

/* 0, or -1: out of memory, and nothing is appended. */
int rows_append(rows_t *rows, const float *values, uint32_t n);

/* Returns n rows that are stored, 1 .. SHARD_ROWS_MAX; scratch has room for
   them, and the result may be in it. */
const float *rows_get(const rows_t *rows, uint32_t position, uint32_t n,
    float *scratch);

/* Frees the rows below `base`, which is at most the end. */
void rows_trim(rows_t *rows, uint32_t base);

#endif /* FLOW_ROWS_H */
