
/*
 * The delivered part of a stream (proto/delivered.h), in its share of
 * llmgw_body_memory; and whether another replica can continue after it.
 *
 * It is stored only if it can be needed: an engine that sends only plain tokens
 * continues by their number.
 */

#ifndef _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_
#define _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_


#include "core/resume.h"
#include "proto/delivered.h"

#include "fleet/body_memory.h"


/* mode: llmgw_resume_mode_t, of llmgw_resume.  NULL: no memory. */
llmgw_delivered_t *ngx_http_llmgw_delivered_create(ngx_pool_t *memory,
    ngx_http_llmgw_pool_t *pool, llmgw_resume_mode_t mode);

/*
 * How a stream with that many tokens can be resumed; with BY_NOTHING, *why is
 * set to the reason.  delivered may be NULL.
 */
llmgw_resume_by_t ngx_http_llmgw_delivered_resume(
    llmgw_delivered_t *delivered, ngx_uint_t tokens, ngx_uint_t choices,
    const char **why);


#endif /* _NGX_HTTP_LLMGW_DELIVERED_H_INCLUDED_ */
