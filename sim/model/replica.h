
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
 * next event is due, and has it done by model_replica_step(), in virtual time
 * or in real time.  At equal times requests enter the queue first, then a step
 * is taken, then deadlines expire.
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
    MODEL_LENGTH_CAPPED,        /* completed, but by max_model_len */
    MODEL_TIMED_OUT_RUNNING,
    MODEL_TIMED_OUT_QUEUED,
    MODEL_PAST_DUE,             /* its deadline was over when it was queued */
    MODEL_UNSERVABLE            /* does not fit max_model_len or the blocks */
} model_end_t;

/*
 * Each may be NULL.  A hook may call model_replica_arrive(), and nothing else
 * of the replica.  Times are absolute.
 */
typedef struct {
    /* It entered the batch; again after each preemption. */
    void  (*scheduled)(void *data, model_request_t *request, int64_t now_us);

    /* Its first token leaves at at_us; again after a preemption. */
    void  (*first_token)(void *data, model_request_t *request, int64_t at_us);

    /* Each of the others; makes steps cost as much as they have requests. */
    void  (*token)(void *data, model_request_t *request, int64_t at_us);

    /* Its tokens are discarded, and it is queued again. */
    void  (*preempted)(void *data, model_request_t *request, int64_t now_us);

    /*
     * The request is the caller's again.  at_us is when its last step ends;
     * if it did not complete, that is now_us.
     */
    void  (*ended)(void *data, model_request_t *request, model_end_t end,
                   int64_t now_us, int64_t at_us);
} model_hooks_t;

typedef struct {
    uint32_t  queue_depth;
    uint32_t  batch_size;
    uint32_t  pending;                  /* arrived, and not yet queued */
    uint32_t  total_blocks;
    uint32_t  free_blocks;              /* cached ones that nobody uses, too */
} model_facts_t;

typedef struct {
    uint64_t  completed;                /* length-capped ones too */
    uint64_t  length_capped;
    uint64_t  timed_out;
    uint64_t  unservable;
    uint64_t  preemptions;
    uint64_t  kv_failures;              /* no block for the last token */
    uint64_t  hits;                     /* blocks found in the cache */
    uint64_t  misses;                   /* blocks taken anew */
    uint64_t  prompt_blocks;            /* full ones of prompts in a batch, */
    uint64_t  prompt_hits;              /* and those of them in the cache */
    uint64_t  input_tokens;             /* of requests that were queued */
    uint64_t  output_tokens;            /* of those that completed */
    uint64_t  steps;
    uint64_t  queue_sum;                /* queue_depth, summed over steps */
    int64_t   ttft_sum_us;              /* of those that completed */
    uint64_t  blocks_peak;
    double    block_us;                 /* blocks in use x time */
} model_counters_t;


/* NULL: memory.  config outlives it; hooks are copied, and may be NULL. */
model_replica_t *model_replica_create(const model_config_t *config,
    const model_hooks_t *hooks, void *data);

/* Requests that it still has are returned to the caller, without a hook. */
void model_replica_destroy(model_replica_t *replica);

/*
 * A request comes in.  now_us is not before any event that was done.  0, or -1:
 * memory.
 */
int model_replica_arrive(model_replica_t *replica, model_request_t *request,
    int64_t now_us);

/* When the next event is due: MODEL_NEVER, none. */
int64_t model_replica_next(const model_replica_t *replica);

/* Does the next event.  0, or -1: memory ran out, the replica is useless. */
int model_replica_step(model_replica_t *replica);

/*
 * How many steps ago it was found out that no request will end any more, unless
 * one comes in or is taken away: those that wait preempt themselves for ever,
 * because requests behind them hold KV blocks, or because one outgrows all
 * blocks.  0: one may end.  (BLIS would run for ever.)
 */
uint64_t model_replica_stuck(const model_replica_t *replica);

/*
 * Takes a request away, whatever its state: evicted, or its client has gone.
 * Its times are those measured so far.
 */
void model_replica_remove(model_replica_t *replica, model_request_t *request);

/*
 * The replica dies: it has no requests, an empty cache, and no event due.
 * `lost` gets each request: the batch first, then the queue, then the pending.
 */
void model_replica_crash(model_replica_t *replica,
    void (*lost)(void *data, model_request_t *request), void *data);

/* No step begins before until_us; the one that runs ends as it would. */
void model_replica_stall(model_replica_t *replica, int64_t until_us);

/* Steps take `factor` times the model's time. */
void model_replica_slow(model_replica_t *replica, double factor);


/*
 * Disaggregation.  Blocks for a prompt that is computed elsewhere: 0, or -1 if
 * there are not enough.  Then, when its KV cache has come,
 * model_replica_arrive_decode() queues the request at once;
 * or model_replica_remove() gives the blocks back.
 */
int model_replica_reserve(model_replica_t *replica, model_request_t *request);
int model_replica_arrive_decode(model_replica_t *replica,
    model_request_t *request, int64_t now_us);


void model_replica_facts(const model_replica_t *replica, model_facts_t *facts);
void model_replica_counters(const model_replica_t *replica,
    model_counters_t *counters);

/* When the last event was, ends of requests included. */
int64_t model_replica_ended(const model_replica_t *replica);

/* How many blocks from the first are cached, now and in the frozen view. */
uint32_t model_replica_cached(const model_replica_t *replica,
    const uint64_t *hashes, uint32_t n);
uint32_t model_replica_viewed(const model_replica_t *replica,
    const uint64_t *hashes, uint32_t n);

/* Tokens of its answer so far, those of the step that runs included. */
uint32_t model_replica_tokens(const model_replica_t *replica,
    const model_request_t *request);

/* The step that runs ends then; the last one did, if none runs. */
int64_t model_replica_step_end(const model_replica_t *replica);

/*
 * Each gap between tokens of requests that completed, with how often it was.
 * A gap may come more than once.
 */
void model_replica_gaps(const model_replica_t *replica,
    void (*gap)(void *data, int64_t gap_us, uint64_t count), void *data);

/*
 * Checks all data: 0 if blocks, queue and batch are consistent (used + free =
 * total, references = holders), or -1 and one line.
 */
int model_replica_check(const model_replica_t *replica, char *error,
    size_t bytes);

#endif /* MODEL_REPLICA_H */
