
/*
 * Native passes: nginx's own grpc_pass and proxy_pass over a pool of ours.
 *
 *   balancer.c     what nginx asks a balancer for: get, free
 *   entry.c        whose a request is, and whether it may enter
 *   key.c          llmgw_key: which replica a request belongs to
 *   wait_before.c  llmgw_key ... queue=: waiting before the pass begins
 *   wait_within.c  waiting within the pass, after a try that has failed
 *   filter.c       what an answer tells about its replica
 *
 *             PRECONTENT, queue=      content           peer.get
 *    request ------> READS ---> WAITS ----> GRANTED ------------> USES
 *       |              |          ^            |                   |  ^
 *       |              | no queue |            | no pass asks      |  | get
 *       |              v          |            v              free |  |
 *       +---------> RESTS <-------|---------- gone                 v  |
 *                     |           +------ get, queue=, full ----- RESTS
 *                     +-- get: claims; NGX_BUSY where full
 *
 * A lease ends at `free`, or at the request's end, whichever comes first.  A
 * pass is found through the request's cleanup handlers, since an internal
 * redirect clears the contexts of modules.
 */

#ifndef _NGX_HTTP_LLMGW_NATIVE_H_INCLUDED_
#define _NGX_HTTP_LLMGW_NATIVE_H_INCLUDED_


#include "admit/admit.h"
#include "attempt/claim.h"
#include "conf/param.h"
#include "fleet/replica.h"


typedef enum {
    NGX_HTTP_LLMGW_NATIVE_RESTS = 0,        /* holds no lease */
    NGX_HTTP_LLMGW_NATIVE_READS,            /* reads the body */
    NGX_HTTP_LLMGW_NATIVE_WAITS,            /* in the queue */
    NGX_HTTP_LLMGW_NATIVE_GRANTED,          /* has a lease for the next get */
    NGX_HTTP_LLMGW_NATIVE_USES              /* between get and free */
} ngx_http_llmgw_native_state_t;


typedef struct {
    ngx_http_llmgw_record_t       record;       /* the request's context */
    ngx_http_llmgw_native_state_t state;
    ngx_http_request_t           *request;
    ngx_http_llmgw_pool_t        *pool;
    ngx_http_llmgw_claim_t        claim;
    ngx_http_llmgw_identity_t     identity;
    llmgw_end_t                   refusal;      /* SERVED: none */
    ngx_http_llmgw_lease_t        lease;
    ngx_event_t                   timer;        /* of a wait */
    ngx_http_llmgw_replica_t     *replica;  /* held as long as the lease */
    ngx_http_upstream_t          *upstream;
    ngx_sockaddr_t                sockaddr; /* a copy: nginx may use it after
                                               the replica is gone */

    ngx_msec_t                    wait_left_ms; /* rest of the time to wait */
    ngx_msec_t                    wait_start_ms; /* when this wait began */

    ngx_connection_t             *stand_in;     /* NULL: none */
    ngx_event_t                   after_get;    /* posted, with stand_in */
    ngx_log_t                     silent;       /* a log that drops all lines */

    unsigned                      running:1;    /* counted in the pool */
    unsigned                      has_deadline:1;   /* timer: for the client's
                                                       deadline */
    unsigned                      has_hold_end:1;   /* timer: to claim again */
    unsigned                      has_data:1;   /* the replica has sent data */
    unsigned                      is_served:1;  /* its last try served it */
    unsigned                      refused:1;    /* the error page does not
                                                   wait */
} ngx_http_llmgw_native_t;


/*
 * balancer.c: creates a request's pass, which is released with the request at
 * the latest; NULL: no memory.  find() returns the request's newest pass, or
 * NULL.
 */
ngx_http_llmgw_native_t *ngx_http_llmgw_native_create(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);
void ngx_http_llmgw_native_claim_init(ngx_http_llmgw_native_t *pass);
ngx_http_llmgw_native_t *ngx_http_llmgw_native_find(ngx_http_request_t *r);

/*
 * LEASED: the pass has a lease, and keeps its replica until give_back().
 * WAITS, never with no_wait: it is in the queue.
 */
llmgw_admission_rc_t ngx_http_llmgw_native_claim(
    ngx_http_llmgw_native_t *pass, ngx_uint_t no_wait);

/* Ends the lease, if the pass has one, with that verdict. */
void ngx_http_llmgw_native_give_back(ngx_http_llmgw_native_t *pass,
    llmgw_verdict_t verdict);

/* Gives back all that is not in the request's pool; idempotent. */
void ngx_http_llmgw_native_release(ngx_http_llmgw_native_t *pass);

/* entry.c: 1: admitted; 0: not, and pass->refusal has the reason. */
ngx_uint_t ngx_http_llmgw_native_may_enter(ngx_http_llmgw_native_t *pass);
void ngx_http_llmgw_native_leave(ngx_http_llmgw_native_t *pass);

/* key.c: llmgw_key */
extern const ngx_http_llmgw_param_t  ngx_http_llmgw_key_params[];
char *ngx_http_llmgw_native_conf_key(ngx_conf_t *cf, ngx_command_t *cmd,
    void *conf);

/*
 * The request's key, hashed; of the client's address if it has none.  If the
 * key is in the body, the claim gets that body's blocks.
 */
uint64_t ngx_http_llmgw_native_hash(ngx_http_llmgw_native_t *pass);

/* The number of bytes of its prompt's text, as far as it is easy to find. */
size_t ngx_http_llmgw_native_text_bytes(ngx_http_request_t *r);

/* filter.c: adds the phase handler and the body filter */
ngx_int_t ngx_http_llmgw_native_init(ngx_conf_t *cf);

/* balancer.c: nginx's peer.init for an upstream{} of ours */
ngx_int_t ngx_http_llmgw_native_init_peer(ngx_http_request_t *r,
    ngx_http_upstream_srv_conf_t *us);

/* wait_before.c: the phase handler, and the timer of a wait */
ngx_int_t ngx_http_llmgw_native_handler(ngx_http_request_t *r);
void ngx_http_llmgw_native_arm(ngx_http_llmgw_native_t *pass);

/*
 * Answers in the client's protocol, within the pass or before it; the request
 * may be gone after it.
 */
void ngx_http_llmgw_native_refuse(ngx_http_llmgw_native_t *pass,
    const llmgw_end_t *end);

/* wait_within.c: a wait within the pass, after a try that has failed */
ngx_uint_t ngx_http_llmgw_native_may_wait(ngx_http_llmgw_native_t *pass);
ngx_int_t ngx_http_llmgw_native_wait(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc);
ngx_int_t ngx_http_llmgw_native_turn_away(ngx_http_llmgw_native_t *pass,
    ngx_peer_connection_t *pc);
void ngx_http_llmgw_native_wait_ends(ngx_http_llmgw_native_t *pass);
void ngx_http_llmgw_native_wait_aborts(ngx_http_llmgw_native_t *pass);
void ngx_http_llmgw_native_wait_forget(ngx_http_llmgw_native_t *pass);

/*
 * filter.c: the verdict on the replica; state is the argument of nginx's
 * `free`.
 */
llmgw_verdict_t ngx_http_llmgw_native_verdict(ngx_http_llmgw_native_t *pass,
    ngx_uint_t state);

/* 1: that verdict is a success, and the client got no refusal either. */
ngx_uint_t ngx_http_llmgw_native_is_ok(ngx_http_llmgw_native_t *pass,
    llmgw_verdict_t verdict);


#endif /* _NGX_HTTP_LLMGW_NATIVE_H_INCLUDED_ */
