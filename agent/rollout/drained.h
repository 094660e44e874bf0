
/*
 * When is a replica that drains drained?
 *
 * When it has no process any more, or when its own agent says that it has no
 * running request, in a load that was reported late enough: requests that were
 * on their way when the drain began are in it.
 */

#ifndef DRAINED_H
#define DRAINED_H

#include "proto/members/members.h"


/* sure_us: a load reported from then on has what raced with the drain.  Both
   are times of the own monotonic clock; no load at all was reported at 0. */
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
