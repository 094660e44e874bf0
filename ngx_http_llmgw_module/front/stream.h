
/*
 * A stream: one client's request, from its decoded message to its last byte,
 * through as many attempts as it takes; and the front through which its client
 * speaks, of which it knows no more than four operations.
 */

#ifndef _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_


#include "core/outcome.h"
#include "core/resume.h"

#include "http/record.h"
#include "upstream/attempt.h"
#include "upstream/claim.h"


#define NGX_HTTP_LLMGW_MAX_FAILOVERS  8


typedef struct ngx_http_llmgw_front_s    ngx_http_llmgw_front_t;
typedef struct ngx_http_llmgw_stream_s   ngx_http_llmgw_stream_t;
typedef struct ngx_http_llmgw_doubt_s    ngx_http_llmgw_doubt_t;


/* One protocol that clients speak. */
struct ngx_http_llmgw_front_s {

    /*
     * The request's body is there: what it asks for goes into the stream.
     * NGX_DONE: it was refused, and the request may be gone.
     */
    ngx_int_t  (*read)(ngx_http_llmgw_stream_t *stream);

    /* Sends the answer's header, before its first token. */
    ngx_int_t  (*begin)(ngx_http_request_t *r);

    /*
     * Within a callback of the session: packs the token, sends nothing.
     * NGX_ERROR: no memory.
     */
    ngx_int_t  (*token)(ngx_http_llmgw_stream_t *stream,
                   const llmgw_token_t *token);

    /* Behind all tokens; the request may be gone when this returns. */
    void       (*end)(ngx_http_llmgw_stream_t *stream,
                   const llmgw_end_t *end);
};


/* First what each token needs; the serving attempt is mostly the first leg. */
struct ngx_http_llmgw_stream_s {
    ngx_queue_t                   work;         /* of the clients */
    ngx_http_request_t           *request;
    ngx_http_llmgw_clients_t     *clients;
    const ngx_http_llmgw_front_t *front;
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_attempt_t     *serving;      /* whose tokens are taken */

    /* the client's side */
    ngx_chain_t                  *out;          /* filled, not yet sent */
    ngx_chain_t                  *last;
    ngx_chain_t                  *busy;         /* nginx has it */

    ngx_msec_t                    token_ms;     /* the last one came */

    unsigned                      queued:1;     /* in work */
    unsigned                      running:1;    /* counted in the pool */
    unsigned                      waits:1;      /* in the queue */
    unsigned                      has_queue_end:1;
    unsigned                      wants_hedge:1; /* the request's flag */
    unsigned                      may_hedge:1;  /* at hedge_ms */
    unsigned                      has_second:1; /* leg, or had one */
    unsigned                      rearm:1;      /* the first token came */
    unsigned                      blocked:1;    /* the client reads slowly */
    unsigned                      out_failed:1; /* no memory for a token */
    unsigned                      has_final:1;  /* the final token went out */
    unsigned                      looked:1;     /* for silence, once */
    unsigned                      is_spared:1;  /* since spared_ms */

    ngx_http_llmgw_record_t       record;
    ngx_http_llmgw_attempt_t      legs[2];      /* the second: a hedge */

    /* what is asked, decoded; in the request's pool */
    ngx_http_llmgw_loc_conf_t    *conf;
    ngx_http_llmgw_ask_t          ask;

    llmgw_resume_t                resume;
    ngx_http_llmgw_doubt_t       *doubt;        /* serve.c; NULL: none */
    ngx_http_llmgw_claim_t        claim;
    ngx_event_t                   timer;        /* one, not cancelable */
    ngx_msec_t                    queue_end_ms; /* with waits */
    ngx_msec_t                    spared_ms;    /* with is_spared */
    ngx_msec_t                    hedge_ms;     /* with may_hedge */

    ngx_http_log_handler_pt       log_handler;  /* before ours */
};


/* NULL: the request has none. */
static ngx_inline ngx_http_llmgw_stream_t *
ngx_http_llmgw_stream_of(ngx_http_request_t *r)
{
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    return record && !record->is_native
           ? ngx_queue_data(record, ngx_http_llmgw_stream_t, record) : NULL;
}


/*
 * With the request's body read: a stream of it, which the front reads, and
 * which begins.  The request may be gone when this returns.  NGX_ERROR: no
 * memory, and nothing was answered.
 */
ngx_int_t ngx_http_llmgw_stream_open(ngx_http_request_t *r,
    const ngx_http_llmgw_front_t *front);

/* Posted: an attempt has ended, or tokens are to be flushed, or both. */
void ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream);

/* The client takes bytes again. */
void ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream);

/* The request may be gone when these return. */
void ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome);
void ngx_http_llmgw_stream_answer(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end);

/* The stream of a request's cleanup handler; NULL: that is another's. */
ngx_http_llmgw_stream_t *ngx_http_llmgw_stream_of_cleanup(
    ngx_http_cleanup_t *cln);


/*
 * serve.c: claims a replica, or waits for one; the stream may be finished when
 * this returns.
 */
void ngx_http_llmgw_serve_begin(ngx_http_llmgw_stream_t *stream);

/* Attempts that have ended; 1: the stream is finished and may be gone. */
ngx_uint_t ngx_http_llmgw_serve_run(ngx_http_llmgw_stream_t *stream);

/* The leg has its lease. */
void ngx_http_llmgw_serve_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg);

/*
 * doubt.c: a refusal that may be its replica's own fault.  The attempt's lease
 * is held from then on.  0: there is a doubt already, or no memory.
 */
ngx_uint_t ngx_http_llmgw_doubt_take(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt);

/* Gives the lease back; once, and nothing where there is no doubt. */
void ngx_http_llmgw_doubt_judge(ngx_http_llmgw_stream_t *stream,
    llmgw_verdict_t verdict);

/* Passes the refusal on; the request may be gone when this returns. */
void ngx_http_llmgw_doubt_answer(ngx_http_llmgw_stream_t *stream);

/* timer.c: all that a stream waits for */
void ngx_http_llmgw_timer_init(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_done(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_attempt_failed(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg);

/* hedge.c: now or later, as the request and the configuration want it */
void ngx_http_llmgw_hedge_later(ngx_http_llmgw_stream_t *stream);
ngx_uint_t ngx_http_llmgw_hedge(ngx_http_llmgw_stream_t *stream);

/* trace.c: the client's trace, and an id where the message has none */
ngx_int_t ngx_http_llmgw_trace_conf(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);
void ngx_http_llmgw_trace_read(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_trace_request_id(ngx_http_llmgw_stream_t *stream);


#endif /* _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_ */
