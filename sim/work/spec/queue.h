
/*
 * Events of a workload that is drawn or driven: the next requests and rounds,
 * by their time.
 */

#ifndef WORK_QUEUE_H
#define WORK_QUEUE_H

#include "common/data/heap.h"
#include "sim/work/arena.h"


typedef struct {
    heap_key_t   key;
    void        *stream;
    void        *talk;
} work_event_t;


/*
 * For heaps of work_event_t.  work_push() ends the process if memory runs out.
 */
static inline void
work_push(heap_t *heap, const work_event_t *event)
{
    if (heap_add(heap, event) != 0) {
        work_no_memory();
    }
}

static inline work_event_t
work_pop(heap_t *heap)
{
    work_event_t  event = *(const work_event_t *) heap_first(heap);

    heap_drop(heap);

    return event;
}

#endif /* WORK_QUEUE_H */
