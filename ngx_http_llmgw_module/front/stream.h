
/*
 * A stream: one client's request, from its decoded message to its last byte,
 * through as many attempts as it takes.  The client is served by a front, of
 * which the stream knows only its operations.
 */

#ifndef _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_
#define _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_


#include "core/serve/serve.h"

#include "admit/admit.h"
#include "attempt/attempt.h"
#include "attempt/claim.h"
#include "front/delivered.h"
#include "http/record.h"
#include "keys/keys.h"


typedef struct ngx_http_llmgw_front_s      ngx_http_llmgw_front_t;
typedef struct ngx_http_llmgw_stream_s     ngx_http_llmgw_stream_t;
typedef struct ngx_http_llmgw_ambiguous_s  ngx_http_llmgw_ambiguous_t;


/* One protocol that clients speak. */
struct ngx_http_llmgw_front_s {

    /*
     * Called once the request's body is read: decodes it into stream->ask,
     * sets stream->key and stream->model, and calls entry_said().  NGX_DONE:
     * the request was refused, and may be gone.
     */
    ngx_int_t  (*read)(ngx_http_llmgw_stream_t *stream);

    /* Sends the answer's header, before the first token. */
    ngx_int_t  (*begin)(ngx_http_request_t *r);

    /*
     * Called within a callback of the session: packs the token into the
     * stream's output and sends nothing.  With token->more it may be more than
     * a token, or none: a chunk, a piece, a finish, the usage.  The stream's
     * last is final, if need be llmgw_token_final.  NGX_ERROR: no memory.
     */
    ngx_int_t  (*token)(ngx_http_llmgw_stream_t *stream,
                   const llmgw_token_t *token);

    /*
     * The stream is lost, and cannot continue where it broke off.  NGX_OK: the
     * client has received nothing, buffered output is dropped, and the stream
     * starts again.  NULL: the front never can.
     */
    ngx_int_t  (*restart)(ngx_http_llmgw_stream_t *stream);

    /*
     * The client has received nothing for a while.  NULL: nothing is sent then.
     */
    ngx_int_t  (*ping)(ngx_http_llmgw_stream_t *stream);

    /* Ends the answer after all tokens.  The request may be gone after it. */
    void       (*end)(ngx_http_llmgw_stream_t *stream,
                   const llmgw_end_t *end);
};


/*
 * First what each token needs, up to the first of the attempts, which is nearly
 * always the one that serves.
 */
struct ngx_http_llmgw_stream_s {
    ngx_queue_t                   work;         /* link in clients->work */
    ngx_http_request_t           *request;
    ngx_http_llmgw_clients_t     *clients;
    const ngx_http_llmgw_front_t *front;
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_attempt_t     *serving;      /* sends tokens; or NULL */
    llmgw_usage_slot_t           *slot;         /* of its caller, or NULL */

    /* the client's side */
    ngx_chain_t                  *out;          /* filled, not yet sent */
    ngx_chain_t                  *last;
    ngx_chain_t                  *busy;         /* passed to nginx */

    ngx_msec_t                    token_ms;     /* when the last token came */
    ngx_msec_t                    sent_ms;      /* when the client got bytes */

    unsigned                      queued:1;     /* linked in clients->work */
    unsigned                      running:1;    /* counted in the pool */
    unsigned                      wants_hedge:1; /* the request's flag */
    unsigned                      rearm:1;      /* set the timer anew */
    unsigned                      keeps:1;      /* ask.delivered is kept */
    unsigned                      blocked:1;    /* the client reads slowly */
    unsigned                      out_failed:1; /* no memory for a token */
    unsigned                      has_final:1;  /* the final token was packed */
    unsigned                      resume_by:2;  /* llmgw_resume_by_t, as of its
                                                   last loss */
    unsigned                      holds:1;      /* keeps all output until the
                                                   end */
    unsigned                      pings:1;      /* front->ping() is to be
                                                   called */
    unsigned                      is_named:1;   /* an llmgw_model line has
                                                   model */

    void                         *data;         /* the front's own */
    const llmgw_end_t            *verdict;      /* set by a front that cannot
                                                   continue: how the stream
                                                   ends; or NULL */

    ngx_http_llmgw_record_t       record;
    ngx_http_llmgw_attempt_t      attempts[2];  /* the second is a hedge */

    /* the decoded request; its bytes are in the request's memory */
    ngx_http_llmgw_loc_conf_t    *conf;
    uint64_t                      key;          /* of the ring, set by read() */
    ngx_str_t                    *model;        /* to claim; NULL: any */
    ngx_http_llmgw_ask_t          ask;

    ngx_http_llmgw_identity_t    *identity;     /* NULL: not asked for */
    ngx_http_llmgw_caller_t      *caller;       /* NULL: not asked for */
    uint64_t                      wasted;       /* tokens discarded */

    llmgw_serve_t                 serve;
    ngx_http_llmgw_ambiguous_t   *ambiguous;    /* ambiguous.c; NULL: none so
                                                   far */
    ngx_http_llmgw_claim_t        claim;
    ngx_event_t                   timer;        /* set by timer.c */

    ngx_http_log_handler_pt       log_handler;  /* nginx's own, called by
                                                   ours */
};


