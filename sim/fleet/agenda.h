
/*
 * The gateway's events to come, in the order of time, kind, and scheduling.
 *
 * A binary heap.  Requests that are known from the beginning do not lie in it:
 * the run walks over them in their order, so the heap is as small as what is
 * under way.
 */

#ifndef FLEET_AGENDA_H
#define FLEET_AGENDA_H

#include <stddef.h>
#include <stdint.h>


/* In the order in which those of one time are done; see agenda_rank(). */
typedef enum {
    AGENDA_ARRIVAL = 0,
    AGENDA_ADMISSION,
    AGENDA_ROUTING,
    AGENDA_PREFILL,
    AGENDA_TRANSFER_START,
    AGENDA_EVICTION,
    AGENDA_TRANSFER_END,
    AGENDA_TTL,
    AGENDA_TICK
} agenda_kind_t;

typedef struct {
    int64_t        at_us;
    uint64_t       order;       /* rank and serial number */
    uint32_t       subject;     /* a request, or a split */
    uint32_t       detail;      /* of an eviction: the replica */
    agenda_kind_t  kind;
} agenda_event_t;

typedef struct {
    agenda_event_t  *heap;
    size_t           n;
    size_t           max;
    uint64_t         serial;
} agenda_t;


void agenda_done(agenda_t *agenda);

/* 0, or -1: no memory. */
int agenda_add(agenda_t *agenda, int64_t at_us, agenda_kind_t kind,
    uint32_t subject, uint32_t detail);

/* The next, NULL: none.  It stays until agenda_drop(). */
const agenda_event_t *agenda_next(const agenda_t *agenda);
void agenda_drop(agenda_t *agenda);

#endif /* FLEET_AGENDA_H */
