
/*
 * The client's end, over gRPC: front.c and body.c take a request in, output.c,
 * cork.c and answer.c send what comes of it.
 */

#ifndef _NGX_HTTP_LLMGW_FRONT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_FRONT_H_INCLUDED_


ngx_int_t ngx_http_llmgw_front_handler(ngx_http_request_t *r);
ngx_table_elt_t *ngx_http_llmgw_front_find_header(ngx_http_request_t *r,
    const char *name, size_t len);

ngx_int_t ngx_http_llmgw_output_append(ngx_http_llmgw_stream_t *stream,
    const u_char *message, size_t len);
ngx_int_t ngx_http_llmgw_output_flush(ngx_http_llmgw_stream_t *stream);
ngx_uint_t ngx_http_llmgw_output_is_sent(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_output_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message);
void ngx_http_llmgw_output_write_handler(ngx_http_request_t *r);

ngx_int_t ngx_http_llmgw_body_message(ngx_http_request_t *r,
    ngx_str_t *message);
void ngx_http_llmgw_body_free(ngx_http_request_t *r, ngx_str_t *message);

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

/* memory.c: what a stream keeps of its request */
void ngx_http_llmgw_memory_lend(ngx_http_request_t *r);
void *ngx_http_llmgw_memory_alloc(ngx_http_request_t *r, size_t size);

/* chunk.c: the memory in which tokens leave */
ngx_chain_t *ngx_http_llmgw_chunk_get(ngx_http_llmgw_worker_t *worker,
    ngx_chain_t *last, size_t size);
void ngx_http_llmgw_chunk_sent(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_chunk_cleanup(void *data);
void ngx_http_llmgw_chunk_done(ngx_http_llmgw_worker_t *worker);

/* cork.c: one write for all streams of a client connection */
void ngx_http_llmgw_cork_survey(ngx_http_llmgw_worker_t *worker);
void ngx_http_llmgw_cork(ngx_http_llmgw_worker_t *worker,
    ngx_http_request_t *r);
void ngx_http_llmgw_uncork(ngx_http_llmgw_worker_t *worker);


#endif /* _NGX_HTTP_LLMGW_FRONT_H_INCLUDED_ */
