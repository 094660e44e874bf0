
/*
 * Sessions, in which the end of a request leads to the next one.
 *
 * A session sends its next round when the last one has ended and its think time
 * has passed; or a client keeps a fixed number of requests in flight.  A
 * workload whose sessions are not NULL has their first rounds; the simulation
 * reports each request's end, in the order of its clock, and is given the
 * request that follows, if any.
 */

#ifndef WORK_SESSION_H
#define WORK_SESSION_H

#include "sim/work/request.h"


typedef enum {
    WORK_END_COMPLETED = 0,     /* or was cut off at the model's limit */
    WORK_END_TIMED_OUT,         /* its session is over */
    WORK_END_DROPPED            /* unservable; its session is over, too */
} work_end_t;

/*
 * Reports that a request ended at now_us, after output_tokens of its answer.
 * Returns the request that follows, which is in the workload already and whose
 * arrival_us >= now_us.  NULL: the request has no session, the session is over,
 * its next round would come after the horizon, or the workload has its number
 * of requests.
 */
work_request_t *work_followup(work_t *work, const work_request_t *r,
    work_end_t end, uint32_t output_tokens, int64_t now_us);

#endif /* WORK_SESSION_H */
