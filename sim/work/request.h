
/*
 * A workload: the requests that are sent to a simulated fleet.
 *
 * It is made from a trace, or drawn.  Requests never move, so a pointer to one
 * stays valid while sessions append their later rounds (session.h).
 *
 * No token has a value here.  Only the common beginning of two prompts' tokens
 * matters, and that follows from their origin: a prompt is the prefix of its
 * group, and then its own body.  So a block of tokens is named by its origin
 * and its position, and the hash of a block is that name, mixed.  Two requests
 * have equal hashes exactly as long as BLIS's requests have equal tokens: a
 * prefix's blocks are equal in its whole group, a body's only in the rounds of
 * a session that accumulates its context (each round begins with all the tokens
 * of the last one, and with its answer but for the last token).  A block with
 * tokens of both belongs to the body.
 */

#ifndef WORK_REQUEST_H
#define WORK_REQUEST_H

#include <stddef.h>
#include <stdint.h>

#include "sim/work/arena.h"
#include "sim/work/name.h"


/* More requests than this are a mistake in a file. */
#define WORK_MAX_REQUESTS  10000000
#define WORK_MAX_TOKENS    (1 << 24)        /* of one prompt or answer */
#define WORK_MAX_US        (INT64_C(1) << 53)

typedef struct work_sessions_s  work_sessions_t;

typedef struct {
    const char         *id;             /* "request_0" */
    uint32_t            index;          /* its index in the workload */
    uint32_t            round;          /* in its session, from 0 */

    /* Names are never NULL; an absent one is "", with id 0. */
    const work_name_t  *client;
    const work_name_t  *tenant;
    const work_name_t  *slo_class;
    const work_name_t  *model;
    const work_name_t  *session;
    const work_name_t  *prefix_group;
    const work_name_t  *adapter;

    uint32_t            prefix_tokens;  /* length of the prefix in the prompt */
    uint32_t            prefix_length;  /* as the trace has it; only printed */
    uint32_t            input_tokens;   /* of the prompt, prefix included */
    uint32_t            output_tokens;  /* actual length of the answer */
    uint32_t            max_output_tokens;  /* declared; 0: none */
    int32_t             priority;       /* the trace's vllm_priority */

    int64_t             arrival_us;     /* when it arrives at the gateway */
    int64_t             deadline_us;    /* absolute; 0: none */
    int64_t             slo_target_us;  /* of its first token; 0: none */
    int64_t             think_time_us;  /* before it, as the trace has it */

    uint64_t            prefix_origin;  /* of the blocks' hashes */
    uint64_t            body_origin;
    uint32_t            kept_tokens;    /* of prompt and answer: the beginning
                                           of its session's next round */

    uint32_t            text_tokens;    /* only printed */
    uint32_t            image_tokens;
    uint32_t            audio_tokens;
    uint32_t            video_tokens;
    double              reason_ratio;
    uint8_t             streaming;
} work_request_t;

#define WORK_PAGE_SHIFT  12
#define WORK_PAGE        (1u << WORK_PAGE_SHIFT)

typedef struct {
    size_t             n;               /* requests so far */
    work_request_t   **pages;
    size_t             npages;
    size_t             max_pages;
    work_names_t       names;
    work_arena_t       arena;           /* for ids, and sessions' plans */
    work_sessions_t   *sessions;        /* NULL: the requests are complete */
    int                accumulates;     /* a session's rounds share tokens */
} work_t;

void work_init(work_t *work);
void work_done(work_t *work);

/* Appends a new request: zeroed, names "", index set. */
work_request_t *work_add(work_t *work);

/* The request with that index; i < work->n. */
static inline work_request_t *
work_at(const work_t *work, size_t i)
{
    return &work->pages[i >> WORK_PAGE_SHIFT][i & (WORK_PAGE - 1)];
}

/* Sets id to "request_N"; the text lives in the workload's arena. */
void work_set_id(work_t *work, work_request_t *r, int64_t number);

/*
 * Sets the origins of a request's blocks, from its lengths, prefix_group,
 * session and index.  accumulates: all rounds of its session have one body.
 */
void work_set_origin(work_request_t *r, int accumulates);

/*
 * The hash of block b, which holds the tokens from b * block_tokens on.  b may
 * be after the prompt: the answer's tokens follow it.  Only whole blocks have a
 * defined hash, and only hashes made with the same block_tokens may be
 * compared.
 */
uint64_t work_block_hash(const work_request_t *r, uint32_t block_tokens,
    uint32_t b);

/*
 * Computes hashes of the prompt's whole blocks, at most max; returns how many.
 */
uint32_t work_block_hashes(const work_request_t *r, uint32_t block_tokens,
    uint64_t *hashes, uint32_t max);

#endif /* WORK_REQUEST_H */
