
/*
 * Where a stream's bytes lie, among nginx's own of the request.
 */

#ifndef _NGX_HTTP_LLMGW_MEMORY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_MEMORY_H_INCLUDED_


#include "conf/conf.h"


/* Servers with an llmgw_pass get their request_pool_size. */
void ngx_http_llmgw_memory_conf(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);


void ngx_http_llmgw_memory_lend(ngx_http_request_t *r);
void *ngx_http_llmgw_memory_alloc(ngx_http_request_t *r, size_t size);


#endif /* _NGX_HTTP_LLMGW_MEMORY_H_INCLUDED_ */
