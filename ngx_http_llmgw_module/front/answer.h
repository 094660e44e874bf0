
/*
 * Answers in gRPC: headers, trailers, and whole responses without a stream.
 */

#ifndef _NGX_HTTP_LLMGW_ANSWER_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ANSWER_H_INCLUDED_


#include "conf/conf.h"
#include "proto/grpc/session.h"


ngx_int_t ngx_http_llmgw_answer_init(ngx_conf_t *cf);
void ngx_http_llmgw_answer_text(ngx_http_request_t *r,
    llmgw_grpc_status_t status, const char *text);
u_char *ngx_http_llmgw_answer_prefix(u_char *p, size_t len);
void ngx_http_llmgw_answer(ngx_http_request_t *r, llmgw_grpc_status_t status,
    const char *reason, ngx_str_t *message);
void ngx_http_llmgw_answer_message(ngx_http_request_t *r, u_char *data,
    size_t len);
ngx_int_t ngx_http_llmgw_answer_headers(ngx_http_request_t *r);
ngx_int_t ngx_http_llmgw_answer_trailers(ngx_http_request_t *r,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message);


#endif /* _NGX_HTTP_LLMGW_ANSWER_H_INCLUDED_ */
