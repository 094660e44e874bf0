
/*
 * The event loop in virtual time, for both gateways.
 *
 * Events are processed in the order of their times.  At one time:
 *
 *     1. requests that the workload has from the beginning, in their order
 *     2. events of the gateway, by rank, then as they were scheduled
 *     3. replicas, by number
 *     4. what comes last, if the gateway has something that does
 *
 * The requests do not lie in the heap: they are a sorted array, so the heap
 * holds only what is under way.  Equal input gives equal turns.
 */

#ifndef FLEET_LOOP_H
#define FLEET_LOOP_H

#include "common/data/heap.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/ready.h"


#define LOOP_RANKS  256

/* Its kind and its meaning are defined by the gateway. */
typedef struct {
    heap_key_t            key;          /* order: rank and serial number */
    uint32_t              subject;
    uint32_t              detail;
    uint32_t              more;
    int                   kind;
} loop_event_t;

typedef struct {
    /* Called before the clock is set for an event; or NULL. */
    void                (*clock)(void *data, int64_t at_us);

    void                (*arrive)(void *data, uint32_t request);
    void                (*event)(void *data, const loop_event_t *event);
    void                (*step)(void *data, uint32_t replica);

    /* The time of a source of events that comes last; both NULL: none. */
    int64_t             (*last_us)(void *data);
    void                (*last)(void *data);
} loop_hooks_t;

typedef struct {
    const loop_hooks_t   *hooks;
    void                 *data;
    work_t               *work;
    int64_t               horizon_us;   /* its own events still happen */
    heap_t                heap;
    uint64_t              serial;
    ready_t               ready;        /* set by the gateway */
    uint32_t             *arrivals;     /* by time */
    size_t                narrivals;
    size_t                next_arrival;
    int64_t               clock_us;     /* of the last turn */
    uint64_t              turns;
    size_t                ended;        /* requests; counted by the gateway */
    int                   is_over;      /* set by it: no more turns */
} loop_t;


/* Of a zeroed loop.  0, or -1: no memory; loop_done() in both cases. */
int loop_init(loop_t *loop, work_t *work, uint32_t replicas);
void loop_done(loop_t *loop);

/* Below LOOP_RANKS; event.key is set here.  0, or -1: no memory. */
int loop_add(loop_t *loop, int64_t at_us, unsigned rank, loop_event_t event);

/* Runs until nothing is due within the horizon, or is_over is set. */
void loop_run(loop_t *loop, const fleet_watch_t *watch);

/* Its end, in the result: clock, turns, what replicas still hold. */
void fleet_result_end(fleet_result_t *result, const loop_t *loop);

#endif /* FLEET_LOOP_H */
