
/*
 * A request's data for logs: the variables $llmgw_*.  The record is the
 * module's context of the request, under llmgw_pass and under a native pass; it
 * is a part of the stream or of the pass, which fills it in.
 */

#ifndef _NGX_HTTP_LLMGW_RECORD_H_INCLUDED_
#define _NGX_HTTP_LLMGW_RECORD_H_INCLUDED_


#include "conf/conf.h"
#include "core/outcome.h"
#include "core/policy/pick.h"
#include "core/resume.h"
#include "proto/trace.h"


/* Its class and its tenant, if their names are known. */
typedef struct {
    ngx_str_t                     class;        /* empty: none */
    ngx_str_t                     tenant;       /* empty: none, or unknown */
    uint64_t                      tenant_hash;  /* 0: none */
} ngx_http_llmgw_whose_t;


/* For requests of OpenAI's API. */
typedef struct {
    ngx_str_t                     model;        /* as the client calls it */
    size_t                        prompt_bytes; /* to estimate tokens by */
    ngx_uint_t                    prompt_tokens;
    ngx_uint_t                    completion_tokens;
    ngx_uint_t                    cached_tokens;    /* of the prompt's tokens */
    ngx_uint_t                    reasoning_tokens; /* of the completion's
                                                       tokens */
    size_t                        finish_len;
    u_char                        finish[24];   /* finish_reason, of the first
                                                   choice that has one */
} ngx_http_llmgw_usage_t;


typedef struct {
    ngx_uint_t                    tokens;
    unsigned                      is_native:1;
    unsigned                      has_first_token:1;
    unsigned                      hedged:1;     /* the second attempt served */
    unsigned                      retried:1;
    unsigned                      finished:1;   /* outcome, status are set */
    unsigned                      has_resume:1; /* resume_by is set */
    unsigned                      resume_by:2;  /* llmgw_resume_by_t */

    ngx_msec_t                    start_ms;
    ngx_msec_t                    first_token_ms;
    ngx_msec_t                    queue_ms;     /* until the first attempt */
    ngx_uint_t                    attempts;
    ngx_uint_t                    failovers;
    llmgw_route_t                 route;
    ngx_str_t                     replica;      /* of the last attempt */
    ngx_uint_t                    shard_failures;   /* in all attempts */
    ngx_str_t                     shard_failure;    /* the last; or empty */
    ngx_str_t                     request_id;   /* NUL-terminated */
    llmgw_trace_span_t           *trace;        /* NULL: none */
    ngx_http_llmgw_usage_t       *usage;        /* NULL: none */

    llmgw_outcome_t               outcome;
    int                           status;       /* of gRPC */
    const ngx_http_llmgw_whose_t *whose;        /* NULL: not asked for */
} ngx_http_llmgw_record_t;


/* Notes the time of the first token; returns 0 if it was noted before. */
ngx_uint_t ngx_http_llmgw_record_first_token(ngx_http_llmgw_record_t *record);

/*
 * Notes that an attempt begins at the replica of that name, and copies the
 * name.  NGX_ERROR: no memory.
 */
ngx_int_t ngx_http_llmgw_record_attempt(ngx_http_llmgw_record_t *record,
    ngx_pool_t *pool, ngx_str_t *replica);

/* $request_id, which a client cannot choose.  Empty: no memory. */
ngx_str_t ngx_http_llmgw_record_own_id(ngx_http_request_t *r);

/* The request's id, cut to the length that logs show. */
ngx_str_t ngx_http_llmgw_record_id(ngx_http_llmgw_record_t *record);


/* variables.c */
ngx_int_t ngx_http_llmgw_variables_add(ngx_conf_t *cf);


#endif /* _NGX_HTTP_LLMGW_RECORD_H_INCLUDED_ */
