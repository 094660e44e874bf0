
/*
 * A stream's memory: unused parts of what nginx allocates for the request.
 */

#ifndef _NGX_HTTP_LLMGW_MEMORY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_MEMORY_H_INCLUDED_


#include "conf/conf.h"


/* Raises request_pool_size for servers with an llmgw_pass. */
void ngx_http_llmgw_memory_conf(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);

/* Lends the unused ends of the request's header lists to its pool. */
void ngx_http_llmgw_memory_lend(ngx_http_request_t *r);

/*
 * Memory that lives as long as the request's pool, aligned for any type.
 * NULL: no memory.
 */
void *ngx_http_llmgw_memory_alloc(ngx_http_request_t *r, size_t size);


#endif /* _NGX_HTTP_LLMGW_MEMORY_H_INCLUDED_ */
