
/*
 * The queue as a worker sees it: which of its claims wait, and whose turn it
 * is.  The order, over all workers, is in core/admission/queue.h.
 */

#ifndef _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_


#include "attempt/claim.h"


ngx_int_t ngx_http_llmgw_queue_init(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_queue_done(ngx_http_llmgw_pool_t *pool);

/* A claim of this worker waits in claim->ask.entry; has left that entry. */
void ngx_http_llmgw_queue_joined(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_queue_left(ngx_http_llmgw_claim_t *claim, uint32_t entry);

/* Wakes the worker in which the head waits, which may be this one. */
void ngx_http_llmgw_queue_tell(ngx_http_llmgw_pool_t *pool,
    const llmgw_wake_t *wake);

/*
 * How full the fleet is, as llmgw_queue defines it; 0 for `capacity`.
 * *is_known is 0 where no replica tells what that needs: nobody is held then.
 */
double ngx_http_llmgw_queue_saturation(ngx_http_llmgw_pool_t *pool,
    int *is_known);

/* The replicas' reports were read: they may hold the head no more. */
void ngx_http_llmgw_queue_facts(ngx_http_llmgw_pool_t *pool);

/* The view is another one: whoever waits for a standby may be served now. */
void ngx_http_llmgw_queue_news(ngx_http_llmgw_pool_t *pool);

/* The head claims, and the next, as long as they are of this worker. */
void ngx_http_llmgw_queue_run(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_ */
