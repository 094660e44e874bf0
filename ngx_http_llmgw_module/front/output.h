
/*
 * A stream's bytes on their way into nginx's response body: what all fronts
 * do alike.
 */

#ifndef _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_


#include "front/stream.h"


/* Room for size bytes more, from buf->last on; NULL: no memory. */
ngx_buf_t *ngx_http_llmgw_output_room(ngx_http_llmgw_stream_t *stream,
    size_t size);

/* NGX_OK: the client has all; NGX_AGAIN: it is slow; else the end of it. */
ngx_int_t ngx_http_llmgw_output_flush(ngx_http_llmgw_stream_t *stream);

/* 1: nginx has nothing of ours left. */
ngx_uint_t ngx_http_llmgw_output_is_sent(ngx_http_llmgw_stream_t *stream);

/* Sends what is left as the last of it, and finalizes the request. */
void ngx_http_llmgw_output_last(ngx_http_llmgw_stream_t *stream);

/* r->write_event_handler */
void ngx_http_llmgw_output_write_handler(ngx_http_request_t *r);


#endif /* _NGX_HTTP_LLMGW_OUTPUT_H_INCLUDED_ */
