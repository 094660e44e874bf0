
/*
 * A binary heap in an array.  Children of i are 2i + 1 and 2i + 2.
 */

#include <stdlib.h>

#include "replica/engine/sim/due.h"


static void
due_place(due_heap_t *h, due_item_t *item, size_t i)
{
    h->items[i] = item;
    item->index = i;
}


/* Both move an item from a hole at i to its place, which they return. */
static size_t
due_rise(due_heap_t *h, const due_item_t *item, size_t i)
{
    size_t  parent;

    while (i > 0) {
        parent = (i - 1) / 2;

        if (h->items[parent]->at_us <= item->at_us) {
            break;
        }

        due_place(h, h->items[parent], i);
        i = parent;
    }

    return i;
}


static size_t
due_sink(due_heap_t *h, const due_item_t *item, size_t i)
{
    size_t  child;

    for (child = 2 * i + 1; child < h->n; child = 2 * i + 1) {

        if (child + 1 < h->n
            && h->items[child + 1]->at_us < h->items[child]->at_us)
        {
            child++;
        }

        if (item->at_us <= h->items[child]->at_us) {
            break;
        }

        due_place(h, h->items[child], i);
        i = child;
    }

    return i;
}


static void
due_settle(due_heap_t *h, due_item_t *item, size_t i)
{
    due_place(h, item, due_sink(h, item, due_rise(h, item, i)));
}


int
due_push(due_heap_t *h, due_item_t *item)
{
    size_t        capacity;
    due_item_t  **items;

    if (h->n == h->capacity) {
        capacity = h->capacity > 0 ? 2 * h->capacity : 64;
        items = realloc(h->items, capacity * sizeof(due_item_t *));

        if (items == NULL) {
            return -1;
        }

        h->items = items;
        h->capacity = capacity;
    }

    h->n++;
    due_settle(h, item, h->n - 1);

    return 0;
}


void
due_remove(due_heap_t *h, due_item_t *item)
{
    due_item_t  *last;

    last = h->items[--h->n];

    if (last != item) {
        due_settle(h, last, item->index);
    }
}


void
due_move(due_heap_t *h, due_item_t *item, uint64_t at_us)
{
    item->at_us = at_us;
    due_settle(h, item, item->index);
}


due_item_t *
due_first(const due_heap_t *h)
{
    return h->n > 0 ? h->items[0] : NULL;
}


void
due_done(due_heap_t *h)
{
    free(h->items);
    h->items = NULL;
    h->n = 0;
    h->capacity = 0;
}
