
/*
 * A stream's tokens on their way to the client: output.c packs and flushes
 * them, chunk.c is the memory in which they leave, cork.c makes one write of
 * what all streams of a client connection have.
 */

#ifndef _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_


#include "front/stream.h"


#define NGX_HTTP_LLMGW_CHUNK_BYTES    256    /* of a stream's output: first */
#define NGX_HTTP_LLMGW_CHUNK_MAX      8192   /* and as it doubles */
#define NGX_HTTP_LLMGW_CHUNKS_KEPT    1024   /* of the first size, a worker */


ngx_int_t ngx_http_llmgw_output_append(ngx_http_llmgw_stream_t *stream,
    const u_char *message, size_t len);
ngx_int_t ngx_http_llmgw_output_flush(ngx_http_llmgw_stream_t *stream);
ngx_uint_t ngx_http_llmgw_output_is_sent(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_output_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message);
void ngx_http_llmgw_output_write_handler(ngx_http_request_t *r);


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


#endif /* _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_ */
