
/*
 * Whether rows that a shard computed are plausible; this costs less than
 * computing them again.  A value that is not finite, or a row far longer than
 * any that was seen when the model was sliced, is a sign of broken memory, of a
 * wrong slice, or of a shard that lies.  A flipped low bit is not found.
 *
 * The first positions are exempt from the norm: real models have massive
 * activations there (Sun et al., "Massive Activations in Large Language
 * Models", 2024).
 */

#ifndef SHARD_CHECK_H
#define SHARD_CHECK_H

#include <stdint.h>


/* Positions from this one on have a bound for their norm ... */
#define CHECK_NORM_FROM    4

/* ... this many times the greatest norm that was seen at the boundary. */
#define CHECK_NORM_FACTOR  16.0

typedef enum {
    CHECK_GOOD = 0,
    CHECK_NOT_FINITE,
    CHECK_TOO_LONG
} check_t;


/*
 * Checks n rows of the given width, the first at the given position.  norm: the
 * greatest Euclidean norm of a row at this boundary; 0: not known, then only
 * values that are not finite are found.
 */
check_t check_rows(const float *rows, uint32_t n, uint32_t width,
    uint32_t position, float norm);

/* "a value that is no finite number", ... */
const char *check_text(check_t check);

#endif /* SHARD_CHECK_H */
