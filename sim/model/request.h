
/*
 * A request as a replica model sees it: how many tokens, not which ones.
 *
 * The caller provides the struct and what it points to, and leaves both to the
 * replica from model_replica_arrive() until the hook `ended`,
 * model_replica_remove() or model_replica_crash() gives them back.  A struct
 * that is zeroed and filled in its first part is a new request.
 */

#ifndef MODEL_REQUEST_H
#define MODEL_REQUEST_H

#include <stddef.h>
#include <stdint.h>


#define MODEL_TOKENS_MAX  (1u << 30)    /* of a prompt, or of an answer */

typedef struct model_request_s  model_request_t;

typedef enum {
    MODEL_REQUEST_AWAY = 0,     /* no replica has it */
    MODEL_REQUEST_RESERVED,     /* holds blocks, and waits for its transfer */
    MODEL_REQUEST_PENDING,      /* arrived, but not yet in the queue */
    MODEL_REQUEST_QUEUED,
    MODEL_REQUEST_RUNNING
} model_request_state_t;

struct model_request_s {

    /* Set by the caller. */
    const char      *id;                /* breaks ties, as text */
    const uint64_t  *hashes;            /* one for each full block of its
                                           tokens, chained to those before it;
                                           never 0 */
    uint32_t         nhashes;           /* input_tokens / block_tokens, or more
                                           if answers are part of later
                                           prompts */
    uint32_t         input_tokens;
    uint32_t         output_tokens;     /* 0: it ends with its prompt */
    uint32_t         max_output_tokens; /* declared; 0: not declared */
    int32_t          priority;          /* for engines: less is more urgent */
    int64_t          arrival_us;        /* origin of its relative times */
    int64_t          deadline_us;       /* absolute; 0: none */
    void            *data;

    /*
     * What happened to the request.  One that is preempted starts again, but
     * keeps the time of its first token until it has another.
     */
    int64_t          scheduled_us;      /* when it last entered a batch */
    int64_t          ttft_us;           /* from arrival_us */
    int64_t          itl_sum_us;        /* of itl_count gaps; set at its end */
    int64_t          e2e_us;            /* at its end; 0: not completed */
    uint32_t         itl_count;
    uint32_t         preemptions;
    uint8_t          has_first_token;   /* also from before a preemption */
    uint8_t          is_length_capped;
    uint8_t          state;             /* model_request_state_t */

    /* Used by the replica, which numbers its steps. */
    uint8_t          is_decode_only;    /* its prompt was computed elsewhere */
    uint8_t          is_prefilling;
    uint8_t          is_unchained;      /* its blocks do not begin with token
                                           0, so they get no names */
    uint32_t         moment;            /* its index in a heap of moments */
    uint32_t         progress;          /* tokens computed, while it prefills */
    uint32_t         target;            /* progress at the end of its prefill */
    uint32_t         new_tokens;        /* of this step, while it prefills */
    uint64_t         since;             /* in decode: progress is input_tokens
                                           + step - since */
    uint64_t         filled;            /* the step before which tail is so */
    uint32_t         tail;              /* tokens in the last block */
    uint32_t         nblocks;
    uint32_t         blocks_capacity;
    uint32_t        *blocks;
    int64_t          gap_base;          /* decoding: sum of gaps before */
    uint64_t         span;              /* in decode: first step of the current
                                           run of steps */
    uint32_t         spans;             /* index of earlier runs + 1, or 0 */
};

#endif /* MODEL_REQUEST_H */
