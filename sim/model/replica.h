
/*
 * One replica of an inference engine, as a machine with events.
 *
 * It batches as vLLM does: each step takes running requests first, then the
 * queue's head as long as sequences, tokens and KV blocks allow; prompts are
 * computed in chunks; a request that finds no block preempts another one, which
 * starts again.  The semantics are BLIS's (inference-sim), to the microsecond,
 * with its quirks: a request that ends does so at the START of its last step,
 * though its times count that step.
 *
 * There is no clock and no I/O.  The caller asks model_replica_next() when the
 * next event is due, and handles it by model_replica_step(), in virtual time or
 * in real time.  At equal times requests enter the queue first, then a step is
 * taken, then deadlines expire.
 *
 * The cost of a step is proportional to its changes.  A decoding request is
 * touched only when it needs a block, ends, is preempted or times out; its
 * progress and the sum of its gaps are differences of the replica's own sums.
 */

#ifndef MODEL_REPLICA_H
#define MODEL_REPLICA_H

#include <stddef.h>
#include <stdint.h>

#include "sim/model/config.h"
#include "sim/model/request.h"


#define MODEL_NEVER  INT64_MAX

typedef struct model_replica_s  model_replica_t;

typedef enum {
    MODEL_COMPLETED = 0,
    MODEL_LENGTH_CAPPED,        /* completed, cut off at max_model_len */
    MODEL_TIMED_OUT_RUNNING,
    MODEL_TIMED_OUT_QUEUED,
    MODEL_PAST_DUE,             /* its deadline had passed when it was queued */
    MODEL_UNSERVABLE            /* does not fit max_model_len or the blocks */
} model_end_t;

/*
 * Callbacks; each may be NULL.  The only function of the replica that they may
 * call is model_replica_arrive().  Times are absolute.
 */
typedef struct {
    /* The request entered the batch; called again after each preemption. */
    void  (*scheduled)(void *data, model_request_t *request, int64_t now_us);

    /* Its first token leaves at at_us; called again after a preemption. */
    void  (*first_token)(void *data, model_request_t *request, int64_t at_us);

    /*
     * Called for each later token.  If it is set, a step costs as much as it
     * has requests.
     */
    void  (*token)(void *data, model_request_t *request, int64_t at_us);

    /* The request lost its tokens, and is queued again. */
    void  (*preempted)(void *data, model_request_t *request, int64_t now_us);

    /*
     * The request belongs to the caller again.  at_us is the end of its last
     * step, or now_us if it did not complete.
     */
    void  (*ended)(void *data, model_request_t *request, model_end_t end,
                   int64_t now_us, int64_t at_us);
} model_hooks_t;

typedef struct {
    uint32_t  queue_depth;
    uint32_t  batch_size;
    uint32_t  pending;                  /* arrived, but not yet queued */
    uint32_t  total_blocks;
    uint32_t  free_blocks;              /* including unused cached ones */
} model_facts_t;

typedef struct {
    uint64_t  completed;                /* including length-capped ones */
    uint64_t  length_capped;
    uint64_t  timed_out;
    uint64_t  unservable;
    uint64_t  preemptions;
    uint64_t  kv_failures;              /* last token got no block */
    uint64_t  hits;                     /* blocks found in the cache */
    uint64_t  misses;                   /* blocks taken anew */
    uint64_t  prompt_blocks;            /* full blocks of prompts in a batch */
    uint64_t  prompt_hits;              /* those of them that were cached */
    uint64_t  input_tokens;             /* of requests that entered the queue */
    uint64_t  output_tokens;            /* of requests that completed */
    uint64_t  steps;
    uint64_t  queue_sum;                /* queue_depth, summed over steps */
    int64_t   ttft_sum_us;              /* of requests that completed */
    uint64_t  blocks_peak;
    double    block_us;                 /* sum of blocks in use x us */
} model_counters_t;


/*
 * NULL: no memory.  config must outlive the replica; hooks is copied, and may
 * be NULL.
 */
model_replica_t *model_replica_create(const model_config_t *config,
    const model_hooks_t *hooks, void *data);

/*
 * Requests that the replica still has belong to the caller again; no hook is
 * called.
 */
void model_replica_destroy(model_replica_t *replica);

/*
 * Gives the replica a request.  now_us must not be before an event that was
 * handled.  0, or -1: no memory.
 */
int model_replica_arrive(model_replica_t *replica, model_request_t *request,
    int64_t now_us);

/* When the next event is due; MODEL_NEVER if none is. */
int64_t model_replica_next(const model_replica_t *replica);

/*
 * Handles the next event.  0, or -1: memory ran out, and the replica must not
 * be used any more.
 */
int model_replica_step(model_replica_t *replica);

/*
 * Whether no request will end any more unless one arrives or is removed:
 * waiting requests preempt themselves for ever, because requests behind them
 * hold KV blocks, or because one needs more than all blocks.  Returns how many
 * steps ago this was found out; 0: a request may still end.  (BLIS would run
 * for ever.)
 */
uint64_t model_replica_stuck(const model_replica_t *replica);

/*
 * Removes a request in any state, as one that is evicted or whose client has
 * gone.  Its times are those measured so far.
 */
void model_replica_remove(model_replica_t *replica, model_request_t *request);

/*
 * The replica dies: it loses its requests and its cache, and no event is due.
 * `lost` is called for each request: the batch first, then the queue, then
 * those pending.
 */
void model_replica_crash(model_replica_t *replica,
    void (*lost)(void *data, model_request_t *request), void *data);

/* No step begins before until_us; a step that runs ends as planned. */
void model_replica_stall(model_replica_t *replica, int64_t until_us);

/* From now on a step takes `factor` times the model's time. */
void model_replica_slow(model_replica_t *replica, double factor);


/*
 * Disaggregation.  model_replica_reserve() takes blocks for a prompt that is
 * computed elsewhere: 0, or -1 if too few are free.  When its KV cache has
 * come, model_replica_arrive_decode() queues the request at once;
 * model_replica_remove() gives the blocks back instead.
 */
int model_replica_reserve(model_replica_t *replica, model_request_t *request);
int model_replica_arrive_decode(model_replica_t *replica,
    model_request_t *request, int64_t now_us);


void model_replica_facts(const model_replica_t *replica, model_facts_t *facts);
void model_replica_counters(const model_replica_t *replica,
    model_counters_t *counters);

/* When the last event was; the end of a request counts as one. */
int64_t model_replica_ended(const model_replica_t *replica);

/*
 * How many blocks, from the first on, are cached: now, and in the frozen view.
 */
uint32_t model_replica_cached(const model_replica_t *replica,
    const uint64_t *hashes, uint32_t n);
uint32_t model_replica_viewed(const model_replica_t *replica,
    const uint64_t *hashes, uint32_t n);

/*
 * Number of tokens of the request's answer, those of the running step included.
 */
uint32_t model_replica_tokens(const model_replica_t *replica,
    const model_request_t *request);

/* When the running step ends; if none runs, when the last one ended. */
int64_t model_replica_step_end(const model_replica_t *replica);

/*
 * Calls the callback for gaps between tokens of completed requests, with how
 * often each occurred.  The same gap may be reported more than once.
 */
void model_replica_gaps(const model_replica_t *replica,
    void (*gap)(void *data, int64_t gap_us, uint64_t count), void *data);

/*
 * Checks all data.  0 if blocks, queue and batch are consistent (used + free =
 * total, references = holders), or -1 and one line in error.
 */
int model_replica_check(const model_replica_t *replica, char *error,
    size_t bytes);

#endif /* MODEL_REPLICA_H */
