
/*
 * Sessions: a request whose end brings the next one.
 *
 * A session sends its next round when the last one has ended and its think
 * time has passed; or a client keeps a fixed number of requests in flight.
 * A workload whose sessions are not NULL holds their first rounds; the
 * simulation reports each end, in the order of its clock, and gets the request
 * that follows from it.
 */

#ifndef WORK_SESSION_H
#define WORK_SESSION_H

#include "sim/work/request.h"


typedef enum {
    WORK_END_COMPLETED = 0,     /* or ended by the model's greatest length */
    WORK_END_TIMED_OUT,         /* its session is over */
    WORK_END_DROPPED            /* unservable: its session is over, too */
} work_end_t;

/*
 * A request ended at now_us, after output_tokens of its answer.  The request
 * that follows it, its arrival_us >= now_us, in the workload already; or NULL:
 * it has no session, the session is over, its next round would come after the
 * horizon, or the workload's number of requests is reached.
 */
work_request_t *work_followup(work_t *work, const work_request_t *r,
    work_end_t end, uint32_t output_tokens, int64_t now_us);

#endif /* WORK_SESSION_H */
