
/*
 * When a draining replica counts as drained.
 *
 * It does so when it has no process any more, or when its own agent reports
 * that it has no running request.  The load must be reported late enough to
 * include requests that were on their way when the drain began.
 */

#ifndef DRAINED_H
#define DRAINED_H

#include "proto/members/members.h"


/* A load reported at or after sure_us includes the requests that raced with the
   drain.  Times are of the own monotonic clock; reported at 0 means never. */
static inline int
drained_is(const llmgw_member_t *facts, const llmgw_member_load_t *load,
    uint64_t sure_us)
{
    return facts->service == LLMGW_SERVICE_DOWN
           || facts->service == LLMGW_SERVICE_STOPPED
           || (load->reported_ms != 0 && load->active_requests == 0
               && load->reported_ms * 1000 >= sure_us);
}

#endif /* DRAINED_H */
