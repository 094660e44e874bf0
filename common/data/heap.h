
/*
 * A binary heap of items of one size, ordered by the time with which each item
 * begins.  The earliest is first; of two with equal times, the one with the
 * lower `order`, which the owner assigns so that runs are reproducible.
 *
 * Items are copied in and out.  Zeroed but for item_bytes, a heap is empty.
 */

#ifndef COMMON_DATA_HEAP_H
#define COMMON_DATA_HEAP_H

#include <stddef.h>
#include <stdint.h>


typedef struct {
    int64_t    at_us;
    uint64_t   order;
} heap_key_t;

typedef struct {
    size_t     item_bytes;
    size_t     n;
    size_t     max;
    char      *items;
} heap_t;


static inline int
heap_is_before(const heap_key_t *a, const heap_key_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

/* Adds a copy of the item.  0, or -1: no memory. */
int heap_add(heap_t *heap, const void *item);

/* The first item; NULL: the heap is empty.  It is valid until heap_drop(). */
static inline const void *
heap_first(const heap_t *heap)
{
    return heap->n > 0 ? heap->items : NULL;
}

/* Removes the first item; the heap must not be empty. */
void heap_drop(heap_t *heap);

/* The i-th item; apart from the first one, items are in no order. */
static inline void *
heap_item(const heap_t *heap, size_t i)
{
    return heap->items + i * heap->item_bytes;
}

void heap_done(heap_t *heap);

#endif /* COMMON_DATA_HEAP_H */
