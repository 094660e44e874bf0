
/*
 * How the later rounds of sessions are made: from a trace that is replayed in
 * closed loop, or from a workload's specification.  Each session has a plan,
 * made for its first request.
 */

#ifndef WORK_SESSION_PLAN_H
#define WORK_SESSION_PLAN_H

#include "sim/work/sample.h"
#include "sim/work/session.h"


/* Default timeout of requests of sessions. */
#define WORK_SESSION_TIMEOUT_US  300000000

#define WORK_ROUNDS_UNLIMITED    UINT32_MAX

/*
 * Lengths and times of later rounds: drawn, or as recorded.  Lists are in the
 * workload's arena and begin with round 1.
 */
typedef struct {
    uint32_t              rounds;           /* number in the whole session */
    int                   accumulates;
    int64_t               timeout_us;       /* of each round; 0: none */
    int64_t               think_us;         /* without list and sample */
    const work_sample_t  *input;
    const work_sample_t  *output;
    const work_sample_t  *think;
    const int64_t        *inputs;           /* NULL: drawn; else per round */
    const int64_t        *outputs;
    const int64_t        *thinks;
    rnd_t                 rnd;

    uint32_t              round;            /* state; 0 at first */
    int                   is_over;
} work_plan_t;

/* Gives the workload sessions; no round begins after the horizon. */
void work_sessions_init(work_t *work, int64_t horizon_us);

/* Limits the number of later rounds of all sessions together. */
void work_sessions_limit(work_t *work, uint64_t rounds);

/*
 * Adds a plan for the session of that first request; it is zeroed, and the
 * caller fills it in.
 */
work_plan_t *work_session_add(work_t *work, const work_request_t *first);

#endif /* WORK_SESSION_PLAN_H */
