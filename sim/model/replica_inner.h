
/*
 * Shared by the parts of a replica.
 *
 *     replica.c   events: what is due, what comes in, what goes
 *     batch.c     which requests a step computes, and which tokens
 *     step.c      the step itself: its time, its tokens, who ends
 *     gaps.c      gaps between tokens
 *     stuck.c     whether anything will ever end
 *
 * Steps are numbered.  The requests of the batch are in order of their entry;
 * due[i] is the step in which request i needs more than one token: a block, its
 * block's name, its end.  Requests that prefill are due in each step.  So a
 * step that nobody is due in touches no request, and another one scans an array
 * of numbers.
 */

#ifndef MODEL_REPLICA_INNER_H
#define MODEL_REPLICA_INNER_H

#include "sim/model/kv.h"
#include "sim/model/queue.h"
#include "sim/model/replica.h"


#define DUE_ALWAYS  0               /* of prompts; steps begin with 1 */

/* A run of steps in which a request got a token each, and the one before. */
typedef struct {
    uint64_t  first, end;
    uint32_t  before;               /* number + 1; 0: none */
} model_span_t;

typedef struct {
    int64_t   gap_us;
    uint64_t  count;
} model_gap_t;

typedef struct {
    int64_t         *gaps_us;       /* of each step from `first` on */
    int32_t         *changes;       /* how many more got it than the one
                                       before, of those that completed */
    uint64_t         first;
    int64_t          before;        /* how many got the one before first */
    uint32_t         n, capacity;
    uint32_t         fold_at;       /* when so many are kept */
    model_span_t    *spans;
    uint32_t         nspans, spans_capacity;

    model_gap_t     *folded;        /* of steps before first, each gap once */
    uint32_t         nfolded, folded_capacity;
    model_hashes_t   places;        /* of gaps in folded */
} model_gaps_t;

typedef struct {
    model_request_t  **requests;
    uint64_t          *due;
    uint32_t           n;
    uint32_t           capacity;
    uint32_t           prefilling;  /* how many */
    uint64_t           next_due;    /* of all; may be too early */
    uint64_t           context;     /* progress of those in decode, summed */

    /* While a step is formed. */
    uint32_t           granted;     /* the first so many get tokens */
    int64_t            budget;      /* tokens that are left */
    int                is_preempted;
} model_batch_t;

/* See stuck.c; forgotten when a request comes in, ends or is taken away. */
typedef struct {
    uint64_t  state;                /* of a step without a batch */
    uint64_t  nstates;              /* such steps so far, */
    uint64_t  steps;                /* and since one's state came again */
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
    uint64_t               step;            /* the next one's number */
    int64_t                gap_sum;         /* of all steps */

    model_batch_t          batch;
    model_queue_t          queue;
    model_moments_t        pending;
    model_moments_t        deadlines;
    model_kv_t             kv;
    model_gaps_t           gaps;
    model_stuck_t          stuck;
    model_prefill_t       *prefills;        /* of this step; as many as the
                                               batch may hold */
    uint32_t              *decode_at;       /* likewise, if they are asked */
    uint32_t               reserved;        /* requests */
    model_counters_t       counters;
};


/* Tokens computed, before the step that is next. */
uint32_t model_progress(const model_replica_t *replica,
    const model_request_t *request);

/*
 * Forms the batch of the step at now_us.  0, or -1: no memory, and kv.is_broken
 * is set.
 */
int model_batch_form(model_replica_t *replica, int64_t now_us);

/* Schedules the first token of a request whose prompt has been computed. */
void model_batch_decode(model_replica_t *replica, model_request_t *request);

/* The step in which it needs more than a token. */
uint64_t model_batch_due(const model_replica_t *replica,
    const model_request_t *request);

/* What a request's progress will be at its end. */
uint32_t model_batch_last(const model_replica_t *replica,
    const model_request_t *request);

/* Extends its tail up to the next step. */
void model_batch_fill(const model_replica_t *replica,
    model_request_t *request);

/*
 * Subtracts a request's sums and frees its blocks; leave: also removes it from
 * the batch.
 */
void model_batch_drop(model_replica_t *replica, model_request_t *request);
void model_batch_leave(model_replica_t *replica, uint32_t i);

/* The step at now_us.  0, or -1: memory. */
int model_step(model_replica_t *replica, int64_t now_us);

/* After the batch was formed, and is empty though requests wait. */
void model_stuck_look(model_replica_t *replica);
void model_stuck_forget(model_replica_t *replica);

/* Its gaps so far, as far as it runs. */
void model_settle(const model_replica_t *replica, model_request_t *request);

/* The request is removed from all lists and returned to the caller. */
void model_end(model_replica_t *replica, model_request_t *request,
    model_end_t end, int64_t now_us, int64_t at_us);


/* The gap of the step that was taken.  0, or -1: memory. */
int model_gaps_add(model_replica_t *replica, int64_t gap_us);

/* A request skips a step: its run of steps [first, end) is noted. */
int model_gaps_break(model_gaps_t *gaps, model_request_t *request,
    uint64_t end);

/* A request completed: counts the steps that it was in. */
void model_gaps_count(model_gaps_t *gaps, const model_request_t *request,
    uint64_t end);
void model_gaps_done(model_gaps_t *gaps);

#endif /* MODEL_REPLICA_INNER_H */
