
/*
 * Memory that is freed all at once, and the end of the process if there is
 * none.
 */

#include "sim/work/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>


#define ARENA_BLOCK_BYTES  (64 * 1024)
#define ARENA_ALIGN        _Alignof(max_align_t)


struct work_arena_block_s {
    work_arena_block_t  *next;
    max_align_t          bytes[];
};


void
work_no_memory(void)
{
    fprintf(stderr, "llmgw-sim: no memory left\n");
    exit(2);
}


static void
arena_grow(work_arena_t *arena, size_t size)
{
    work_arena_block_t  *block;

    if (size < ARENA_BLOCK_BYTES) {
        size = ARENA_BLOCK_BYTES;
    }

    block = calloc(1, sizeof(*block) + size);

    if (block == NULL) {
        work_no_memory();
    }

    block->next = arena->blocks;
    arena->blocks = block;
    arena->used = 0;
    arena->size = size;
}


void *
work_arena_alloc(work_arena_t *arena, size_t size)
{
    char  *at;

    size = (size + ARENA_ALIGN - 1) & ~(ARENA_ALIGN - 1);

    if (arena->blocks == NULL || arena->size - arena->used < size) {
        arena_grow(arena, size);
    }

    at = (char *) arena->blocks->bytes + arena->used;
    arena->used += size;

    return at;
}


char *
work_arena_text(work_arena_t *arena, const char *text, size_t len)
{
    char  *copy;

    copy = work_arena_alloc(arena, len + 1);
    memcpy(copy, text, len);

    return copy;
}


void
work_arena_done(work_arena_t *arena)
{
    work_arena_block_t  *next;

    while (arena->blocks != NULL) {
        next = arena->blocks->next;
        free(arena->blocks);
        arena->blocks = next;
    }

    arena->used = 0;
    arena->size = 0;
}
