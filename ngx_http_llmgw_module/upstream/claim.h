
/*
 * A claim: a request that wants a replica for a key, and may wait for it.  The
 * answer is a lease, a place in the queue, or the reason why neither.
 */

#ifndef _NGX_HTTP_LLMGW_CLAIM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_CLAIM_H_INCLUDED_


#include "core/policy/pick.h"

#include "upstream/lease.h"


typedef struct ngx_http_llmgw_claim_s  ngx_http_llmgw_claim_t;


struct ngx_http_llmgw_claim_s {
    ngx_queue_t                   queue;        /* of the pool's waiting */
    ngx_http_llmgw_pool_t        *pool;
    uint64_t                      hash;
    ngx_array_t                   excluded;     /* of claim.c's own */
    uint64_t                      ticket;       /* 0: not asked yet */
    uint32_t                      entry;        /* in the queue, or NONE */
    void                        (*turn)(ngx_http_llmgw_claim_t *claim);

    ngx_msec_t                    joined_ms;    /* the queue */
    uint64_t                      resume_group; /* where it resumes */

    unsigned                      granted:1;    /* left the queue before */
    unsigned                      is_urgent:1;  /* tokens are out */
    unsigned                      to_line:1;    /* each has said: full */
    unsigned                      no_wait:1;    /* leased now, or never */
    unsigned                      is_last:1;    /* try: not where it failed */
    unsigned                      resumes:1;    /* in that group alone */
};


typedef enum {
    NGX_HTTP_LLMGW_LEASED = 0,
    NGX_HTTP_LLMGW_WAITS,
    NGX_HTTP_LLMGW_FULL,
    NGX_HTTP_LLMGW_ASIDE,           /* full but for those excluded */
    NGX_HTTP_LLMGW_OPEN,
    NGX_HTTP_LLMGW_EXCLUDED,        /* each has been tried */
    NGX_HTTP_LLMGW_NONE
} ngx_http_llmgw_claim_rc_t;


void ngx_http_llmgw_claim_init(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_pool_t *pool, uint64_t hash);
ngx_http_llmgw_claim_rc_t ngx_http_llmgw_claim(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_lease_t *lease, llmgw_route_t *route);
ngx_uint_t ngx_http_llmgw_claim_second(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *first, ngx_uint_t budget,
    ngx_http_llmgw_lease_t *lease);
void ngx_http_llmgw_claim_leave(ngx_http_llmgw_claim_t *claim);
ngx_uint_t ngx_http_llmgw_claim_waits_open(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_claim_exclude(ngx_http_llmgw_claim_t *claim,
    ngx_pool_t *pool, ngx_http_llmgw_replica_t *replica, ngx_uint_t failed);
void ngx_http_llmgw_claim_resume_as(ngx_http_llmgw_claim_t *claim,
    ngx_http_llmgw_replica_t *replica);
void ngx_http_llmgw_claim_clear_excluded(ngx_http_llmgw_claim_t *claim);


#endif /* _NGX_HTTP_LLMGW_CLAIM_H_INCLUDED_ */
