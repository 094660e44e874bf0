
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/flow/rows.h"

#define ROWS_BLOCK  SHARD_ROWS_MAX


static size_t
rows_block_bytes(const rows_t *rows)
{
    return (size_t) ROWS_BLOCK * rows->width * sizeof(float);
}


void
rows_init(rows_t *rows, uint32_t width, uint64_t *bytes)
{
    *rows = (rows_t) { .width = width, .bytes = bytes };
}


static void
rows_free_blocks(rows_t *rows, size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        free(rows->blocks[i]);
    }

    *rows->bytes -= n * rows_block_bytes(rows);
    rows->nblocks -= n;
    rows->first += n;
    memmove(rows->blocks, rows->blocks + n, rows->nblocks * sizeof(float *));
}


void
rows_done(rows_t *rows)
{
    if (rows->blocks != NULL) {
        rows_free_blocks(rows, rows->nblocks);
        free(rows->blocks);
    }

    rows_init(rows, rows->width, rows->bytes);
}


static int
rows_add_block(rows_t *rows)
{
    size_t   room;
    float  **blocks;

    if (rows->nblocks == rows->room) {
        room = rows->room ? 2 * rows->room : 8;
        blocks = realloc(rows->blocks, room * sizeof(float *));

        if (blocks == NULL) {
            return -1;
        }

        rows->blocks = blocks;
        rows->room = room;
    }

    rows->blocks[rows->nblocks] = malloc(rows_block_bytes(rows));

    if (rows->blocks[rows->nblocks] == NULL) {
        return -1;
    }

    rows->nblocks++;
    *rows->bytes += rows_block_bytes(rows);

    return 0;
}


static float *
rows_at(const rows_t *rows, uint32_t position)
{
    return rows->blocks[position / ROWS_BLOCK - rows->first]
           + (size_t) (position % ROWS_BLOCK) * rows->width;
}


/* How many rows from the position on are in one block, at most n. */
static uint32_t
rows_run(uint32_t position, uint32_t n)
{
    uint32_t  left;

    left = ROWS_BLOCK - position % ROWS_BLOCK;

    return n < left ? n : left;
}


/* Rows are appended to the last block; all blocks before it are full. */
int
rows_append(rows_t *rows, const float *values, uint32_t n)
{
    uint32_t  end, run;

    end = rows->end + n;

    if (rows->nblocks == 0) {
        rows->first = rows->end / ROWS_BLOCK;
    }

    while ((uint64_t) (rows->first + rows->nblocks) * ROWS_BLOCK < end) {
        if (rows_add_block(rows) != 0) {
            return -1;
        }
    }

    while (rows->end < end) {
        run = rows_run(rows->end, end - rows->end);
        memcpy(rows_at(rows, rows->end), values,
               (size_t) run * rows->width * sizeof(float));
        values += (size_t) run * rows->width;
        rows->end += run;
    }

    return 0;
}


const float *
rows_get(const rows_t *rows, uint32_t position, uint32_t n, float *scratch)
{
    float     *to;
    uint32_t   end, run;

    assert(position >= rows->base && position + n <= rows->end);

    if (rows_run(position, n) == n) {
        return rows_at(rows, position);
    }

    to = scratch;

    for (end = position + n; position < end; position += run) {
        run = rows_run(position, end - position);
        memcpy(to, rows_at(rows, position),
               (size_t) run * rows->width * sizeof(float));
        to += (size_t) run * rows->width;
    }

    return scratch;
}


void
rows_trim(rows_t *rows, uint32_t base)
{
    size_t  whole;

    assert(base <= rows->end);

    if (base <= rows->base) {
        return;
    }

    rows->base = base;
    whole = base / ROWS_BLOCK - rows->first;

    if (whole > rows->nblocks) {
        whole = rows->nblocks;
    }

    if (whole > 0) {
        rows_free_blocks(rows, whole);
    }
}
