
/*
 * The result of a run: the outcome of every request, counters of every replica
 * and of the gateway.
 *
 * Times are microseconds; a time that never came is FLEET_NEVER.  Nothing here
 * is an average: sim/report does the arithmetic.
 */

#ifndef FLEET_RESULT_H
#define FLEET_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/replica.h"


#define FLEET_NEVER  (-1)
#define FLEET_NONE   UINT32_MAX         /* instead of a replica or request */


/*
 * The state of a request at the end of the run.  Each request has exactly one.
 */
typedef enum {
    FLEET_NOT_ARRIVED = 0,
    FLEET_COMPLETED,
    FLEET_LENGTH_CAPPED,                /* completed at the model's limit */
    FLEET_TIMED_OUT,                    /* its deadline passed, in a replica */
    FLEET_REJECTED_ADMISSION,
    FLEET_REJECTED_ROUTING,             /* there was no replica to choose */
    FLEET_GATEWAY_REJECTED,             /* the gateway's queue was full */
    FLEET_GATEWAY_SHED,                 /* displaced from that queue */
    FLEET_GATEWAY_EXPIRED,              /* waited in it longer than the limit */
    FLEET_GATEWAY_EVICTED,              /* evicted from a replica */
    FLEET_UNSERVABLE,                   /* no replica can ever hold it */
    FLEET_DROPPED_AT_DECODE_KV,         /* too few KV blocks for its answer */
    FLEET_IN_INSTANCE,                  /* in a replica, at the horizon */
    FLEET_IN_GATEWAY,                   /* in the gateway at the horizon: in its
                                           queue, or not yet sent to a
                                           replica */
    FLEET_LOST,                         /* broke off after its first token, and
                                           no replica continued it */
    FLEET_STATUSES
} fleet_status_t;

/* The names of the states in BLIS's output. */
extern const char *const  fleet_status_names[FLEET_STATUSES];

typedef struct {
    int64_t         ttft_us;            /* arrival to first token */
    int64_t         e2e_us;             /* arrival to end, if it completed */
    int64_t         itl_sum_us;         /* sum of its itl_count gaps */
    int64_t         sched_delay_us;     /* arrival to last entry into a batch */
    int64_t         gw_enqueue_us;      /* clock: entered the gateway's queue */
    int64_t         gw_dispatch_us;     /* clock: left it for a replica */
    int64_t         route_us;           /* clock: the routing decision */
    int64_t         end_us;             /* clock: an end without completion */
    const char     *detail;             /* why or where it ended, or "" */
    uint32_t        replica;            /* which served it, or FLEET_NONE */
    uint32_t        split;              /* place in splits, or FLEET_NONE */
    uint32_t        itl_count;
    uint32_t        output_tokens;      /* tokens generated */
    uint32_t        preemptions;
    uint8_t         status;             /* fleet_status_t */
    uint8_t         was_injected;       /* sent to a replica that could hold it;
                                           for a split request, to the one that
                                           computes the answer */
} fleet_outcome_t;

/*
 * A request whose prompt was computed at a different replica from its answer:
 * clocks, and what its two halves measured.
 */
typedef struct {
    uint32_t        request;
    uint32_t        prefill_replica;
    uint32_t        decode_replica;
    uint32_t        blocks;             /* KV blocks transferred */
    int64_t         prefill_enqueue_us;
    int64_t         prefill_complete_us;
    int64_t         transfer_start_us;
    int64_t         transfer_complete_us;
    int64_t         decode_enqueue_us;
    int64_t         completion_us;
    int64_t         prefill_ttft_us;
    int64_t         first_step_us;      /* first gap of the half with the
                                           answer */
    uint8_t         has_decode;         /* blocks were reserved for it */
    uint8_t         is_completed;       /* the decode half has completed */
} fleet_split_row_t;

typedef struct {
    model_replica_t        *model;      /* counters, gaps: see replica.h */
    const model_config_t   *config;
    int64_t                 ended_us;   /* its last event within the horizon */
    uint32_t                still_queued;
    uint32_t                still_running;
    uint32_t                in_flight;  /* by the gateway's count */
    uint8_t                 prefills;   /* its roles; both without pools */
    uint8_t                 decodes;
} fleet_replica_t;

/* By id of a class's name in work->names, "" included. */
typedef struct {
    uint32_t        injected;           /* arrived */
    uint32_t        shed;               /* refused, displaced, expired or
                                           evicted by the gateway */
} fleet_class_count_t;

/* A count that only some gateways have, by its name. */
typedef struct {
    const char            *name;        /* a key of JSON */
    uint64_t               value;
} fleet_extra_t;

typedef struct {
    fleet_outcome_t       *outcomes;    /* one for each request of the work */
    size_t                 n;
    fleet_replica_t       *replicas;
    uint32_t               nreplicas;
    fleet_class_count_t   *classes;
    size_t                 nclasses;
    fleet_split_row_t     *splits;
    size_t                 nsplits;

    uint64_t               rejected_admission;
    uint64_t               rejected_routing;
    uint64_t               gateway_depth;       /* at the end */
    uint64_t               gateway_shed;
    uint64_t               gateway_rejected;
    uint64_t               gateway_expired;
    uint64_t               gateway_evicted;

    uint64_t               dropped_at_decode_kv;
    uint64_t               transfers;           /* transfers begun */
    uint64_t               transfers_peak;      /* most at one time; counted
                                                   only with contention */
    uint64_t               transfers_depth;     /* transfers at one time, summed
                                                   over the moments at which one
                                                   began */
    uint64_t               events;              /* handled, of all kinds */
    int64_t                clock_us;            /* time of the last event */

    const fleet_extra_t   *extras;      /* counts of sim/gateway; else NULL */
    size_t                 nextras;

    /* Private: texts of details and the requests that replicas knew, and a
       function that frees them; NULL: fleet_run()'s own. */
    void                  *memory;
    void                 (*memory_done)(void *memory);
} fleet_result_t;


/* The initial value of a request that has not arrived yet. */
extern const fleet_outcome_t  fleet_outcome_none;

/* Frees everything in it, the replicas too.  A zeroed result is empty. */
void fleet_result_done(fleet_result_t *result);

#endif /* FLEET_RESULT_H */
