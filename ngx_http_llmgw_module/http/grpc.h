
/*
 * gRPC over a request of nginx's: its message, its deadline, and its answer.
 *
 * An answer is always HTTP 200; how the request ended stands in grpc-status.
 * One without a message is a single header block ("trailers-only").
 */

#ifndef _NGX_HTTP_LLMGW_HTTP_GRPC_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HTTP_GRPC_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "http/outcome.h"


/* The grpc-timeout in ms; 0: none, or beyond a year. */
ngx_msec_t ngx_http_llmgw_grpc_timeout(ngx_http_request_t *r);

/* The answer's headers, before its messages. */
ngx_int_t ngx_http_llmgw_grpc_headers(ngx_http_request_t *r);

/* What stands behind its messages: to be sent with the last of them. */
ngx_int_t ngx_http_llmgw_grpc_trailers(ngx_http_request_t *r,
    const llmgw_end_t *end);

/* Makes the headers, which are not sent yet, all of the answer. */
ngx_int_t ngx_http_llmgw_grpc_only(ngx_http_request_t *r,
    const llmgw_end_t *end);

/* That, and the request is finalized. */
void ngx_http_llmgw_grpc_answer(ngx_http_request_t *r,
    const llmgw_end_t *end);

/* One message and status OK, and the request is finalized. */
void ngx_http_llmgw_grpc_answer_message(ngx_http_request_t *r,
    const u_char *data, size_t len);


#endif /* _NGX_HTTP_LLMGW_HTTP_GRPC_H_INCLUDED_ */
