
/*
 * gRPC over a request of nginx's: its message, its deadline, and its answer.
 *
 * An answer is always HTTP 200; grpc-status says how the request ended.  An
 * answer without a message is a single header block ("trailers-only").
 */

#ifndef _NGX_HTTP_LLMGW_HTTP_GRPC_H_INCLUDED_
#define _NGX_HTTP_LLMGW_HTTP_GRPC_H_INCLUDED_


#include <ngx_config.h>
#include <ngx_core.h>
#include <ngx_http.h>

#include "http/outcome.h"


/* The request's grpc-timeout in ms; 0: it has none, or a year or more. */
ngx_msec_t ngx_http_llmgw_grpc_timeout(ngx_http_request_t *r);

/* Sends the answer's headers, before its messages. */
ngx_int_t ngx_http_llmgw_grpc_headers(ngx_http_request_t *r);

/* Adds the trailers, which nginx sends after the last message. */
ngx_int_t ngx_http_llmgw_grpc_trailers(ngx_http_request_t *r,
    const llmgw_end_t *end);

/* Makes a trailers-only answer of the headers, and does not send it. */
ngx_int_t ngx_http_llmgw_grpc_only(ngx_http_request_t *r,
    const llmgw_end_t *end);

/*
 * Sends a trailers-only answer: _send() returns the code to finalize the
 * request with, _answer() also finalizes it.
 */
ngx_int_t ngx_http_llmgw_grpc_send(ngx_http_request_t *r,
    const llmgw_end_t *end);
void ngx_http_llmgw_grpc_answer(ngx_http_request_t *r,
    const llmgw_end_t *end);

/* Answers with one message and status OK, and finalizes the request. */
void ngx_http_llmgw_grpc_answer_message(ngx_http_request_t *r,
    const u_char *data, size_t len);


#endif /* _NGX_HTTP_LLMGW_HTTP_GRPC_H_INCLUDED_ */
