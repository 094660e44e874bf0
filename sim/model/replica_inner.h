
/*
 * Shared by the parts of a replica.
 *
 *     replica.c   events: what is due, what comes in, what goes
 *     batch.c     which requests a step computes, and which tokens
 *     step.c      the step itself: its time, its tokens, requests that end
 *     gaps.c      gaps between tokens, counted
 *     stuck.c     whether anything will ever end
 *
 * Steps are numbered.  The requests of the batch are in order of their entry;
 * due[i] is the step in which request i needs more than one token: a block, its
 * block's name, its end.  Requests that prefill are due in each step.  So a
 * step in which no request is due touches none, and otherwise an array of
 * numbers is scanned.
 */

#ifndef MODEL_REPLICA_INNER_H
#define MODEL_REPLICA_INNER_H

#include "sim/model/kv.h"
#include "sim/model/queue.h"
#include "sim/model/replica.h"


#define DUE_ALWAYS  0               /* a prompt is due in each step; steps begin
                                       with 1 */

/* A run of steps in which a request got a token each, and the run before it. */
typedef struct {
    uint64_t  first, end;
    uint32_t  before;               /* index of the run before, + 1; 0: none */
} model_span_t;

typedef struct {
    int64_t   gap_us;
    uint64_t  count;
} model_gap_t;

typedef struct {
    int64_t         *gaps_us;       /* by step from `first` on: its gap */
    int32_t         *changes;       /* by step: how many more requests got its
                                       gap than that of the step before;
                                       completed requests only */
    uint64_t         first;
    int64_t          before;        /* how many got that before `first` */
    uint32_t         n, capacity;
    uint32_t         fold_at;       /* number of steps at which to fold */
    model_span_t    *spans;
    uint32_t         nspans, spans_capacity;

    model_gap_t     *folded;        /* before `first`; each gap once */
    uint32_t         nfolded, folded_capacity;
    model_hashes_t   places;        /* from a gap to its index in folded */
} model_gaps_t;

typedef struct {
    model_request_t  **requests;
    uint64_t          *due;
    uint32_t           n;
    uint32_t           capacity;
    uint32_t           prefilling;  /* number of requests in prefill */
    uint64_t           next_due;    /* least of due[]; may be too early */
    uint64_t           context;     /* sum of progress of requests in decode */

    /* Valid while a step is formed. */
    uint32_t           granted;     /* this many first requests get tokens */
    int64_t            budget;      /* tokens that the step can still compute */
    int                is_preempted;
} model_batch_t;

/* See stuck.c.  Reset when a request arrives, ends or is removed. */
typedef struct {
    uint64_t  state;                /* of a step whose batch is empty */
    uint64_t  nstates;              /* number of such steps so far */
    uint64_t  steps;                /* such steps since a state recurred */
} model_stuck_t;

struct model_replica_s {
    const model_config_t  *config;
    model_hooks_t          hooks;
    void                  *data;

    int64_t                step_at_us;      /* MODEL_NEVER: no step is due */
    int64_t                step_end_us;
    int64_t                stalled_us;
    int64_t                ended_us;
    double                 slowness;
    uint64_t               step;            /* number of the next step */
    int64_t                gap_sum;         /* sum of the gaps of all steps */

    model_batch_t          batch;
    model_queue_t          queue;
    model_moments_t        pending;
    model_moments_t        deadlines;
    model_kv_t             kv;
    model_gaps_t           gaps;
    model_stuck_t          stuck;
    model_prefill_t       *prefills;        /* of this step; room for a whole
                                               batch */
    uint32_t              *decode_at;       /* if the model takes_each */
    uint32_t               reserved;        /* requests with reservations */
    model_counters_t       counters;
};


/* Tokens of a request that were computed before the next step. */
uint32_t model_progress(const model_replica_t *replica,
    const model_request_t *request);

/*
 * Forms the batch of the step at now_us.  0, or -1: memory ran out, and
 * kv.is_broken is set.
 */
int model_batch_form(model_replica_t *replica, int64_t now_us);

/* Schedules the first token of a request whose prompt has been computed. */
void model_batch_decode(model_replica_t *replica, model_request_t *request);

/* The next step in which the request needs more than a token. */
uint64_t model_batch_due(const model_replica_t *replica,
    const model_request_t *request);

/* What the request's progress will be at its end. */
uint32_t model_batch_last(const model_replica_t *replica,
    const model_request_t *request);

/* Fills in the request's last block as of the next step. */
void model_batch_fill(const model_replica_t *replica,
    model_request_t *request);

/*
 * Subtracts a request's sums and frees its blocks; leave: also removes it from
 * the batch.
 */
void model_batch_drop(model_replica_t *replica, model_request_t *request);
void model_batch_leave(model_replica_t *replica, uint32_t i);

/* Takes the step at now_us.  0, or -1: no memory. */
int model_step(model_replica_t *replica, int64_t now_us);

/*
 * To be called when the batch was formed and is empty although requests wait.
 */
void model_stuck_look(model_replica_t *replica);
void model_stuck_forget(model_replica_t *replica);

/* Updates the sums of a running request's gaps. */
void model_settle(const model_replica_t *replica, model_request_t *request);

/* Removes the request from all lists, and returns it to the caller. */
void model_end(model_replica_t *replica, model_request_t *request,
    model_end_t end, int64_t now_us, int64_t at_us);


/* Adds the gap of the step that was just taken.  0, or -1: no memory. */
int model_gaps_add(model_replica_t *replica, int64_t gap_us);

/*
 * Called when a request skips a step: takes note of its run of steps [first,
 * end).
 */
int model_gaps_break(model_gaps_t *gaps, model_request_t *request,
    uint64_t end);

/*
 * Called when a request has completed: counts the gaps of the steps that it was
 * in.
 */
void model_gaps_count(model_gaps_t *gaps, const model_request_t *request,
    uint64_t end);
void model_gaps_done(model_gaps_t *gaps);

#endif /* MODEL_REPLICA_INNER_H */
