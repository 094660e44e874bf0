
/* Parts of a change of shared memory: to begin a lease, to grant the head. */

#ifndef LLMGW_LEASE_H
#define LLMGW_LEASE_H

#include "core/admission/admission.h"


/*
 * Counts an attempt at that peer and takes a ticket of its breaker; *change is
 * what became of its circuit.  Returns 0 and does nothing if the slot belongs
 * to another replica.
 */
int llmgw_lease_begin(const llmgw_admission_self_t *self,
    const llmgw_admission_view_t *view, uint32_t peer, int is_forced,
    uint64_t now_ms, llmgw_lease_t *lease, llmgw_breaker_change_t *change);

/* There may be capacity: grants the head, if there is one. */
void llmgw_queue_wake(llmgw_admission_t *shared, uint64_t now_ms,
    llmgw_wake_t *wake);

#endif /* LLMGW_LEASE_H */
