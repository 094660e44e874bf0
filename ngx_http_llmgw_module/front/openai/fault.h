
/*
 * Errors as OpenAI's API has them: an HTTP status, a JSON object, and headers
 * that tell its clients whether to try again (core/openai/error.h).
 */

#ifndef _NGX_HTTP_LLMGW_OPENAI_ERROR_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OPENAI_ERROR_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "core/openai/body.h"
#include "core/outcome.h"


/* What ngx_http_llmgw_openai_error_write() writes at most. */
#define NGX_HTTP_LLMGW_OPENAI_ERROR_BYTES                                     \
    (6 * sizeof(llmgw_openai_error_t) + 256)


/* How a stream ended, as an error. */
void ngx_http_llmgw_openai_error_of_end(llmgw_openai_error_t *error,
    const llmgw_end_t *end);

/* Writes {"error": {...}}, and returns its end. */
u_char *ngx_http_llmgw_openai_error_write(u_char *p,
    const llmgw_openai_error_t *error);

/*
 * The error object that an engine gave, in the form {"error": {...}}: as it
 * is, or with that level added, or made of a text that is no such object.
 * NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_llmgw_openai_error_shape(ngx_pool_t *pool,
    ngx_uint_t status, const ngx_str_t *said, ngx_str_t *body);

/*
 * Adds the headers that go with an error: when to try again, or not to.
 * pushback_ms: as llmgw_end_t has it; 0: what clients do at that status.
 */
ngx_int_t ngx_http_llmgw_openai_error_headers(ngx_http_request_t *r,
    ngx_uint_t status, int pushback_ms);


#endif /* _NGX_HTTP_LLMGW_OPENAI_ERROR_H_INCLUDED_ */
