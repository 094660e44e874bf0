
/*
 * What the log may tell of a request: $llmgw_*.  It is the module's context of
 * the request, under llmgw_pass and under a native pass; the stream or the
 * pass that it is part of fills it in.
 */

#ifndef _NGX_HTTP_LLMGW_RECORD_H_INCLUDED_
#define _NGX_HTTP_LLMGW_RECORD_H_INCLUDED_


#include "conf/conf.h"
#include "core/outcome.h"
#include "core/policy/pick.h"
#include "proto/trace.h"


typedef struct {
    ngx_uint_t                    tokens;
    unsigned                      is_native:1;
    unsigned                      has_first_token:1;
    unsigned                      hedged:1;     /* the second leg served */
    unsigned                      retried:1;
    unsigned                      finished:1;   /* with end */

    ngx_msec_t                    start_ms;
    ngx_msec_t                    first_token_ms;
    ngx_msec_t                    queue_ms;     /* until the first attempt */
    ngx_uint_t                    attempts;
    ngx_uint_t                    failovers;
    llmgw_route_t                 route;
    ngx_str_t                     replica;      /* that served last */
    ngx_str_t                     request_id;   /* with a NUL behind it */
    llmgw_trace_span_t           *trace;        /* NULL: none */

    llmgw_outcome_t               outcome;
    int                           status;       /* gRPC */
} ngx_http_llmgw_record_t;


/* The first token came; 0: it had come before. */
ngx_uint_t ngx_http_llmgw_record_first_token(ngx_http_llmgw_record_t *record);

/* An attempt begins, at the replica of that name. */
ngx_int_t ngx_http_llmgw_record_attempt(ngx_http_llmgw_record_t *record,
    ngx_pool_t *pool, ngx_str_t *replica);

/* As much of the request's id as logs show. */
ngx_str_t ngx_http_llmgw_record_id(ngx_http_llmgw_record_t *record);


/* variables.c */
ngx_int_t ngx_http_llmgw_variables_add(ngx_conf_t *cf);


#endif /* _NGX_HTTP_LLMGW_RECORD_H_INCLUDED_ */
