
/*
 * A worker's memory for requests and answers, llmgw_body_memory, as
 * core/body_memory.h counts it.  Metrics show the allocated bytes under the
 * pool.
 */

#ifndef _NGX_HTTP_LLMGW_BODY_MEMORY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_BODY_MEMORY_H_INCLUDED_


#include "fleet/pool.h"


/* NULL: no memory. */
llmgw_body_memory_t *ngx_http_llmgw_body_memory_create(
    ngx_http_llmgw_main_conf_t *lmcf, ngx_pool_t *pool);

/*
 * For answers and for what a resume needs.  NGX_DECLINED: the share has no room
 * for so many bytes, and none were taken.  What was taken has to be given back
 * once.
 */
ngx_int_t ngx_http_llmgw_body_memory_take(ngx_http_llmgw_pool_t *pool,
    llmgw_share_t share, size_t bytes);
void ngx_http_llmgw_body_memory_give(ngx_http_llmgw_pool_t *pool,
    llmgw_share_t share, size_t bytes);

/* The holder of a request, whose client is known by the directive's key. */
void ngx_http_llmgw_body_memory_holder(ngx_http_request_t *r,
    ngx_http_llmgw_pool_t *pool, llmgw_holder_t *holder,
    void (*end)(llmgw_holder_t *holder));

/*
 * The request holds that many bytes from now on; 0 at its end.  NGX_DECLINED:
 * there is no room for more, and nothing changed.
 */
ngx_int_t ngx_http_llmgw_body_memory_hold(ngx_http_llmgw_pool_t *pool,
    llmgw_holder_t *holder, size_t bytes);

/* A body was ended while it was read, to make room for another one. */
void ngx_http_llmgw_body_memory_ended(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_BODY_MEMORY_H_INCLUDED_ */
