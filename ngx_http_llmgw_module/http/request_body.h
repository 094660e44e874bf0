
/*
 * A request's body, which nginx holds in memory, in several buffers, or in a
 * temporary file.
 */

#ifndef _NGX_HTTP_LLMGW_REQUEST_BODY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_REQUEST_BODY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/openai/body.h"


/* Uses malloc(), since threads read bodies, too. */
extern const llmgw_openai_memory_t  ngx_http_llmgw_body_heap;

/*
 * Sets body to its first bytes, at most limit of them, in one piece: where
 * nginx has them in memory, or a copy in the request's pool.  NGX_ERROR: no
 * memory, or the file could not be read.
 */
ngx_int_t ngx_http_llmgw_body_bytes(ngx_http_request_t *r, size_t limit,
    ngx_str_t *body);

/*
 * Frees nginx's buffers and temporary file, and body, which is what
 * ngx_http_llmgw_body_bytes() returned.
 */
void ngx_http_llmgw_body_free(ngx_http_request_t *r, ngx_str_t *body);


#endif /* _NGX_HTTP_LLMGW_REQUEST_BODY_H_INCLUDED_ */
