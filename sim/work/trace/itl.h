
/*
 * When each chunk of each answer came: CSV with the columns request_id,
 * chunk_index, timestamp_us, as BLIS's `observe --record-itl` writes it.
 */

#ifndef WORK_ITL_H
#define WORK_ITL_H

#include "sim/work/error.h"

#include <stddef.h>
#include <stdint.h>


/* More chunks than a trace of WORK_MAX_REQUESTS can have. */
#define WORK_MAX_CHUNKS  200000000

typedef struct {
    int64_t   request_id;
    int64_t   at_us;
    uint32_t  chunk;            /* index; the first is 0 */
} work_chunk_t;

typedef struct {
    work_chunk_t  *chunks;      /* zeroed: empty; owned */
    size_t         n;
    size_t         max;
} work_itl_t;

/* Reads the chunks, sorted by request and chunk.  0, or -1 and *error. */
int work_itl_read(work_itl_t *itl, const char *path, work_error_t *error);

int work_itl_write(const work_itl_t *itl, const char *path,
    work_error_t *error);

void work_itl_add(work_itl_t *itl, int64_t request_id, uint32_t chunk,
    int64_t at_us);
void work_itl_done(work_itl_t *itl);

/* The chunks of one request in a sorted list; *n is their number. */
const work_chunk_t *work_itl_of(const work_itl_t *itl, int64_t request_id,
    size_t *n);

#endif /* WORK_ITL_H */
