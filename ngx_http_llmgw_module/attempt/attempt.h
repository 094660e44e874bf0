
/*
 * An attempt: one call to one replica for a stream, from its lease to its end.
 */

#ifndef _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_


#include "core/serve/serve.h"
#include "proto/delivered.h"
#include "proto/grpc/session.h"
#include "proto/token_message.h"
#include "proto/trace.h"

#include "attempt/lease.h"
#include "attempt/session.h"


typedef struct ngx_http_llmgw_ask_s      ngx_http_llmgw_ask_t;
typedef struct ngx_http_llmgw_attempt_s  ngx_http_llmgw_attempt_t;


/*
 * Callbacks of an attempt to its owner.  Both are called within callbacks of
 * the session: the owner must only note them, and not finalize a request.
 */
typedef struct {
    /*
     * Called for messages with content: not for `progress`, nor for facts that
     * come before content.
     */
    void  (*token)(ngx_http_llmgw_attempt_t *attempt,
              const llmgw_token_t *token);

    /* Called once, whatever ended the attempt: attempt_stop(), too. */
    void  (*end)(ngx_http_llmgw_attempt_t *attempt);
} ngx_http_llmgw_attempt_events_t;


/* ask->token_limit of a request that has none. */
#define NGX_HTTP_LLMGW_NO_TOKEN_LIMIT  NGX_MAX_UINT32_VALUE


/*
 * The request as sent to each replica.  It belongs to the attempts' owner, and
 * outlives them.
 */
struct ngx_http_llmgw_ask_s {
    const ngx_http_llmgw_attempt_events_t  *events;
    const Llmgateway__OpenaiRequest *openai;    /* NULL: an Infer request */
    llmgw_delivered_t            *delivered;    /* NULL: no tokens are kept */
    Llmgateway__Priority         *priority;     /* NULL: the client's own */
    ngx_str_t                     prompt;       /* of an Infer request */

    /*
     * With openai: the prompt's text, for a replica that can read only text.
     * NGX_ERROR: there is no memory for it.
     */
    ngx_int_t                   (*text)(const ngx_http_llmgw_ask_t *ask,
                                    ngx_str_t *text);
    char                         *request_id;
    llmgw_trace_span_t           *trace;        /* NULL: none */
    uint32_t                      max_tokens;   /* as replicas are told */
    uint32_t                      token_limit;  /* more is an error */
    uint32_t                      want;         /* a sum of Want */
    uint64_t                      model;        /* hash of its name; 0: the
                                                   engine's own */
    unsigned                      choices:31;   /* that the answer has; 0: not
                                                   known */
    unsigned                      has_deadline:1;
    ngx_msec_t                    connect_timeout;
    ngx_msec_t                    deadline_ms;  /* with has_deadline */
    ngx_pool_t                   *memory;       /* for replicas' messages */
};


/* How shards failed under an attempt, as its replica reports it. */
typedef struct {
    ngx_uint_t                    failures;
    ngx_str_t                     last;         /* the last one's text; may be
                                                   empty */
} ngx_http_llmgw_shards_t;


/* First what each token needs, in one cache line; then the rest. */
struct ngx_http_llmgw_attempt_s {
    const ngx_http_llmgw_ask_t   *ask;
    ngx_http_llmgw_replica_t     *replica;      /* NULL: not running */
    ngx_http_llmgw_session_t     *session;
    llmgw_grpc_stream_t          *call;
    uint32_t                      unacked;      /* window to give back */

    unsigned                      waits:1;      /* in wait_queue */
    unsigned                      draining:1;   /* llmgw-draining was seen */
    unsigned                      resumes:1;    /* an earlier one had begun */
    unsigned                      has_pushback:1;
    unsigned                      reported:1;   /* its replica reported the
                                                   model when the attempt
                                                   began */
    unsigned                      denies:1;     /* and yet its engine does not
                                                   know it */
    unsigned                      pushback_ms:14; /* what a full replica asked
                                                     for */
    signed                        status:6;     /* gRPC, if a status ended it */

    uint32_t                      limit;        /* of tokens */
    uint32_t                      from;         /* tokens before its first */
    llmgw_attempt_t               state;        /* for core/serve/serve.h */
    ngx_queue_t                   queue;        /* of the replica */
    ngx_queue_t                   wait_queue;   /* in the session's waiting */
    ngx_http_llmgw_lease_t        lease;
    llmgw_end_t                  *refusal;      /* with PASSED; in
                                                   ask->memory */
    ngx_http_llmgw_shards_t      *shards;       /* in ask->memory; NULL: none
                                                   has failed */
};


/*
 * Starts an attempt, which continues after `from` tokens of the stream.
 * attempt->lease must be set; the attempt owns it from here on.  An attempt
 * ends exactly once, and its lease with it; only an attempt that ends AMBIGUOUS
 * keeps its lease until it is stopped, so that its owner may take the lease and
 * say later whether the replica was at fault.
 */
void ngx_http_llmgw_attempt_start(ngx_http_llmgw_attempt_t *attempt,
    const ngx_http_llmgw_ask_t *ask, ngx_uint_t from);

/* Safe at any time, also for one that never started or has been stopped. */
void ngx_http_llmgw_attempt_stop(ngx_http_llmgw_attempt_t *attempt);

/* The client has taken what was received: opens the replica's window again. */
void ngx_http_llmgw_attempt_consume(ngx_http_llmgw_attempt_t *attempt);

/*
 * Ends the attempt, because of a timer, gossip or a socket; no effect if it has
 * ended.
 */
void ngx_http_llmgw_attempt_end(ngx_http_llmgw_attempt_t *attempt,
    llmgw_ending_t ending, llmgw_cause_t cause);

/*
 * The meaning of the gRPC status with which a replica ends the attempt's call.
 */
llmgw_ending_t ngx_http_llmgw_attempt_ending(
    ngx_http_llmgw_attempt_t *attempt, int status, llmgw_cause_t *cause);

/*
 * Gossip about the replica has changed: ends those of its attempts that should
 * move to other replicas.
 */
void ngx_http_llmgw_attempt_move_all(ngx_http_llmgw_replica_t *replica);

/* Opens the call, or waits until the session is ready for it. */
void ngx_http_llmgw_attempt_call(ngx_http_llmgw_attempt_t *attempt);

/*
 * generate.c: _send() opens the attempt's call, LLMReplica.Generate, on its
 * session, which must be ready; _callbacks() are for the session's gRPC.
 */
ngx_int_t ngx_http_llmgw_generate_send(ngx_http_llmgw_attempt_t *attempt);
const llmgw_grpc_callbacks_t *ngx_http_llmgw_generate_callbacks(void);


#endif /* _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_ */
