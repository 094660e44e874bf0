
/*
 * Memory that is freed all at once: what belongs to a workload lives as long as
 * the workload, so nothing in it is freed separately.  Blocks never move.
 *
 * There is no error to handle: a simulator that has no memory left prints one
 * line and ends with status 2.
 */

#ifndef WORK_ARENA_H
#define WORK_ARENA_H

#include "common/data/grow.h"


typedef struct work_arena_block_s  work_arena_block_t;

typedef struct {
    work_arena_block_t  *blocks;        /* zeroed: empty */
    size_t               used;          /* bytes used of the first block */
    size_t               size;
} work_arena_t;

/* Zeroed memory, aligned for any type; never NULL. */
void *work_arena_alloc(work_arena_t *arena, size_t size);

/* A copy of len bytes with a NUL behind them. */
char *work_arena_text(work_arena_t *arena, const char *text, size_t len);

void work_arena_done(work_arena_t *arena);

/* Prints one line and exits with status 2. */
_Noreturn void work_no_memory(void);

/* As grow(), but ends the process if there is no memory. */
static inline void
work_grow(void *list, size_t *max, size_t items, size_t item_bytes)
{
    if (grow(list, max, items, item_bytes) != 0) {
        work_no_memory();
    }
}

#endif /* WORK_ARENA_H */
