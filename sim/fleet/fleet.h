
/*
 * A run: a workload goes through the gateway to a fleet, in virtual time.
 *
 * The gateway's decisions are core's, called with facts of the simulated fleet:
 * rules of admission, flow control, policies.  The replicas are sim/model's.
 * The rest is here: an event loop, latencies, the age of facts, and the
 * reporting of a request's end.
 *
 * Order, as in BLIS: of two events the earlier; at one time the gateway's
 * before the replicas', the gateway's by kind and then as they were scheduled,
 * the replicas' by number.  Equal input gives equal output, to the last bit.
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
    FLEET_DECISION_DECODE,              /* where an answer is computed whose
                                           prompt is computed elsewhere */
    FLEET_DECISION_PREFILL              /* where that prompt is */
} fleet_decision_kind_t;

typedef struct {
    fleet_decision_kind_t   kind;
    int64_t                 clock_us;
    const work_request_t   *request;
    int                     is_admitted;        /* of an admission */
    const char             *reason;             /* "" if there is none */
    uint32_t                chosen;             /* replica, of the others */
    double                  regret;             /* the best score less the
                                                   chosen one's, at least 0 */
    const fleet_ranked_t   *top;                /* the best first */
    uint32_t                ntop;
} fleet_decision_t;

/* A choice as core made it, with all that the policy read. */
typedef struct {
    int64_t                 clock_us;
    const work_request_t   *request;
    uint32_t                role;       /* 0; of two halves: 1, the prompt's,
                                           2, the answer's */
    const llmgw_ranker_t   *ranker;     /* as it was before the choice */
    const llmgw_scoring_t  *scoring;
    const double           *ranks;      /* by position */
    const uint32_t         *free_blocks;    /* by replica */
    uint32_t                chosen;     /* position */
    const char             *reason;
} fleet_chosen_t;

/* Each may be NULL. */
typedef struct {
    void  (*decided)(void *data, const fleet_decision_t *decision);
    void  (*chose)(void *data, const fleet_chosen_t *chosen);

    /* Called now and then; ended: requests that are done. */
    void  (*progress)(void *data, int64_t clock_us, size_t ended);

    void   *data;
} fleet_watch_t;


#define FLEET_BROKEN  1

/*
 * Runs it.  Sessions in the workload append their later rounds to it.
 * *result is zeroed by the caller, and freed by it in any case.  0; or one line
 * in error and -1: bad settings, no memory, no horizon where all replicas that
 * have requests are stuck (model_replica_stuck()); FLEET_BROKEN:
 * config->checks, and an invariant does not hold.
 */
int fleet_run(const fleet_config_t *config, work_t *work,
    const fleet_watch_t *watch, fleet_result_t *result, char *error,
    size_t bytes);

#endif /* FLEET_H */
