
/*
 * A request as a replica model sees it: how many tokens, not which ones.
 *
 * The caller owns the struct and what it points to, from
 * model_replica_arrive() until the hook `ended`, model_replica_remove() or
 * model_replica_crash() gives it back.  A struct that is zeroed and filled in
 * its first part is a new request.
 */

#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include <stddef.h>
#include <stdint.h>


#define MODEL_TOKENS_MAX  (1u << 30)    /* of a prompt, and of an answer */

typedef struct model_request_s  model_request_t;

typedef enum {
    MODEL_REQUEST_AWAY = 0,     /* at no replica */
    MODEL_REQUEST_RESERVED,     /* holds blocks, waits for its transfer */
    MODEL_REQUEST_PENDING,      /* arrived, and not yet in the queue */
    MODEL_REQUEST_QUEUED,
    MODEL_REQUEST_RUNNING
} model_request_state_t;

struct model_request_s {

    /* The caller's. */
    const char      *id;                /* breaks ties, as text */
    const uint64_t  *hashes;            /* of the full blocks of its tokens,
                                           each chained to those before it;
                                           not 0 */
    uint32_t         nhashes;           /* input_tokens / block_tokens of them;
                                           more, where answers are part of
                                           later prompts */
    uint32_t         input_tokens;
    uint32_t         output_tokens;     /* 0: ends with its prompt */
    uint32_t         max_output_tokens; /* declared; 0: not */
    int32_t          priority;          /* of the engine: less is more urgent */
    int64_t          arrival_us;        /* times are counted from it */
    int64_t          deadline_us;       /* absolute; 0: none */
    void            *data;

    /*
     * What became of it.  A preempted request starts again, but keeps the time
     * of its first token until it has another.
     */
    int64_t          scheduled_us;      /* when it last entered a batch */
    int64_t          ttft_us;           /* from arrival_us */
    int64_t          itl_sum_us;        /* of itl_count gaps; at the end */
    int64_t          e2e_us;            /* at the end; 0 unless it completed */
    uint32_t         itl_count;
    uint32_t         preemptions;
    uint8_t          has_first_token;   /* ever */
    uint8_t          is_length_capped;
    uint8_t          state;             /* model_request_state_t */

    /* The machine's; steps are numbered by the replica. */
    uint8_t          is_decode_only;    /* its prompt was computed elsewhere */
    uint8_t          is_prefilling;
    uint8_t          is_unchained;      /* its blocks do not begin with token
                                           0, so they get no names */
    uint32_t         moment;            /* its place in a heap */
    uint32_t         progress;          /* tokens computed, in prefill */
    uint32_t         target;            /* what progress will be */
    uint32_t         new_tokens;        /* of this step, in prefill */
    uint64_t         since;             /* in decode: progress is input_tokens
                                           + step - since */
    uint64_t         filled;            /* the step before which tail was so */
    uint32_t         tail;              /* tokens in the last block */
    uint32_t         nblocks;
    uint32_t         blocks_capacity;
    uint32_t        *blocks;
    int64_t          gap_base;          /* in decode: all gaps before its own */
    uint64_t         span;              /* in decode: first of the steps that
                                           it has been in since */
    uint32_t         spans;             /* and earlier such runs; 0: none */
};

#endif /* MODEL_REQUEST_H */
