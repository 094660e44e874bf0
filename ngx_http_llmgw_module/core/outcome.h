
/*
 * How a request ended, in the gateway's own terms.  One table, in
 * http/outcome.c, maps each to gRPC and to HTTP; code that ends a request uses
 * neither of these.
 */

#ifndef LLMGW_OUTCOME_H
#define LLMGW_OUTCOME_H

#include <stddef.h>


/* Outcomes with a reason come first: counters are indexed by it. */
typedef enum {
    LLMGW_OUTCOME_SERVED = 0,
    LLMGW_OUTCOME_QUEUE_FULL,
    LLMGW_OUTCOME_QUEUE_TIMEOUT,
    LLMGW_OUTCOME_QUEUE_TTL,        /* it has waited too long */
    LLMGW_OUTCOME_QUEUE_SHED,       /* another request waits in its place */
    LLMGW_OUTCOME_NO_REPLICAS,
    LLMGW_OUTCOME_CIRCUITS_OPEN,
    LLMGW_OUTCOME_TRIES_EXHAUSTED,
    LLMGW_OUTCOME_NOT_RESUMABLE,    /* a stream broke off, and cannot
                                       continue */
    LLMGW_OUTCOME_REJECT_ALL,       /* by an admission rule, as the next two */
    LLMGW_OUTCOME_TOKEN_BUCKET,
    LLMGW_OUTCOME_TENANT_BUDGET,
    LLMGW_OUTCOME_GONE,             /* the client left before the end */
    LLMGW_OUTCOME_INVALID_KEY,      /* no valid key */
    LLMGW_OUTCOME_KEY_FORBIDS,      /* a native pass, which cannot apply its
                                       limits */
    LLMGW_OUTCOME_RATE_LIMIT,       /* of its account, as the next one */
    LLMGW_OUTCOME_QUOTA,
    LLMGW_OUTCOME_ACCOUNTS_FULL,    /* usage could not be counted */
    LLMGW_NREASONS,

    LLMGW_OUTCOME_DEADLINE = LLMGW_NREASONS,
    LLMGW_OUTCOME_BAD_REQUEST,
    LLMGW_OUTCOME_TOO_LARGE,
    LLMGW_OUTCOME_UNKNOWN_METHOD,   /* or one that is not supported */
    LLMGW_OUTCOME_NOT_FOUND,
    LLMGW_OUTCOME_INTERNAL,         /* ours: no memory */
    LLMGW_OUTCOME_REFUSED,          /* by a replica, in its own words */
    LLMGW_NOUTCOMES
} llmgw_outcome_t;


typedef struct {
    llmgw_outcome_t  outcome;
    int              status;        /* gRPC; only with REFUSED */
    int              pushback_ms;   /* 0: the outcome's default; -1: no retry
                                       can succeed */
    const char      *text;          /* for people; NULL: the outcome's
                                       default */
    size_t           text_len;
    int              http;          /* the engine's, with REFUSED; or 0 */
    const char      *body;          /* with http: OpenAI's error object */
    size_t           body_len;
} llmgw_end_t;


/*
 * The word for llmgw-reason, for logs and for the label of metrics; NULL: no
 * reason.
 */
const char *llmgw_outcome_reason(llmgw_outcome_t outcome);

/*
 * As llmgw_outcome_reason(), and a word for each other outcome: for usage
 * records.
 */
const char *llmgw_outcome_name(llmgw_outcome_t outcome);

/* One line for people; "" if there is none. */
const char *llmgw_outcome_text(llmgw_outcome_t outcome);

#endif /* LLMGW_OUTCOME_H */
