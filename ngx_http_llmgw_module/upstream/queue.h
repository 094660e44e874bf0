
/*
 * The queue, over all workers: upstream/queue.c.  In a worker it is the list of
 * its own claims that wait, the head of which is told when it may go on.
 */

#ifndef _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_


#include "upstream/claim.h"


void ngx_http_llmgw_line_init(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_line_done(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_line_joined(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_line_left(ngx_http_llmgw_claim_t *claim);
void ngx_http_llmgw_line_wake(ngx_http_llmgw_pool_t *pool);
void ngx_http_llmgw_line_run(ngx_http_llmgw_pool_t *pool);


#endif /* _NGX_HTTP_LLMGW_QUEUE_H_INCLUDED_ */
