
/* Future events, ordered by time, then by when they were added. */

#include <stdlib.h>

#include "sim/swim/fake_inner.h"


int
fake_event_is_before(const fake_event_t *a, const fake_event_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}


void
fake_net_push(fake_net_t *net, fake_event_t event)
{
    size_t  i, parent;

    if (net->nheap == net->capacity) {
        net->capacity = net->capacity ? net->capacity * 2 : 1024;
        net->heap = realloc(net->heap, net->capacity * sizeof(fake_event_t));
    }

    event.order = ++net->order;

    for (i = net->nheap++; i > 0; i = parent) {
        parent = (i - 1) / 2;

        if (!fake_event_is_before(&event, &net->heap[parent])) {
            break;
        }

        net->heap[i] = net->heap[parent];
    }

    net->heap[i] = event;
}


fake_event_t
fake_net_pop(fake_net_t *net)
{
    size_t        i, child;
    fake_event_t  first, last;

    first = net->heap[0];
    last = net->heap[--net->nheap];

    for (i = 0; (child = 2 * i + 1) < net->nheap; i = child) {
        if (child + 1 < net->nheap
            && fake_event_is_before(&net->heap[child + 1], &net->heap[child]))
        {
            child++;
        }

        if (!fake_event_is_before(&net->heap[child], &last)) {
            break;
        }

        net->heap[i] = net->heap[child];
    }

    net->heap[i] = last;

    return first;
}


uint64_t
fake_net_next_us(const fake_net_t *net)
{
    return net->nheap == 0 ? UINT64_MAX : net->heap[0].at_us;
}
