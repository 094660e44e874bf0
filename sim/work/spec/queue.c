
#include "sim/work/spec/queue.h"

#include <stdio.h>
#include <stdlib.h>


static int
is_before(const work_event_t *a, const work_event_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}


static void
queue_grow(work_queue_t *queue)
{
    work_event_t  *events;

    queue->max = queue->max > 0 ? 2 * queue->max : 256;
    events = realloc(queue->events, queue->max * sizeof(*events));

    if (events == NULL) {
        fprintf(stderr, "llmgw-sim: no memory left\n");
        exit(2);
    }

    queue->events = events;
}


void
work_queue_push(work_queue_t *queue, work_event_t event)
{
    size_t  i, up;

    if (queue->n == queue->max) {
        queue_grow(queue);
    }

    for (i = queue->n++; i > 0; i = up) {
        up = (i - 1) / 2;

        if (!is_before(&event, &queue->events[up])) {
            break;
        }

        queue->events[i] = queue->events[up];
    }

    queue->events[i] = event;
}


work_event_t
work_queue_pop(work_queue_t *queue)
{
    size_t         i, down;
    work_event_t   first, last, *events;

    events = queue->events;
    first = events[0];
    last = events[--queue->n];

    for (i = 0; (down = 2 * i + 1) < queue->n; i = down) {
        if (down + 1 < queue->n && is_before(&events[down + 1], &events[down]))
        {
            down++;
        }

        if (!is_before(&events[down], &last)) {
            break;
        }

        events[i] = events[down];
    }

    events[i] = last;

    return first;
}
