
/*
 * A request's body, which nginx holds in memory, in several buffers, or in a
 * temporary file.
 */

#ifndef _NGX_HTTP_LLMGW_BODY_H_INCLUDED_
#define _NGX_HTTP_LLMGW_BODY_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>


/*
 * Its first bytes, at most limit of them, in one piece: where they lie, or a
 * copy.  NGX_ERROR: no memory, or the file could not be read.
 */
ngx_int_t ngx_http_llmgw_body_bytes(ngx_http_request_t *r, size_t limit,
    ngx_str_t *body);

/* Gives back what nginx holds of it, and body as it was had above. */
void ngx_http_llmgw_body_free(ngx_http_request_t *r, ngx_str_t *body);


#endif /* _NGX_HTTP_LLMGW_BODY_H_INCLUDED_ */
