
#include <stdlib.h>
#include <string.h>

#include "sim/model/queue.h"


void
model_queue_init(model_queue_t *queue, model_scheduler_t scheduler)
{
    memset(queue, 0, sizeof(model_queue_t));
    queue->scheduler = scheduler;
}


void
model_queue_done(model_queue_t *queue)
{
    free(queue->items);
    memset(queue, 0, sizeof(model_queue_t));
}


static int64_t
queue_rank(const model_queue_t *queue, const model_request_t *request)
{
    switch (queue->scheduler) {

    case MODEL_PRIORITY_FCFS:
        return request->priority;

    case MODEL_REVERSE_PRIORITY:
        return -(int64_t) request->priority;

    case MODEL_SJF:
        return request->input_tokens;

    default:
        return 0;
    }
}


static int
queue_is_before(const model_queue_t *queue, const model_request_t *a,
    const model_request_t *b)
{
    int64_t  rank_a, rank_b;

    rank_a = queue_rank(queue, a);
    rank_b = queue_rank(queue, b);

    if (rank_a != rank_b) {
        return rank_a < rank_b;
    }

    if (a->arrival_us != b->arrival_us) {
        return a->arrival_us < b->arrival_us;
    }

    return strcmp(a->id, b->id) < 0;
}


/* The place of a request: after all that do not come after it. */
static uint32_t
queue_place(const model_queue_t *queue, const model_request_t *request)
{
    uint32_t  low, high, middle;

    low = 0;
    high = queue->n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (queue_is_before(queue, request,
                            queue->items[queue->first + middle]))
        {
            high = middle;

        } else {
            low = middle + 1;
        }
    }

    return low;
}


/* Makes room for one item at both ends, by moving the items to the middle. */
static int
queue_reserve(model_queue_t *queue)
{
    uint32_t           capacity, first;
    model_request_t  **items;

    if (queue->first > 0 && queue->first + queue->n < queue->capacity) {
        return 0;
    }

    capacity = queue->capacity;

    if (queue->n + 2 > capacity / 2) {
        capacity = capacity > 0 ? 2 * capacity : 16;
    }

    items = malloc(capacity * sizeof(model_request_t *));

    if (items == NULL) {
        return -1;
    }

    first = (capacity - queue->n) / 2;

    if (queue->n > 0) {
        memcpy(items + first, queue->items + queue->first,
               queue->n * sizeof(model_request_t *));
    }

    free(queue->items);
    queue->items = items;
    queue->first = first;
    queue->capacity = capacity;

    return 0;
}


static int
queue_insert(model_queue_t *queue, model_request_t *request, uint32_t i)
{
    model_request_t  **at;

    if (queue_reserve(queue) != 0) {
        return -1;
    }

    if (i < queue->n / 2) {
        queue->first--;
        at = queue->items + queue->first;
        memmove(at, at + 1, i * sizeof(model_request_t *));

    } else {
        at = queue->items + queue->first;
        memmove(at + i + 1, at + i,
                (queue->n - i) * sizeof(model_request_t *));
    }

    at[i] = request;
    queue->n++;

    return 0;
}


int
model_queue_add(model_queue_t *queue, model_request_t *request)
{
    return queue_insert(queue, request,
                        queue->scheduler == MODEL_FCFS
                        ? queue->n : queue_place(queue, request));
}


int
model_queue_return(model_queue_t *queue, model_request_t *request)
{
    return queue_insert(queue, request,
                        queue->scheduler == MODEL_FCFS
                        ? 0 : queue_place(queue, request));
}


void
model_queue_pop(model_queue_t *queue)
{
    queue->first++;
    queue->n--;
}


int
model_queue_remove(model_queue_t *queue, const model_request_t *request)
{
    uint32_t           i;
    model_request_t  **at;

    at = queue->items + queue->first;

    for (i = 0; i < queue->n; i++) {

        if (at[i] == request) {
            queue->n--;
            memmove(at + i, at + i + 1,
                    (queue->n - i) * sizeof(model_request_t *));
            return 1;
        }
    }

    return 0;
}


/* --- the heap */

void
model_moments_done(model_moments_t *moments)
{
    free(moments->items);
    memset(moments, 0, sizeof(model_moments_t));
}


static int
moment_is_before(const model_moment_t *a, const model_moment_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us
                                : a->serial < b->serial;
}


static void
moments_place(model_moments_t *moments, uint32_t i, model_moment_t item)
{
    moments->items[i] = item;
    item.request->moment = i;
}


/* Puts an item into its place, starting at the hole at i. */
static void
moments_settle(model_moments_t *moments, uint32_t i, model_moment_t item)
{
    uint32_t  next;

    while (i > 0) {
        next = (i - 1) / 2;

        if (!moment_is_before(&item, &moments->items[next])) {
            break;
        }

        moments_place(moments, i, moments->items[next]);
        i = next;
    }

    for (next = 2 * i + 1; next < moments->n; next = 2 * i + 1) {

        if (next + 1 < moments->n
            && moment_is_before(&moments->items[next + 1],
                                &moments->items[next]))
        {
            next++;
        }

        if (!moment_is_before(&moments->items[next], &item)) {
            break;
        }

        moments_place(moments, i, moments->items[next]);
        i = next;
    }

    moments_place(moments, i, item);
}


int
model_moments_add(model_moments_t *moments, model_request_t *request,
    int64_t at_us)
{
    uint32_t         capacity;
    model_moment_t  *items, item;

    if (moments->n == moments->capacity) {
        capacity = moments->capacity > 0 ? 2 * moments->capacity : 8;
        items = realloc(moments->items, capacity * sizeof(model_moment_t));

        if (items == NULL) {
            return -1;
        }

        moments->items = items;
        moments->capacity = capacity;
    }

    item.at_us = at_us;
    item.serial = moments->serial++;
    item.request = request;
    moments_settle(moments, moments->n++, item);

    return 0;
}


void
model_moments_remove(model_moments_t *moments, model_request_t *request)
{
    model_moment_t  last;

    last = moments->items[--moments->n];

    if (last.request != request) {
        moments_settle(moments, request->moment, last);
    }
}
