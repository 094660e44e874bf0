
/*
 * Two containers of requests: the queue before the batch, and a heap of
 * requests that each wait for a time.
 */

#ifndef MODEL_QUEUE_H
#define MODEL_QUEUE_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/config.h"
#include "sim/model/request.h"


/*
 * The queue: an array with room at both ends.  With FCFS it is in the order of
 * arrival, preempted requests before all; with the other schedulers it is
 * sorted, by urgency or length, then arrival, then id.
 */
typedef struct {
    model_scheduler_t   scheduler;
    model_request_t   **items;
    uint32_t            first;
    uint32_t            n;
    uint32_t            capacity;
} model_queue_t;

#define model_queue_head(queue)  ((queue)->items[(queue)->first])


void model_queue_init(model_queue_t *queue, model_scheduler_t scheduler);
void model_queue_done(model_queue_t *queue);

/*
 * model_queue_add() inserts a request in its order; model_queue_return() brings
 * a preempted one back to the front.  0, or -1: no memory.
 */
int model_queue_add(model_queue_t *queue, model_request_t *request);
int model_queue_return(model_queue_t *queue, model_request_t *request);

/* Removes the head, which must exist. */
void model_queue_pop(model_queue_t *queue);

/* Removes a request.  1 if it was in the queue, else 0. */
int model_queue_remove(model_queue_t *queue, const model_request_t *request);


/*
 * Requests that each wait for a time; equal times are ordered by serial. A
 * binary heap; a request is in one heap at most.
 */
typedef struct {
    int64_t           at_us;
    uint64_t          serial;
    model_request_t  *request;
} model_moment_t;

typedef struct {
    model_moment_t  *items;
    uint32_t         n;
    uint32_t         capacity;
    uint64_t         serial;
} model_moments_t;


void model_moments_done(model_moments_t *moments);

/* 0, or -1: no memory. */
int model_moments_add(model_moments_t *moments, model_request_t *request,
    int64_t at_us);

/* Removes a request, which must be in the heap. */
void model_moments_remove(model_moments_t *moments, model_request_t *request);

#endif /* MODEL_QUEUE_H */
