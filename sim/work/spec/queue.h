
/*
 * What comes next: a heap of times.  Equal times come by their order.
 */

#ifndef WORK_QUEUE_H
#define WORK_QUEUE_H

#include <stddef.h>
#include <stdint.h>


typedef struct {
    int64_t    at_us;
    uint64_t   order;
    void      *stream;
    void      *talk;
} work_event_t;

typedef struct {
    work_event_t  *events;          /* zeroed: empty; owned */
    size_t         n;
    size_t         max;
} work_queue_t;

void work_queue_push(work_queue_t *queue, work_event_t event);

/* The earliest; queue->n > 0. */
work_event_t work_queue_pop(work_queue_t *queue);

#endif /* WORK_QUEUE_H */
