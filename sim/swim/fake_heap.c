
/* Future events, ordered by time, then in the order of being added. */

#include <stdlib.h>

#include "sim/swim/fake_inner.h"


void
fake_net_push(fake_net_t *net, fake_event_t event)
{
    event.key.order = ++net->order;

    if (heap_add(&net->heap, &event) != 0) {
        abort();
    }
}


fake_event_t
fake_net_pop(fake_net_t *net)
{
    fake_event_t  first;

    first = *(const fake_event_t *) heap_first(&net->heap);
    heap_drop(&net->heap);

    return first;
}


uint64_t
fake_net_next_us(const fake_net_t *net)
{
    const heap_key_t  *next = heap_first(&net->heap);

    return next == NULL ? UINT64_MAX : (uint64_t) next->at_us;
}
