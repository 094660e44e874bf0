
/*
 * An attempt: one replica's try at a stream, from its lease to its end.
 */

#ifndef _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_
#define _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_


#include "core/resume.h"
#include "proto/grpc/session.h"

#include "upstream/session.h"
#include "zone/lease.h"


typedef struct ngx_http_llmgw_attempt_s  ngx_http_llmgw_attempt_t;


/* First what each token needs, in one cache line; then the rest. */
struct ngx_http_llmgw_attempt_s {
    ngx_http_llmgw_stream_t      *stream;
    ngx_http_llmgw_replica_t     *replica;      /* NULL: not running */
    ngx_http_llmgw_session_t     *session;
    llmgw_grpc_stream_t          *call;
    size_t                        owed;         /* window to give back */
    ngx_uint_t                    tokens;
    ngx_msec_t                    activity_ms;  /* start, then each token */

    unsigned                      waits:1;      /* in wait_queue */
    unsigned                      ended:1;      /* outcome is there */
    unsigned                      draining:1;   /* llmgw-draining was seen */

    ngx_queue_t                   queue;        /* of the replica */
    ngx_queue_t                   wait_queue;   /* of a session's waiting */
    ngx_http_llmgw_lease_t        lease;

    llmgw_ending_t               outcome;
    llmgw_cause_t                 cause;
    ngx_int_t                     status;       /* gRPC, where it ended so */
    ngx_str_t                     message;      /* for PASSED; stream's pool */
};


void ngx_http_llmgw_attempt_start(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_attempt_call(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_attempt_end(ngx_http_llmgw_attempt_t *attempt,
    llmgw_ending_t outcome, llmgw_cause_t cause);
void ngx_http_llmgw_attempt_stop(ngx_http_llmgw_attempt_t *attempt);
void ngx_http_llmgw_attempt_consume(ngx_http_llmgw_attempt_t *attempt);
const llmgw_grpc_callbacks_t *ngx_http_llmgw_attempt_callbacks(void);


#endif /* _NGX_HTTP_LLMGW_ATTEMPT_H_INCLUDED_ */
