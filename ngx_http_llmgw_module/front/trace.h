
/*
 * Who a request is, for those who look for it later: its id, which stands in
 * every log line of it, and the trace that its client belongs to.
 */

#ifndef _NGX_HTTP_LLMGW_TRACE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_TRACE_H_INCLUDED_


#include "proto/grpc/session.h"
#include "proto/trace.h"

#include "front/stream.h"


#define NGX_HTTP_LLMGW_TRACE_FIELDS  2


/* NULL in a stream: the client sent no traceparent, or no valid one. */
struct ngx_http_llmgw_trace_s {
    llmgw_trace_t                 parent;
    const char                   *state;        /* NULL: none */
    uint64_t                      span;         /* of the last attempt */
    char                          text[LLMGW_TRACE_PARENT_BYTES];
};


/* Reads the client's headers. */
void ngx_http_llmgw_trace_read(ngx_http_llmgw_stream_t *stream);

/*
 * The request's id, where the message has none; from here on each line that is
 * logged for the request ends with it.
 */
void ngx_http_llmgw_trace_request_id(ngx_http_llmgw_stream_t *stream);

/* As much of the id as logs show. */
ngx_str_t ngx_http_llmgw_trace_shown_id(ngx_http_llmgw_stream_t *stream);

/* A new span; returns how many fields it has, which live as the stream does. */
ngx_uint_t ngx_http_llmgw_trace_begin(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_field_t fields[NGX_HTTP_LLMGW_TRACE_FIELDS]);


#endif /* _NGX_HTTP_LLMGW_TRACE_H_INCLUDED_ */
