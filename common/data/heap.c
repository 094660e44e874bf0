
#include "common/data/grow.h"
#include "common/data/heap.h"


static inline void
heap_put(heap_t *heap, size_t i, const void *item)
{
    memcpy(heap_item(heap, i), item, heap->item_bytes);
}


int
heap_add(heap_t *heap, const void *item)
{
    size_t  i, parent;

    if (grow(&heap->items, &heap->max, heap->n + 1, heap->item_bytes) != 0) {
        return -1;
    }

    for (i = heap->n++; i > 0; i = parent) {
        parent = (i - 1) / 2;

        if (!heap_is_before(item, heap_item(heap, parent))) {
            break;
        }

        heap_put(heap, i, heap_item(heap, parent));
    }

    heap_put(heap, i, item);

    return 0;
}


void
heap_drop(heap_t *heap)
{
    size_t       i, child;
    const void  *last;

    last = heap_item(heap, --heap->n);

    for (i = 0; (child = 2 * i + 1) < heap->n; i = child) {
        if (child + 1 < heap->n
            && heap_is_before(heap_item(heap, child + 1),
                              heap_item(heap, child)))
        {
            child++;
        }

        if (!heap_is_before(heap_item(heap, child), last)) {
            break;
        }

        heap_put(heap, i, heap_item(heap, child));
    }

    if (i < heap->n) {
        heap_put(heap, i, last);
    }
}


void
heap_done(heap_t *heap)
{
    free(heap->items);
    *heap = (heap_t) { .item_bytes = heap->item_bytes };
}
