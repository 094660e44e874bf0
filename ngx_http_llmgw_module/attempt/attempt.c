
/*
 * An attempt: one call to one replica for a stream.
 *
 * It begins with a lease and ends exactly once, with an ending of
 * core/resume.h; the lease ends at the same moment.  generate.c knows what an
 * attempt asks its replica, and what the answer means.  This file knows neither
 * the attempt's owner nor the client's protocol: it notifies the owner by the
 * events of ngx_http_llmgw_ask_t.
 *
 * Ending and stopping are two steps.  Most attempts end inside of a callback,
 * where neither the request nor the session may be touched; the owner notes the
 * end, and stops the attempt later: the call, if it is still open, is reset,
 * and what the replica sends after that is ignored.
 */

#include "attempt/attempt.h"
#include "fleet/replica.h"


#define NGX_HTTP_LLMGW_CANCEL  8        /* RFC 9113, 7 */


static void ngx_http_llmgw_attempt_wait(ngx_http_llmgw_attempt_t *attempt);


void
ngx_http_llmgw_attempt_start(ngx_http_llmgw_attempt_t *attempt,
    const ngx_http_llmgw_ask_t *ask, ngx_uint_t from)
{
    attempt->ask = ask;
    attempt->from = from;
    attempt->replica = attempt->lease.replica;
    attempt->draining = 0;
    attempt->has_pushback = 0;
    attempt->reported = ngx_http_llmgw_replica_reports(attempt->replica,
                                                       ask->model) != 0;
    attempt->denies = 0;
    attempt->resumes = from || (ask->delivered && ask->delivered->has_begun);
    attempt->waits = 0;
    attempt->call = NULL;
    attempt->unacked = 0;
    attempt->status = LLMGW_GRPC_NO_STATUS;
    attempt->refusal = NULL;
    attempt->shards = NULL;

    ngx_memzero(&attempt->state, sizeof(llmgw_attempt_t));
    attempt->state.is_running = 1;
    attempt->state.heard_ms = ngx_current_msec;
    attempt->state.start_ms = ngx_current_msec;

    ngx_queue_insert_tail(&attempt->replica->attempts, &attempt->queue);

    ngx_http_llmgw_attempt_call(attempt);
}


void
ngx_http_llmgw_attempt_call(ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_session_t  *session;

    session = ngx_http_llmgw_session_get(attempt->replica,
                                         attempt->ask->connect_timeout);
    if (session == NULL) {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED,
                                   LLMGW_CAUSE_INTERNAL);
        return;
    }

    attempt->session = session;

    if (!session->ready || !llmgw_grpc_session_can_call(session->grpc)) {
        ngx_http_llmgw_attempt_wait(attempt);
        return;
    }

    if (ngx_http_llmgw_generate_send(attempt) != NGX_OK) {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED,
                                   LLMGW_CAUSE_INTERNAL);
    }

    ngx_http_llmgw_session_wake(session);
}


static void
ngx_http_llmgw_attempt_wait(ngx_http_llmgw_attempt_t *attempt)
{
    attempt->waits = 1;
    ngx_queue_insert_tail(&attempt->session->waiting, &attempt->wait_queue);
}


void
ngx_http_llmgw_attempt_end(ngx_http_llmgw_attempt_t *attempt,
    llmgw_ending_t ending, llmgw_cause_t cause)
{
    if (attempt->state.has_ended) {
        return;
    }

    if (cause == LLMGW_CAUSE_CONNECT
        && ngx_http_llmgw_replica_is_absent(attempt->replica))
    {
        ending = LLMGW_ENDING_ABSENT;
    }

    attempt->state.has_ended = 1;
    attempt->state.ending = ending;
    attempt->state.cause = cause;

    if (attempt->waits) {
        attempt->waits = 0;
        ngx_queue_remove(&attempt->wait_queue);

    } else if (cause == LLMGW_CAUSE_TOKEN_TIMEOUT
               || cause == LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT)
    {
        ngx_http_llmgw_session_timed_out(attempt->session,
                                         attempt->state.heard_ms);
    }

    ngx_queue_remove(&attempt->queue);

    if (ending == LLMGW_ENDING_FAILED) {
        ngx_http_llmgw_lease_fails(&attempt->lease);
    }

    if (ending != LLMGW_ENDING_AMBIGUOUS) {
        ngx_http_llmgw_lease_end(&attempt->lease,
                                 llmgw_attempt_verdict(ending, cause));
    }

    attempt->ask->events->end(attempt);
}


