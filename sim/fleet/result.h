
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
#define FLEET_NONE   UINT32_MAX         /* no replica, no request */


/*
 * The state of a request at the end of the run.  Each request has exactly one.
 */
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
    FLEET_IN_GATEWAY,                   /* the same: in its queue, or on its
                                           way through it */
    FLEET_LOST,                         /* broke off behind its first token,
                                           and nobody could go on */
    FLEET_STATUSES
} fleet_status_t;

/* BLIS's words for them. */
extern const char *const  fleet_status_names[FLEET_STATUSES];

typedef struct {
    int64_t         ttft_us;            /* arrival to first token */
    int64_t         e2e_us;             /* arrival to end, if it completed */
    int64_t         itl_sum_us;         /* of the itl_count gaps */
    int64_t         sched_delay_us;     /* arrival to last scheduled */
    int64_t         gw_enqueue_us;      /* clock: into the gateway's queue */
    int64_t         gw_dispatch_us;     /* clock: out of it, to a replica */
    int64_t         route_us;           /* clock: the routing decision */
    int64_t         end_us;             /* clock: an end without completion */
    const char     *detail;             /* reason or place of that end, or "" */
    uint32_t        replica;            /* that served it, or FLEET_NONE */
    uint32_t        split;              /* place in splits, or FLEET_NONE */
    uint32_t        itl_count;
    uint32_t        output_tokens;      /* given */
    uint32_t        preemptions;
    uint8_t         status;             /* fleet_status_t */
    uint8_t         was_injected;       /* handed to a replica, which could
                                           hold it; of a split request: to
                                           the one where it decodes */
} fleet_outcome_t;

/*
 * A request whose prompt was computed at another replica than its answer:
 * clocks, and what its two halves measured.
 */
typedef struct {
    uint32_t        request;
    uint32_t        prefill_replica;
    uint32_t        decode_replica;
    uint32_t        blocks;             /* of KV cache, transferred */
    int64_t         prefill_enqueue_us;
    int64_t         prefill_complete_us;
    int64_t         transfer_start_us;
    int64_t         transfer_complete_us;
    int64_t         decode_enqueue_us;
    int64_t         completion_us;
    int64_t         prefill_ttft_us;
    int64_t         first_step_us;      /* the decode half's first gap */
    uint8_t         has_decode;         /* blocks were reserved for it */
    uint8_t         is_completed;       /* the decode half did */
} fleet_split_row_t;

typedef struct {
    model_replica_t        *model;      /* counters, gaps; see replica.h */
    const model_config_t   *config;
    int64_t                 ended_us;   /* its last event within the horizon */
    uint32_t                still_queued;
    uint32_t                still_running;
    uint32_t                in_flight;  /* as the gateway counts */
    uint8_t                 prefills;   /* its role; both: no pools */
    uint8_t                 decodes;
} fleet_replica_t;

/* By number of a class's name in work->names, "" too. */
typedef struct {
    uint32_t        injected;           /* arrived */
    uint32_t        shed;               /* refused, displaced, expired or
                                           evicted by the gateway */
} fleet_class_count_t;

/* A count that only some gateways have, by its name. */
typedef struct {
    const char            *name;        /* a word, as a key of JSON */
    uint64_t               value;
} fleet_extra_t;

typedef struct {
    fleet_outcome_t       *outcomes;    /* of each request of the work */
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
    uint64_t               transfers;           /* begun */
    uint64_t               transfers_peak;      /* at one time; only counted
                                                   with contention */
    uint64_t               transfers_depth;     /* those at one time, summed
                                                   over each that began */
    uint64_t               events;              /* done, of all kinds */
    int64_t                clock_us;            /* of the last one */

    const fleet_extra_t   *extras;      /* of sim/gateway's; NULL: none */
    size_t                 nextras;

    /* Private: texts of details, and the requests that replicas knew; and
       what frees them, NULL: fleet_run()'s own. */
    void                  *memory;
    void                 (*memory_done)(void *memory);
} fleet_result_t;


/* The initial value of a request that has not arrived yet. */
extern const fleet_outcome_t  fleet_outcome_none;

/* Frees all, the replicas too.  A zeroed result is empty. */
void fleet_result_done(fleet_result_t *result);

#endif /* FLEET_RESULT_H */
