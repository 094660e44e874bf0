
/*
 * A heap of items by the time at which they are due, the earliest first.  An
 * item is part of its owner's struct, may be in one heap, and knows its place
 * there, so that it is removed without a search.
 */

#ifndef DUE_H
#define DUE_H

#include <stddef.h>
#include <stdint.h>


#define DUE_NEVER  UINT64_MAX

typedef struct {
    uint64_t   at_us;
    size_t     index;       /* in the heap; set by it */
} due_item_t;

typedef struct {
    due_item_t  **items;
    size_t        n;
    size_t        capacity;
} due_heap_t;


/* 0, or -1: out of memory.  Both leave item->at_us as it is. */
int due_push(due_heap_t *heap, due_item_t *item);
void due_remove(due_heap_t *heap, due_item_t *item);

/* Changes the time of an item of the heap. */
void due_move(due_heap_t *heap, due_item_t *item, uint64_t at_us);

/* The earliest; NULL: the heap is empty. */
due_item_t *due_first(const due_heap_t *heap);

/* Frees the heap, not its items. */
void due_done(due_heap_t *heap);

#endif /* DUE_H */
