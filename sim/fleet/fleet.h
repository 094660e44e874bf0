
/*
 * A run: a workload goes through the gateway to a fleet, in virtual time.
 *
 * The gateway's decisions are core's, called with facts of the simulated fleet:
 * rules of admission, flow control, policies.  The replicas are sim/model's.
 * This folder adds the event loop, latencies, the age of facts, and the outcome
 * of each request.
 *
 * Events are handled in BLIS's order: by time; at equal times the gateway's
 * come before the replicas'; the gateway's are ordered by kind and then as they
 * were scheduled, the replicas' by number.  Equal input gives equal output, to
 * the last bit.
 */

#ifndef FLEET_H
#define FLEET_H

#include "sim/fleet/config.h"
#include "sim/fleet/result.h"
#include "sim/work/session.h"


/* A candidate in the record of a decision. */
typedef struct {
    uint32_t               replica;
    int32_t                queue_depth;
    int32_t                batch_size;
    int32_t                in_flight;
    uint32_t               free_blocks;
    double                 kv_utilization;
    double                 score;
} fleet_ranked_t;

typedef enum {
    FLEET_DECISION_ADMISSION = 0,
    FLEET_DECISION_ROUTING,
    FLEET_DECISION_DECODE,              /* which replica computes the answer of
                                           a split request */
    FLEET_DECISION_PREFILL              /* which replica computes its prompt */
} fleet_decision_kind_t;

typedef struct {
    fleet_decision_kind_t   kind;
    int64_t                 clock_us;
    const work_request_t   *request;
    int                     is_admitted;        /* valid for admissions */
    const char             *reason;             /* why refused or chosen */
    uint32_t                chosen;             /* a replica, if routed */
    double                  regret;             /* best score less the chosen
                                                   replica's, at least 0 */
    const fleet_ranked_t   *top;                /* best first */
    uint32_t                ntop;
} fleet_decision_t;

/* A choice as core made it, with everything that the policy read. */
typedef struct {
    int64_t                 clock_us;
    const work_request_t   *request;
    uint32_t                role;       /* 0: whole request; 1: half with the
                                           prompt; 2: half with the answer */
    const llmgw_ranker_t   *ranker;     /* its memory is as before the choice */
    const llmgw_scoring_t  *scoring;
    const double           *ranks;      /* by position among candidates */
    const uint32_t         *free_blocks;    /* by replica */
    uint32_t                chosen;     /* position among candidates */
    const char             *reason;
} fleet_chosen_t;

/* Callbacks; each may be NULL. */
typedef struct {
    void  (*decided)(void *data, const fleet_decision_t *decision);
    void  (*chose)(void *data, const fleet_chosen_t *chosen);

    /* Called now and then, with the number of requests that have ended. */
    void  (*progress)(void *data, int64_t clock_us, size_t ended);

    void   *data;
} fleet_watch_t;


#define FLEET_BROKEN  1

/*
 * Runs the workload through the fleet.  Sessions in the workload append their
 * later rounds to it.  *result is zeroed by the caller, and freed by it in any
 * case.  0; or -1 and one line in error: settings are bad, memory ran out, or
 * there is no horizon and all replicas that have requests are stuck
 * (model_replica_stuck()); or FLEET_BROKEN: config->checks is set and an
 * invariant does not hold.
 */
int fleet_run(const fleet_config_t *config, work_t *work,
    const fleet_watch_t *watch, fleet_result_t *result, char *error,
    size_t bytes);

#endif /* FLEET_H */