llmgw_ending_t
ngx_http_llmgw_attempt_ending(ngx_http_llmgw_attempt_t *attempt, int status,
    llmgw_cause_t *cause)
{
    *cause = LLMGW_CAUSE_STATUS;

    switch (status) {

    case LLMGW_GRPC_OK:
        *cause = LLMGW_CAUSE_UNFINISHED;
        return attempt->state.tokens < attempt->limit ? LLMGW_ENDING_FAILED
                                                : LLMGW_ENDING_FINAL;

    case LLMGW_GRPC_FAILED_PRECONDITION:
        /* another replica began the stream: this replica cannot continue it */
        return attempt->resumes && !attempt->state.has_begun
               ? LLMGW_ENDING_UNABLE : LLMGW_ENDING_PASSED;

    case LLMGW_GRPC_NOT_FOUND:
        if (!attempt->denies) {
            return LLMGW_ENDING_PASSED;
        }

        /* fall through */

    case LLMGW_GRPC_UNAUTHENTICATED:
    case LLMGW_GRPC_UNIMPLEMENTED:
        /* not the request's fault: a replica has served tokens of it */
        return attempt->resumes || attempt->state.has_begun
               ? LLMGW_ENDING_FAILED : LLMGW_ENDING_AMBIGUOUS;

    case LLMGW_GRPC_INVALID_ARGUMENT:
    case LLMGW_GRPC_PERMISSION_DENIED:
    case LLMGW_GRPC_OUT_OF_RANGE:
        return LLMGW_ENDING_PASSED;

    case LLMGW_GRPC_UNAVAILABLE:
        if (attempt->draining) {
            *cause = LLMGW_CAUSE_DRAINING;
            return LLMGW_ENDING_DRAINING;
        }
        return LLMGW_ENDING_FAILED;

    case LLMGW_GRPC_RESOURCE_EXHAUSTED:
        if (!attempt->state.has_begun) {
            *cause = LLMGW_CAUSE_FULL;
            return LLMGW_ENDING_FULL;
        }
        return LLMGW_ENDING_FAILED;

    default:
        return LLMGW_ENDING_FAILED;
    }
}


void
ngx_http_llmgw_attempt_move_all(ngx_http_llmgw_replica_t *replica)
{
    ngx_queue_t               *q, *next;
    llmgw_cause_t              cause;
    llmgw_reach_facts_t        facts;
    ngx_http_llmgw_attempt_t  *attempt;

    ngx_http_llmgw_replica_gossip(replica, &facts);

    for (q = ngx_queue_head(&replica->attempts);
         q != ngx_queue_sentinel(&replica->attempts);
         q = next)
    {
        next = ngx_queue_next(q);
        attempt = ngx_queue_data(q, ngx_http_llmgw_attempt_t, queue);
        cause = llmgw_reach_leaves(&replica->reach, &facts, &attempt->state);

        if (cause != LLMGW_CAUSE_NONE) {
            ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED, cause);
        }
    }
}


void
ngx_http_llmgw_attempt_stop(ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_grpc_session_t  *grpc;

    if (attempt->replica == NULL) {
        return;
    }

    /* reset the call first: only then its place at the replica is free */

    if (attempt->call) {
        grpc = llmgw_grpc_stream_session(attempt->call);

        llmgw_grpc_stream_set_data(attempt->call, NULL);
        llmgw_grpc_stream_reset(attempt->call, NGX_HTTP_LLMGW_CANCEL);
        attempt->call = NULL;

        ngx_http_llmgw_session_wake(llmgw_grpc_session_data(grpc));
    }

    ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_CANCELLED,
                               LLMGW_CAUSE_NONE);

    ngx_http_llmgw_lease_end(&attempt->lease, LLMGW_VERDICT_NEUTRAL);

    attempt->state.is_running = 0;
    attempt->replica = NULL;
    attempt->session = NULL;
}


void
ngx_http_llmgw_attempt_consume(ngx_http_llmgw_attempt_t *attempt)
{
    if (attempt->unacked == 0) {
        return;
    }

    if (attempt->call && llmgw_grpc_stream_consume(attempt->call,
                                                   attempt->unacked))
    {
        ngx_http_llmgw_session_wake(attempt->session);
    }

    attempt->unacked = 0;
}
