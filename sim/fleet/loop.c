
#include <stdlib.h>

#include "sim/fleet/loop.h"


#define LOOP_RANK_SHIFT       56
#define LOOP_PROGRESS_TURNS   (1 << 14)


static int
loop_compare_arrivals(const void *a, const void *b, void *work)
{
    int64_t   s, t;
    uint32_t  i = *(const uint32_t *) a, k = *(const uint32_t *) b;

    s = work_at(work, i)->arrival_us;
    t = work_at(work, k)->arrival_us;

    return s != t ? (s > t) - (s < t) : (i > k) - (i < k);
}


static int
loop_init_arrivals(loop_t *loop)
{
    int     is_sorted;
    size_t  i;

    loop->narrivals = loop->work->n;
    loop->arrivals = malloc((loop->narrivals + 1) * sizeof(uint32_t));

    if (loop->arrivals == NULL) {
        return -1;
    }

    for (i = 0, is_sorted = 1; i < loop->narrivals; i++) {
        loop->arrivals[i] = (uint32_t) i;
        is_sorted &= i == 0 || work_at(loop->work, i - 1)->arrival_us
                               <= work_at(loop->work, i)->arrival_us;
    }

    if (!is_sorted) {
        qsort_r(loop->arrivals, loop->narrivals, sizeof(uint32_t),
                loop_compare_arrivals, loop->work);
    }

    return 0;
}


int
loop_init(loop_t *loop, work_t *work, uint32_t replicas)
{
    loop->work = work;
    loop->heap.item_bytes = sizeof(loop_event_t);

    return ready_init(&loop->ready, replicas) != 0
           || loop_init_arrivals(loop) != 0 ? -1 : 0;
}


void
loop_done(loop_t *loop)
{
    heap_done(&loop->heap);
    ready_done(&loop->ready);
    free(loop->arrivals);
}


int
loop_add(loop_t *loop, int64_t at_us, unsigned rank, loop_event_t event)
{
    event.key.at_us = at_us;
    event.key.order = (uint64_t) rank << LOOP_RANK_SHIFT | loop->serial++;

    return heap_add(&loop->heap, &event);
}


/* Removes the first event from the heap and handles it. */
static void
loop_event(loop_t *loop)
{
    loop_event_t  event;

    event = *(const loop_event_t *) heap_first(&loop->heap);
    heap_drop(&loop->heap);
    loop->hooks->event(loop->data, &event);
}


/* Handles the next event.  0: nothing is due within the horizon. */
static int
loop_turn(loop_t *loop)
{
    int64_t              at_us, arrival_us, event_us, replica_us;
    const heap_key_t    *event;
    const loop_hooks_t  *hooks = loop->hooks;

    event = heap_first(&loop->heap);
    event_us = event != NULL ? event->at_us : INT64_MAX;
    replica_us = ready_time(&loop->ready);
    arrival_us = loop->next_arrival == loop->narrivals ? INT64_MAX
        : work_at(loop->work, loop->arrivals[loop->next_arrival])->arrival_us;
    at_us = hooks->last_us != NULL ? hooks->last_us(loop->data) : INT64_MAX;

    at_us = replica_us < at_us ? replica_us : at_us;
    at_us = event_us < at_us ? event_us : at_us;
    at_us = arrival_us < at_us ? arrival_us : at_us;

    if (at_us == INT64_MAX || at_us > loop->horizon_us) {
        return 0;
    }

    if (hooks->clock != NULL) {
        hooks->clock(loop->data, at_us);
    }

    loop->clock_us = at_us;

    if (arrival_us == at_us) {
        hooks->arrive(loop->data, loop->arrivals[loop->next_arrival++]);

    } else if (event_us == at_us) {
        loop_event(loop);

    } else if (replica_us == at_us) {
        hooks->step(loop->data, ready_first(&loop->ready));

    } else {
        hooks->last(loop->data);
    }

    loop->turns++;

    return 1;
}


void
loop_run(loop_t *loop, const fleet_watch_t *watch)
{
    while (!loop->is_over && loop_turn(loop)) {

        if (watch != NULL && watch->progress != NULL
            && loop->turns % LOOP_PROGRESS_TURNS == 0)
        {
            watch->progress(watch->data, loop->clock_us, loop->ended);
        }
    }
}
