
/*
 * What a run gives: the fate of every request, and counters of every replica.
 *
 * Times are microseconds of the simulated clock; a time that never came is
 * FLEET_NEVER.  Nothing here is an average: sim/report does the arithmetic.
 */

#ifndef FLEET_RESULT_H
#define FLEET_RESULT_H

#include <stddef.h>
#include <stdint.h>


#define FLEET_NEVER  INT64_MIN
#define FLEET_NONE   UINT32_MAX         /* no replica, no request */


/* Where a request stands at the end of the run.  Each is in one place. */
typedef enum {
    FLEET_NOT_ARRIVED = 0,
    FLEET_COMPLETED,
    FLEET_LENGTH_CAPPED,                /* completed at the model's limit */
    FLEET_TIMED_OUT,                    /* by its own deadline, in a replica */
    FLEET_REJECTED_ADMISSION,
    FLEET_REJECTED_ROUTING,             /* there was no replica to choose */
    FLEET_GATEWAY_REJECTED,             /* the gateway's queue was full */
    FLEET_GATEWAY_SHED,                 /* displaced from it by another */
    FLEET_GATEWAY_EXPIRED,              /* waited longer than its limit */
    FLEET_GATEWAY_EVICTED,              /* taken out of a replica */
    FLEET_UNSERVABLE,                   /* no replica can ever hold it */
    FLEET_DROPPED_AT_DECODE_KV,         /* no memory where it would decode */
    FLEET_IN_INSTANCE,                  /* at the horizon */
    FLEET_IN_GATEWAY,
    FLEET_STATUSES
} fleet_status_t;

/* Of FLEET_TIMED_OUT: where the deadline found it. */
typedef enum {
    FLEET_TIMED_OUT_RUNNING = 0,
    FLEET_TIMED_OUT_QUEUED,
    FLEET_TIMED_OUT_PAST_DUE            /* before it was ever queued */
} fleet_timeout_t;

typedef struct {
    int64_t         ttft_us;            /* arrival to first token */
    int64_t         e2e_us;             /* arrival to end, if it completed */
    int64_t         itl_sum_us;         /* of the gaps between its tokens */
    int64_t         sched_delay_us;     /* arrival to first scheduled */
    int64_t         gw_enqueue_us;      /* clock: into the gateway's queue */
    int64_t         gw_dispatch_us;     /* clock: out of it, to a replica */
    int64_t         route_us;           /* clock: the routing decision */
    int64_t         end_us;             /* clock: an end without completion */
    const char     *reason;             /* of an admission that was refused */
    uint32_t        replica;            /* that served it, or FLEET_NONE */
    uint32_t        displaced_by;       /* of FLEET_GATEWAY_SHED: a request */
    uint32_t        output_tokens;      /* given */
    uint32_t        preemptions;
    uint8_t         status;             /* fleet_status_t */
    uint8_t         timeout;            /* fleet_timeout_t */
    uint8_t         disaggregated;      /* prefilled elsewhere */
    uint8_t         tries;              /* replicas that it was sent to */
} fleet_outcome_t;

#endif /* FLEET_RESULT_H */
