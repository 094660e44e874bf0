
/*
 * How sessions are made: by a trace that is replayed in closed loop, or by a
 * workload's specification.  A plan is made for each session's first request.
 */

#ifndef WORK_SESSION_PLAN_H
#define WORK_SESSION_PLAN_H

#include "sim/work/sample.h"
#include "sim/work/session.h"


/* Requests of sessions give up after that long if nothing else is said. */
#define WORK_SESSION_TIMEOUT_US  300000000

#define WORK_ROUNDS_UNLIMITED    UINT32_MAX

/*
 * Lengths and times of later rounds: drawn, or as they were.  Lists belong to
 * the workload's arena and begin with round 1.
 */
typedef struct {
    uint32_t              rounds;           /* of the whole session */
    int                   accumulates;
    int64_t               timeout_us;       /* of each round; 0: none */
    int64_t               think_us;         /* if no list and no sample */
    const work_sample_t  *input;
    const work_sample_t  *output;
    const work_sample_t  *think;
    const int64_t        *inputs;           /* NULL: drawn; else rounds - 1 */
    const int64_t        *outputs;
    const int64_t        *thinks;
    rnd_t                 rnd;

    uint32_t              round;            /* state; zero at first */
    int                   is_over;
} work_plan_t;

/* Plans for the sessions of a workload; later rounds end at the horizon. */
void work_sessions_init(work_t *work, int64_t horizon_us);

/* At most so many later rounds of all sessions. */
void work_sessions_limit(work_t *work, uint64_t rounds);

/* The plan of a session by its first request, zeroed, to be filled. */
work_plan_t *work_session_add(work_t *work, const work_request_t *first);

#endif /* WORK_SESSION_PLAN_H */
