
/*
 * Chooses the running request to evict.  The heap moves as Go's container/heap
 * does, step by step: this decides the order of equal ones.
 */

#include "sim/fleet/policy/evict.h"


typedef struct {
    int64_t   dispatched_us;
    int32_t   priority;
    uint32_t  request;
} evict_entry_t;

/* evict_entry_t entries[nrequests] | uint32_t places[nrequests] */
struct evict_s {
    uint32_t  nrequests;
    uint32_t  n;
};


size_t
evict_bytes(uint32_t nrequests)
{
    return sizeof(evict_t)
           + nrequests * (sizeof(evict_entry_t) + sizeof(uint32_t));
}


evict_t *
evict_init(void *memory, uint32_t nrequests)
{
    evict_t  *evict;

    evict = memory;
    evict->nrequests = nrequests;

    return evict;
}


static evict_entry_t *
evict_entry(evict_t *evict, uint32_t i)
{
    return (evict_entry_t *) (evict + 1) + i;
}


/* The place of a request in the heap, + 1; 0: it is not there. */
static uint32_t *
evict_place(evict_t *evict, uint32_t request)
{
    return (uint32_t *) evict_entry(evict, evict->nrequests) + request;
}


static int
evict_is_before(evict_t *evict, uint32_t a, uint32_t b)
{
    const evict_entry_t  *x, *y;

    x = evict_entry(evict, a);
    y = evict_entry(evict, b);

    return x->priority != y->priority ? x->priority < y->priority
                                      : x->dispatched_us > y->dispatched_us;
}


static void
evict_swap(evict_t *evict, uint32_t a, uint32_t b)
{
    evict_entry_t  entry;

    entry = *evict_entry(evict, a);
    *evict_entry(evict, a) = *evict_entry(evict, b);
    *evict_entry(evict, b) = entry;

    *evict_place(evict, evict_entry(evict, a)->request) = a + 1;
    *evict_place(evict, evict_entry(evict, b)->request) = b + 1;
}


static void
evict_rise(evict_t *evict, uint32_t i)
{
    uint32_t  parent;

    while (i != 0) {
        parent = (i - 1) / 2;

        if (!evict_is_before(evict, i, parent)) {
            return;
        }

        evict_swap(evict, parent, i);
        i = parent;
    }
}


/*
 * Moves the entry at start down, among the first n.  Returns whether it moved.
 */
static int
evict_sink(evict_t *evict, uint32_t start, uint32_t n)
{
    uint32_t  i, child;

    for (i = start; (child = 2 * i + 1) < n; i = child) {
        if (child + 1 < n && evict_is_before(evict, child + 1, child)) {
            child++;
        }

        if (!evict_is_before(evict, child, i)) {
            break;
        }

        evict_swap(evict, i, child);
    }

    return i != start;
}


/* Removes the entry at i, and returns its request. */
static uint32_t
evict_take(evict_t *evict, uint32_t i)
{
    uint32_t  last, request;

    last = evict->n - 1;

    if (i != last) {
        evict_swap(evict, i, last);

        if (!evict_sink(evict, i, last)) {
            evict_rise(evict, i);
        }
    }

    request = evict_entry(evict, last)->request;
    *evict_place(evict, request) = 0;
    evict->n--;

    return request;
}


void
evict_track(evict_t *evict, uint32_t request, int32_t priority,
    int64_t dispatched_us)
{
    evict_entry_t  *entry;

    if (priority >= 0 || *evict_place(evict, request) != 0) {
        return;
    }

    entry = evict_entry(evict, evict->n);
    entry->dispatched_us = dispatched_us;
    entry->priority = priority;
    entry->request = request;

    *evict_place(evict, request) = ++evict->n;
    evict_rise(evict, evict->n - 1);
}


void
evict_untrack(evict_t *evict, uint32_t request)
{
    uint32_t  place;

    place = *evict_place(evict, request);

    if (place != 0) {
        (void) evict_take(evict, place - 1);
    }
}


uint32_t
evict_pop(evict_t *evict)
{
    return evict->n == 0 ? EVICT_NONE : evict_take(evict, 0);
}


uint32_t
evict_length(const evict_t *evict)
{
    return evict->n;
}