/* The request's stream; NULL: it has none. */
static ngx_inline ngx_http_llmgw_stream_t *
ngx_http_llmgw_stream_of(ngx_http_request_t *r)
{
    ngx_http_llmgw_record_t  *record;

    record = ngx_http_get_module_ctx(r, ngx_http_llmgw_module);

    return record && !record->is_native
           ? ngx_queue_data(record, ngx_http_llmgw_stream_t, record) : NULL;
}


/*
 * Creates a stream for a request whose body was read, lets the front decode it,
 * and begins to serve it.  The request may be gone when this returns.
 * NGX_ERROR: no memory, and nothing was answered.
 */
ngx_int_t ngx_http_llmgw_stream_open(ngx_http_request_t *r,
    const ngx_http_llmgw_front_t *front, void *data);

/*
 * Called by clients.c for a stream on its list: an attempt has ended, or tokens
 * are to be flushed, or both.  The stream may be gone when this returns.
 */
void ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream);

/* Called when the client takes bytes again. */
void ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream);

/*
 * End the stream and its answer, with a bare outcome or with all that is known
 * of the end.  The request may be gone when these return.
 */
void ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome);
void ngx_http_llmgw_stream_answer(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end);

/* The stream that this cleanup handler is for; NULL: it is for another. */
ngx_http_llmgw_stream_t *ngx_http_llmgw_stream_of_cleanup(
    ngx_http_cleanup_t *cln);


/*
 * serve.c: claims a replica, or waits in the queue for one.  The stream may be
 * finished and gone when this returns.
 */
void ngx_http_llmgw_serve_begin(ngx_http_llmgw_stream_t *stream);

/*
 * Handles attempts that have ended.  1: the stream is finished and may be gone.
 */
ngx_uint_t ngx_http_llmgw_serve_run(ngx_http_llmgw_stream_t *stream);

/* The current input of core/serve/serve.h. */
void ngx_http_llmgw_serve_facts(ngx_http_llmgw_stream_t *stream,
    llmgw_serve_facts_t *facts);

/*
 * Carries out a step, and those that follow from it.  it: the attempt that
 * ended, or NULL.  1: the stream is finished and may be gone.
 */
ngx_uint_t ngx_http_llmgw_serve_step(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *it, const llmgw_serve_step_t *first);

/*
 * entry.c: notes class and tenant of the request, if they matter. NGX_ERROR: no
 * memory.
 */
ngx_int_t ngx_http_llmgw_entry_said(ngx_http_llmgw_stream_t *stream,
    const ngx_http_llmgw_said_t *said);

/* 1: the stream is not admitted; it is finished and may be freed. */
ngx_uint_t ngx_http_llmgw_entry_refused(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_entry_first_token(ngx_http_llmgw_stream_t *stream);

/* Discards the tokens of an attempt. */
void ngx_http_llmgw_entry_restarts(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_entry_ends(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome);

/*
 * ended.c: handles an attempt, if it has ended.  1: the stream is finished and
 * may be gone.
 */
ngx_uint_t ngx_http_llmgw_ended(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt);

/* How a replica refused the request, in its words and its engine's. */
void ngx_http_llmgw_ended_refusal(ngx_http_llmgw_attempt_t *attempt,
    llmgw_end_t *end);

/*
 * ambiguous.c: 0: there is no memory to keep a refusal.  keep(): keeps the
 * attempt's lease and its refusal.
 */
ngx_uint_t ngx_http_llmgw_ambiguous_reserve(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_ambiguous_keep(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt);

/*
 * Ends the lease of the refusal that was kept with that verdict.  Does nothing
 * if none is kept, or if its lease was ended before.
 */
void ngx_http_llmgw_ambiguous_settle(ngx_http_llmgw_stream_t *stream,
    llmgw_verdict_t verdict);

/* Answers the client with the refusal; the request may be gone after this. */
void ngx_http_llmgw_ambiguous_answer(ngx_http_llmgw_stream_t *stream);

/* timer.c: the one timer for all that a stream waits for */
void ngx_http_llmgw_timer_init(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_done(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream);

/* When the client gets a ping; 0: never. */
ngx_msec_t ngx_http_llmgw_timer_ping_ms(ngx_http_llmgw_stream_t *stream);

/* The end of a step: pings the client, ends silent attempts, sets the timer. */
void ngx_http_llmgw_timer_run(ngx_http_llmgw_stream_t *stream,
    const llmgw_serve_step_t *step);

/* trace.c: the client's trace, and an id for a request without one */
ngx_int_t ngx_http_llmgw_trace_conf(ngx_conf_t *cf,
    ngx_http_llmgw_main_conf_t *lmcf);
void ngx_http_llmgw_trace_read(ngx_http_llmgw_stream_t *stream);
void ngx_http_llmgw_trace_request_id(ngx_http_llmgw_stream_t *stream);

/* $request_id, which a client cannot choose.  Empty: no memory. */
ngx_str_t ngx_http_llmgw_trace_random(ngx_http_llmgw_stream_t *stream);


#endif /* _NGX_HTTP_LLMGW_STREAM_H_INCLUDED_ */
