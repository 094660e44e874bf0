
/*
 * A stream's bytes until they are in nginx's response body, the same for all
 * fronts.
 */

#ifndef _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_


#include "front/stream.h"


/* A buffer with space for size more bytes at buf->last; NULL: no memory. */
ngx_buf_t *ngx_http_llmgw_output_room(ngx_http_llmgw_stream_t *stream,
    size_t size);

/* Bytes allocated for output that the client has not received yet. */
size_t ngx_http_llmgw_output_bytes(ngx_http_llmgw_stream_t *stream);

/*
 * Passes the output to nginx.  NGX_OK: nginx has sent all output.  NGX_AGAIN:
 * nginx still holds bytes, and calls the write handler.  NGX_ERROR: the request
 * has failed.
 */
ngx_int_t ngx_http_llmgw_output_flush(ngx_http_llmgw_stream_t *stream);

/*
 * 1: nginx has sent all of the stream's bytes, and the chunks are free again.
 */
ngx_uint_t ngx_http_llmgw_output_is_sent(ngx_http_llmgw_stream_t *stream);

/*
 * Sends what is left, marked as the answer's end, and finalizes the request,
 * which may be gone when this returns.
 */
void ngx_http_llmgw_output_last(ngx_http_llmgw_stream_t *stream);

/* r->write_event_handler */
void ngx_http_llmgw_output_write_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_ */
