
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
 * Requests are not in the heap but in a sorted array, so the heap has only
 * events that have been scheduled since.  Equal input gives an equal order of
 * events.
 */

#ifndef FLEET_LOOP_H
#define FLEET_LOOP_H

#include "common/data/heap.h"
#include "sim/fleet/fleet.h"
#include "sim/fleet/ready.h"


#define LOOP_RANKS  256

/* The gateway defines what kind, subject, detail and more mean. */
typedef struct {
    heap_key_t            key;          /* time, rank, serial number */
    uint32_t              subject;
    uint32_t              detail;
    uint32_t              more;
    int                   kind;
} loop_event_t;

typedef struct {
    /* Called before the clock advances to an event; may be NULL. */
    void                (*clock)(void *data, int64_t at_us);

    void                (*arrive)(void *data, uint32_t request);
    void                (*event)(void *data, const loop_event_t *event);
    void                (*step)(void *data, uint32_t replica);

    /*
     * When a further source has its next event, which is handled after all
     * others of that time; both NULL: there is no such source.
     */
    int64_t             (*last_us)(void *data);
    void                (*last)(void *data);
} loop_hooks_t;

typedef struct {
    const loop_hooks_t   *hooks;
    void                 *data;
    work_t               *work;
    int64_t               horizon_us;   /* events at this time still happen */
    heap_t                heap;
    uint64_t              serial;
    ready_t               ready;        /* the gateway sets its times */
    uint32_t             *arrivals;     /* requests by arrival */
    size_t                narrivals;
    size_t                next_arrival;
    int64_t               clock_us;     /* of the last event */
    uint64_t              turns;
    size_t                ended;        /* ended requests; set by the gateway */
    int                   is_over;      /* set by the gateway: stop */
} loop_t;


/*
 * The caller zeroes the loop first.  0, or -1: no memory; call loop_done() in
 * both cases.
 */
int loop_init(loop_t *loop, work_t *work, uint32_t replicas);
void loop_done(loop_t *loop);

/*
 * Schedules an event.  Its rank is below LOOP_RANKS; event.key is set here.  0,
 * or -1: no memory.
 */
int loop_add(loop_t *loop, int64_t at_us, unsigned rank, loop_event_t event);

/* Runs until nothing is due within the horizon, or is_over is set. */
void loop_run(loop_t *loop, const fleet_watch_t *watch);

/*
 * Writes to the result what the run ended with: clock, number of events, and
 * requests that replicas still have.
 */
void fleet_result_end(fleet_result_t *result, const loop_t *loop);

#endif /* FLEET_LOOP_H */
