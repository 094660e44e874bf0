
/*
 * The running request that is evicted for one that may not be shed: the one
 * with the lowest priority, among several the one dispatched last.
 *
 * Only requests that may be shed (priority below 0) are kept.  Among requests
 * of equal priority that were dispatched at the same moment, the heap's shape
 * decides; it is that of Go's container/heap, so the choice is BLIS's.
 *
 * The caller provides the memory, and numbers the requests.
 */

#ifndef FLEET_EVICT_H
#define FLEET_EVICT_H

#include <stddef.h>
#include <stdint.h>


#define EVICT_NONE  UINT32_MAX

typedef struct evict_s  evict_t;


/* How much memory evict_init() needs for requests numbered below nrequests. */
size_t evict_bytes(uint32_t nrequests);

/* memory: zeroed, aligned to 8, of evict_bytes(nrequests) bytes. */
evict_t *evict_init(void *memory, uint32_t nrequests);

/* A request begins to run.  Ignored if it may not be shed. */
void evict_track(evict_t *evict, uint32_t request, int32_t priority,
    int64_t dispatched_us);

/* A request has ended.  Ignored if it is not kept here. */
void evict_untrack(evict_t *evict, uint32_t request);

/* Removes and returns the next victim, or EVICT_NONE if there is none. */
uint32_t evict_pop(evict_t *evict);

uint32_t evict_length(const evict_t *evict);

#endif /* FLEET_EVICT_H */
