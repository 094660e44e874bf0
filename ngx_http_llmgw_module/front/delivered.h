
/*
 * What the client has of a stream by now (proto/delivered.h), in its share of
 * llmgw_body_memory; and whether another replica can go on behind it.
 *
 * It is kept only where it can be needed: an engine that sends nothing but
 * plain tokens goes on by their number.
 */

#ifndef _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_
#define _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_


#include "core/resume.h"
#include "proto/delivered.h"

#include "fleet/body_memory.h"


/* mode is what llmgw_resume says.  NULL: no memory. */
llmgw_delivered_t *ngx_http_llmgw_delivered_create(ngx_pool_t *memory,
    ngx_http_llmgw_pool_t *pool, llmgw_resume_mode_t mode);

/*
 * How a stream of that many tokens goes on, from now until its end; with
 * BY_NOTHING *why says why not.  delivered may be NULL.
 */
llmgw_resume_by_t ngx_http_llmgw_delivered_resume(
    llmgw_delivered_t *delivered, ngx_uint_t tokens, ngx_uint_t choices,
    const char **why);


#endif /* _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_ */
