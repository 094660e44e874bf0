
/*
 * The running request that is evicted for one that may not be shed: the one
 * with the lowest priority, among several the one dispatched last.
 *
 * Only requests that may be shed (priority below 0) are kept.  Among equal
 * ones, dispatched at the same moment, the heap's shape decides; it is that of
 * Go's container/heap, so that the choice is BLIS's.
 *
 * Memory is the caller's; requests are the caller's numbers.
 */

#ifndef FLEET_EVICT_H
#define FLEET_EVICT_H

#include <stddef.h>
#include <stdint.h>


#define EVICT_NONE  UINT32_MAX

typedef struct evict_s  evict_t;


/* For requests with numbers below nrequests. */
size_t evict_bytes(uint32_t nrequests);

/* memory: zeroed, aligned to 8, of that many bytes */
evict_t *evict_init(void *memory, uint32_t nrequests);

/* It runs now.  Ignored where it may not be shed. */
void evict_track(evict_t *evict, uint32_t request, int32_t priority,
    int64_t dispatched_us);

/* It has ended.  Ignored where it is not kept. */
void evict_untrack(evict_t *evict, uint32_t request);

/* Removes and returns the next victim; EVICT_NONE: there is none. */
uint32_t evict_pop(evict_t *evict);

uint32_t evict_length(const evict_t *evict);

#endif /* FLEET_EVICT_H */
