
#include <stdlib.h>

#include "sim/gateway/events.h"


static int
event_is_before(const event_t *a, const event_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}


int
events_add(events_t *events, event_t event)
{
    size_t    i, max;
    event_t  *heap;

    if (events->n == events->max) {
        max = events->max == 0 ? 1024 : 2 * events->max;
        heap = realloc(events->heap, max * sizeof(event_t));

        if (heap == NULL) {
            return -1;
        }

        events->heap = heap;
        events->max = max;
    }

    heap = events->heap;
    event.order = events->order++;

    for (i = events->n++; i != 0; i = (i - 1) / 2) {
        if (event_is_before(&heap[(i - 1) / 2], &event)) {
            break;
        }

        heap[i] = heap[(i - 1) / 2];
    }

    heap[i] = event;

    return 0;
}


const event_t *
events_next(const events_t *events)
{
    return events->n == 0 ? NULL : events->heap;
}


event_t
events_take(events_t *events)
{
    size_t    i, child;
    event_t   first, last, *heap;

    heap = events->heap;
    first = heap[0];
    last = heap[--events->n];

    for (i = 0; (child = 2 * i + 1) < events->n; i = child) {
        if (child + 1 < events->n
            && event_is_before(&heap[child + 1], &heap[child]))
        {
            child++;
        }

        if (event_is_before(&last, &heap[child])) {
            break;
        }

        heap[i] = heap[child];
    }

    heap[i] = last;

    return first;
}


void
events_done(events_t *events)
{
    free(events->heap);
    *events = (events_t) { 0 };
}
