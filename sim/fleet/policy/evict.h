
/*
 * Which running request is given up for one that may not be shed: the one of
 * the lowest priority, of several the one that was dispatched last.
 *
 * Only requests that may be shed (priority below 0) are kept.  Of equal ones,
 * dispatched at the same moment, the heap's shape decides; it is that of Go's
 * container/heap, so that the choice is BLIS's.
 *
 * Memory is the caller's; requests are the caller's numbers.
 */

#ifndef LLMGW_EVICT_H
#define LLMGW_EVICT_H

#include <stddef.h>
#include <stdint.h>


#define LLMGW_EVICT_NONE  UINT32_MAX

typedef struct llmgw_evict_s  llmgw_evict_t;


/* For requests with numbers below nrequests. */
size_t llmgw_evict_bytes(uint32_t nrequests);

/* memory: zeroed, aligned to 8, of that many bytes */
llmgw_evict_t *llmgw_evict_init(void *memory, uint32_t nrequests);

/* It runs now.  Ignored where it may not be shed. */
void llmgw_evict_track(llmgw_evict_t *evict, uint32_t request,
    int32_t priority, int64_t dispatched_us);

/* It has ended.  Ignored where it is not kept. */
void llmgw_evict_untrack(llmgw_evict_t *evict, uint32_t request);

/* The next victim, no longer kept; LLMGW_EVICT_NONE: there is none. */
uint32_t llmgw_evict_pop(llmgw_evict_t *evict);

uint32_t llmgw_evict_length(const llmgw_evict_t *evict);

#endif /* LLMGW_EVICT_H */
