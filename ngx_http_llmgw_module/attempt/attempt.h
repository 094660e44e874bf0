
/*
 * An attempt: one replica's try at a stream, from its lease to its end.
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
     * Called for messages with content: not for `progress`, nor for facts
     * before it.
     */
    void  (*token)(ngx_http_llmgw_attempt_t *attempt,
              const llmgw_token_t *token);

    /* Called once, whatever ended it, attempt_stop() included. */
    void  (*end)(ngx_http_llmgw_attempt_t *attempt);
} ngx_http_llmgw_attempt_events_t;


/* ask->token_limit of a request that has none. */
#define NGX_HTTP_LLMGW_NO_TOKEN_LIMIT  NGX_MAX_UINT32_VALUE


/*
 * The request as sent to each replica; the owner's, and it outlives the
 * attempts.
 */
struct ngx_http_llmgw_ask_s {
    const ngx_http_llmgw_attempt_events_t  *events;
    const Llmgateway__OpenaiRequest *openai;    /* NULL: Infer asks */
    llmgw_delivered_t            *delivered;    /* NULL: nothing is kept */
    Llmgateway__Priority         *priority;     /* NULL: the client's own */
    ngx_str_t                     prompt;       /* of Infer */

    /*
     * with openai: its text, for a replica that may read no more than that.
     * NGX_ERROR: there is no memory for it.
     */
    ngx_int_t                   (*text)(const ngx_http_llmgw_ask_t *ask,
                                    ngx_str_t *text);
    char                         *request_id;
    llmgw_trace_span_t           *trace;        /* NULL: none */
    uint32_t                      max_tokens;   /* as replicas are told */
    uint32_t                      token_limit;  /* no more may come */
    uint32_t                      want;         /* a sum of Want */
    uint64_t                      model;        /* hash of its name; 0: the
                                                   engine's own */
    unsigned                      choices:31;   /* of the answer; 0: not
                                                   known */
    unsigned                      has_deadline:1;
    ngx_msec_t                    connect_timeout;
    ngx_msec_t                    deadline_ms;  /* with has_deadline */
    ngx_pool_t                   *memory;       /* for what a replica says */
};


/* How shards failed under an attempt, as its replica reports it. */
typedef struct {
    ngx_uint_t                    failures;
    ngx_str_t                     last;         /* of them; may be empty */
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
    unsigned                      reported:1;   /* by the replica, when it was
                                                   asked: the model */
    unsigned                      denies:1;     /* and its engine does not know
                                                   it */
    unsigned                      pushback_ms:14; /* what a full replica asked
                                                   for */
    signed                        status:6;     /* gRPC, where it ended so */

    uint32_t                      limit;        /* of tokens */
    uint32_t                      from;         /* tokens before its first */
    llmgw_attempt_t               state;        /* for core/serve/serve.h */
    ngx_queue_t                   queue;        /* of the replica */
    ngx_queue_t                   wait_queue;   /* of a session's waiting */
    ngx_http_llmgw_lease_t        lease;
    llmgw_end_t                  *refusal;      /* for PASSED; ask->memory */
    ngx_http_llmgw_shards_t      *shards;       /* the same; NULL: none has
                                                   failed */
};


/*
 * Starts an attempt with attempt->lease set, which it owns from here on, after
 * `from` tokens of the stream.  It ends exactly once, and the lease with it;
 * only one that ends AMBIGUOUS keeps its lease until it is stopped, so that its
 * owner may take the lease and say later whether the replica was at fault.
 */
void ngx_http_llmgw_attempt_start(ngx_http_llmgw_attempt_t *attempt,
    const ngx_http_llmgw_ask_t *ask, ngx_uint_t from);

/* Safe at any time, also for one that never started or has been stopped. */
void ngx_http_llmgw_attempt_stop(ngx_http_llmgw_attempt_t *attempt);

/* The client has taken what was received: opens the replica's window again. */
void ngx_http_llmgw_attempt_consume(ngx_http_llmgw_attempt_t *attempt);

/* Ends it, by a timer, gossip or a socket; no effect if it has ended. */
void ngx_http_llmgw_attempt_end(ngx_http_llmgw_attempt_t *attempt,
    llmgw_ending_t ending, llmgw_cause_t cause);

/*
 * The meaning of the gRPC status with which a replica ends the attempt's call.
 */
llmgw_ending_t ngx_http_llmgw_attempt_ending(
    ngx_http_llmgw_attempt_t *attempt, int status, llmgw_cause_t *cause);

/* Ends the attempts at a replica that gossip moves to other replicas. */
void ngx_http_llmgw_attempt_move_all(ngx_http_llmgw_replica_t *replica);

/* Opens the call, or waits with a session that is not ready for it. */
void ngx_http_llmgw_attempt_call(ngx_http_llmgw_attempt_t *attempt);

/*
 * generate.c: opens the attempt's call, LLMReplica.Generate, on its session,
 * which is ready for it; and what a session with replicas calls.
 */
ngx_int_t ngx_http_llmgw_generate_send(ngx_http_llmgw_attempt_t *attempt);
const llmgw_grpc_callbacks_t *ngx_http_llmgw_generate_callbacks(void);


#endif /* _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_ */
