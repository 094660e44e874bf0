
/*
 * A claim: a request that wants a replica for a key, and may wait for it.  The
 * answer is a lease, a place in the queue, or the reason why neither
 * (core/admission/admission.h).
 */

#ifndef _NGX_HTTP_LLMGW_CLAIM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CLAIM_H_INCLUDED_


#include "attempt/lease.h"
#include "choice/log.h"


#define NGX_HTTP_LLMGW_MAX_EXCLUDED  64     /* further ones may be picked
                                               again */


typedef struct ngx_http_llmgw_claim_s  ngx_http_llmgw_claim_t;

struct ngx_http_llmgw_claim_s {
    llmgw_claim_t                 ask;          /* what, and how urgently */
    ngx_http_llmgw_pool_t        *pool;
    uint64_t                      model;        /* hash of its name; 0: the one
                                                   that all replicas serve */
    uint64_t                      base;         /* hash of the base model that
                                                   it is for; 0: any */
    uint64_t                     *blocks;       /* of its prompt, where the
                                                   policy reads prefixes; the
                                                   request's memory */
    uint32_t                      nblocks;
    ngx_http_llmgw_replica_t     *only;         /* alone may serve; NULL: any
                                                   may */
    uint64_t                      only_start_ms;    /* start of its process */
    uint32_t                      refusals;     /* by replicas that were full */
    ngx_array_t                  *excluded;     /* excluded.c's own type;
                                                   NULL: none was so far */
    ngx_http_llmgw_traced_t      *traced;       /* its owner sets the request's
                                                   id; NULL: not in the log */
    void                        (*turn)(ngx_http_llmgw_claim_t *claim);
};


/*
 * Memory for an ask; excluded has one element more, for the first attempt of a
 * hedge.
 */
typedef struct {
    llmgw_pushed_t                pushed;
    uint32_t                      excluded[NGX_HTTP_LLMGW_MAX_EXCLUDED + 1];
    uint32_t                      later[NGX_HTTP_LLMGW_MAX_EXCLUDED];
} ngx_http_llmgw_asked_t;


/* memory: the request's. */
void ngx_http_llmgw_claim_init(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, ngx_pool_t *memory, uint64_t hash);

/*
 * Only replicas that serve a model of this name, the engines' name, are leased.
 * Any may serve the base model, and a name that no replica reports: then the
 * engine decides whether it knows it.  No replica may serve it once the pool
 * has another base model.
 */
void ngx_http_llmgw_claim_model(ngx_http_llmgw_claim_t *claim,
    ngx_str_t *name);

/*
 * LEASED: *lease and *route are set.  WAITS: turn() will be called; claim
 * again then.  A refusal may be followed by a pause (llmgw_claim_pauses()).
 */
llmgw_admission_rc_t ngx_http_llmgw_claim(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_route_t *route);

/* A second replica beside the first, for a hedge.  1: leased. */
ngx_uint_t ngx_http_llmgw_claim_second(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *first, ngx_uint_t budget,
    ngx_http_llmgw_lease_t *lease);

/* Withdraws the claim; also valid for one that does not wait. */
void ngx_http_llmgw_claim_leave(ngx_http_llmgw_claim_t *claim);

/*
 * Withdraws the claim and moves it to another pool, for a name that this pool
 * serves.  The time in which it was held counts.
 */
void ngx_http_llmgw_claim_move(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, ngx_str_t *name);

/*
 * How long the claim may wait in all, and the outcome when that time is over.
 */
ngx_msec_t ngx_http_llmgw_claim_patience(ngx_http_llmgw_claim_t *claim);
llmgw_outcome_t ngx_http_llmgw_claim_expires(ngx_http_llmgw_claim_t *claim);

/* excluded.c: excludes a replica; failed: it has failed the claim's stream. */
void ngx_http_llmgw_claim_exclude(ngx_http_llmgw_claim_t *claim,
    ngx_pool_t *pool, ngx_http_llmgw_replica_t *replica, ngx_uint_t failed);

/* Only this replica may serve, and only this process of it. */
void ngx_http_llmgw_claim_only(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *replica);

/*
 * The replica has refused the claim as full: it is excluded, and gets this
 * claim no more within said_ms, even when exclusions are dropped
 * (llmgw_full_pushback_ms()).
 */
void ngx_http_llmgw_claim_push_back(ngx_http_llmgw_claim_t *claim,
    ngx_pool_t *pool, ngx_http_llmgw_replica_t *replica, int64_t said_ms,
    ngx_uint_t failed);

/*
 * The replica has delivered tokens: from now on only its resume group may
 * serve, and only with the same base model.
 */
void ngx_http_llmgw_claim_resume_as(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *replica);

/* At the claim's end: drops all that it has noted about replicas. */
void ngx_http_llmgw_claim_clear_excluded(ngx_http_llmgw_claim_t *claim);

/*
 * Drops exclusions; but_failed: except those of replicas that failed the claim.
 */
void ngx_http_llmgw_excluded_drop(ngx_http_llmgw_claim_t *claim,
    ngx_uint_t but_failed);

/*
 * For one call of core: sets the exclusions that it reads, as indexes of peers.
 */
void ngx_http_llmgw_excluded_set(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_asked_t *asked);


#endif /* _NGX_HTTP_LLMGW_CLAIM_H_INCLUDED_ */
