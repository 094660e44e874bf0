
/*
 * A stream: one client's request, from its decoded message to its last byte,
 * through as many attempts as it takes.
 */

#ifndef _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_


#include "core/resume.h"

#include "upstream/attempt.h"
#include "zone/claim.h"


#define NGX_HTTP_LLMGW_MAX_FAILOVERS  8


typedef struct ngx_http_llmgw_trace_s  ngx_http_llmgw_trace_t;


/* First what each token needs; the serving attempt is mostly the first leg. */
struct ngx_http_llmgw_stream_s {
    ngx_queue_t                   work;         /* of the worker */
    ngx_http_request_t           *request;
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_attempt_t     *serving;      /* whose tokens are taken */

    /* the client's side */
    ngx_chain_t                  *out;          /* filled, not yet sent */
    ngx_chain_t                  *last;
    ngx_chain_t                  *busy;         /* nginx has it */

    ngx_uint_t                    tokens;
    ngx_msec_t                    token_ms;     /* the last one came */

    unsigned                      is_native:1;   /* a native_t: native.h */
    unsigned                      queued:1;     /* in work */
    unsigned                      running:1;    /* counted in the pool */
    unsigned                      has_deadline:1;
    unsigned                      has_first_token:1;
    unsigned                      may_restart:1; /* one of those excluded
                                                    failed it, counted */
    unsigned                      saw_full:1;   /* of those excluded */
    unsigned                      waits:1;      /* in the queue */
    unsigned                      has_queue_end:1;
    unsigned                      wants_hedge:1; /* the request's flag */
    unsigned                      may_hedge:1;  /* at hedge_ms */
    unsigned                      has_second:1; /* leg, or had one */
    unsigned                      hedged:1;     /* the second leg served */
    unsigned                      retried:1;
    unsigned                      rearm:1;      /* the first token came */
    unsigned                      blocked:1;    /* the client reads slowly */
    unsigned                      finished:1;
    unsigned                      out_failed:1; /* no memory for a token */

    ngx_http_llmgw_attempt_t      legs[2];      /* the second: a hedge */

    /* what is asked, decoded; in the request's pool */
    ngx_http_llmgw_loc_conf_t    *conf;
    ngx_str_t                     prompt;
    ngx_str_t                     request_id;
    ngx_int_t                     max_tokens;
    ngx_http_llmgw_trace_t       *trace;        /* NULL: none */

    llmgw_resume_t                resume;
    ngx_http_llmgw_claim_t        claim;
    ngx_event_t                   timer;        /* one, not cancelable */
    ngx_msec_t                    start_ms;
    ngx_msec_t                    deadline_ms;  /* with has_deadline */
    ngx_msec_t                    queue_end_ms; /* with waits */
    ngx_msec_t                    hedge_ms;     /* with may_hedge */

    /* for the log */
    ngx_http_log_handler_pt       log_handler;  /* before ours */
    ngx_str_t                     replica;
    llmgw_route_t                 route;
    ngx_uint_t                    attempts;
    ngx_uint_t                    failovers;
    ngx_msec_t                    first_token_ms;
    ngx_msec_t                    queue_ms;     /* until the first attempt */
    llmgw_grpc_status_t           status;       /* with finished */
    const char                   *reason;       /* the same; NULL: none */
};


void ngx_http_llmgw_stream_begin(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_token(ngx_http_llmgw_attempt_t *attempt,
    const u_char *message, size_t len);
void ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message);
void ngx_http_llmgw_stream_abort(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_stream_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg);
void ngx_http_llmgw_stream_cleanup(void *data);


/* timer.c: all that a stream waits for */
void ngx_http_llmgw_timer_init(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_done(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_attempt_failed(ngx_http_llmgw_attempt_t *leg);

/* hedge.c: now or later, as the request and the configuration want it */
void ngx_http_llmgw_hedge_later(ngx_http_llmgw_stream_t *stream);
ngx_uint_t ngx_http_llmgw_hedge(ngx_http_llmgw_stream_t *stream);


#endif /* _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_ */
