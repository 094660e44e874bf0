
/*
 * What is due when: a heap of events, the earliest first, of equal ones the
 * one that was added first.
 */

#ifndef GATEWAY_EVENTS_H
#define GATEWAY_EVENTS_H

#include <stddef.h>
#include <stdint.h>


typedef enum {
    EVENT_CAME = 0,             /* attempt, serial: at its replica */
    EVENT_FIRST,                /* attempt, serial: its first token is here */
    EVENT_FINAL,                /* the same, of its last one */
    EVENT_REFUSED,              /* attempt, serial, model_end_t */
    EVENT_BROKEN,               /* attempt, serial, ending and cause */
    EVENT_TIMER,                /* stream, number of the timer */
    EVENT_LINK,                 /* front and replica, serial */
    EVENT_TURN,                 /* front */
    EVENT_TICK,                 /* front */
    EVENT_NEWS,                 /* front and replica, what */
    EVENT_LOADS,
    EVENT_FAULT,                /* number of the fault */
    EVENT_FAULT_END,            /* the same, replica, its life */
    EVENT_STALLED,              /* replica, number of the time that it hangs */
    EVENT_UPDATE,
    EVENT_UPDATE_LATE,          /* replica: its drain takes too long */
    EVENT_UPDATE_RESTARTED      /* replica */
} event_kind_t;

typedef struct {
    int64_t       at_us;
    uint64_t      order;
    uint32_t      subject;
    uint32_t      detail;
    uint32_t      more;
    event_kind_t  kind;
} event_t;

typedef struct {
    event_t   *heap;
    size_t     n;
    size_t     max;
    uint64_t   order;
} events_t;


/* event->order is set here.  0, or -1: no memory. */
int events_add(events_t *events, event_t event);

/* NULL: there is none. */
const event_t *events_next(const events_t *events);

/* Takes out the next one, which there is. */
event_t events_take(events_t *events);

void events_done(events_t *events);

#endif /* GATEWAY_EVENTS_H */
