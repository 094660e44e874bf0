
/*
 * A stream: one client's request, from its decoded message to its last byte,
 * through as many attempts as it takes.  No protocol is spoken in here: the
 * client's end is front.c and output.c, the replica's is attempt.c, and what
 * follows an attempt's end is decided by core/resume.c.
 *
 *     begin
 *       |        full: waits in the line
 *       v  +-----------------------------+
 *     claim <----------------------------+
 *       |  ^    no replica, queue full -----------> finish with a reason
 *       |  |
 *       v  | another one takes over: DRAINING, FULL, REFUSED, FAILED
 *    attempt ----+
 *       |        \-- tries used up ---------------> finish: tries_exhausted
 *       |        \-- PASSED ----------------------> finish: replica's answer
 *       | tokens
 *       v
 *     FINAL --------------------------------------> finish: OK
 *
 *    at any time: deadline -> finish: DEADLINE_EXCEEDED
 *                 client gone -> cleanup, the attempt is cancelled
 *
 * A hedged stream has two attempts, its legs, until the first token: who
 * brings it serves, and the other is cancelled in that same moment.  A leg
 * that fails before leaves the other running, as if it had never been.
 */

#include "front/output.h"
#include "front/stream.h"
#include "upstream/pool.h"


static void ngx_http_llmgw_stream_turn(ngx_http_llmgw_claim_t *claim);
static ngx_uint_t ngx_http_llmgw_stream_claim(
    ngx_http_llmgw_stream_t *stream);
static ngx_uint_t ngx_http_llmgw_stream_claims_again(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_claim_rc_t rc);
static void ngx_http_llmgw_stream_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed);
static void ngx_http_llmgw_stream_no_replica(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_claim_rc_t rc);
static void ngx_http_llmgw_stream_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_stream_sent(ngx_http_llmgw_stream_t *stream);
static ngx_http_llmgw_attempt_t *ngx_http_llmgw_stream_other(
    ngx_http_llmgw_attempt_t *leg);
static ngx_uint_t ngx_http_llmgw_stream_leg_ended(
    ngx_http_llmgw_attempt_t *leg);
static ngx_uint_t ngx_http_llmgw_stream_ended(ngx_http_llmgw_attempt_t *leg);
static void ngx_http_llmgw_stream_note(ngx_http_llmgw_attempt_t *attempt,
    llmgw_next_t next);
static void ngx_http_llmgw_stream_over(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason);
static void ngx_http_llmgw_stream_release(ngx_http_llmgw_stream_t *stream);


void
ngx_http_llmgw_stream_begin(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_timer_init(stream);

    stream->legs[0].stream = stream;
    stream->legs[1].stream = stream;
    stream->claim.turn = ngx_http_llmgw_stream_turn;
    stream->resume.tries_max = stream->conf->tries;
    stream->resume.failovers_max = NGX_HTTP_LLMGW_MAX_FAILOVERS;

    stream->running = 1;
    ngx_http_llmgw_pool_stream_begins(stream->pool);

    if (ngx_http_llmgw_stream_claim(stream) || stream->waits) {
        return;
    }

    ngx_http_llmgw_hedge_later(stream);
}


/* The head of the line is ours. */

static void
ngx_http_llmgw_stream_turn(ngx_http_llmgw_claim_t *claim)
{
    ngx_connection_t         *c;
    ngx_http_llmgw_stream_t  *stream;

    stream = (ngx_http_llmgw_stream_t *)
                 ((char *) claim - offsetof(ngx_http_llmgw_stream_t, claim));
    c = stream->request->connection;

    if (!ngx_http_llmgw_stream_claim(stream) && !stream->waits
        && stream->tokens == 0)
    {
        ngx_http_llmgw_hedge_later(stream);
    }

    ngx_http_run_posted_requests(c);
}


/* 1: there is no replica, the stream is finished and may be gone. */

static ngx_uint_t
ngx_http_llmgw_stream_claim(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_attempt_t   *leg;
    ngx_http_llmgw_claim_rc_t   rc;

    leg = &stream->legs[0];
    stream->claim.is_urgent = (stream->tokens > 0);
    stream->claim.is_last = llmgw_resume_is_last_try(&stream->resume);

    do {
        rc = ngx_http_llmgw_claim(&stream->claim, &leg->lease, &stream->route);
    } while (ngx_http_llmgw_stream_claims_again(stream, rc));

    stream->waits = (rc == NGX_HTTP_LLMGW_WAITS);

    switch (rc) {

    case NGX_HTTP_LLMGW_LEASED:
        ngx_http_llmgw_stream_start(stream, leg);
        return 0;

    case NGX_HTTP_LLMGW_WAITS:
        stream->saw_full = 0;
        ngx_http_llmgw_timer_arm(stream);
        return 0;

    default:
        ngx_http_llmgw_stream_no_replica(stream, rc);
        return 1;
    }
}


/* 1: those who failed it are worth another try, or the line is. */

static ngx_uint_t
ngx_http_llmgw_stream_claims_again(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_claim_rc_t rc)
{
    if (rc == NGX_HTTP_LLMGW_EXCLUDED && stream->saw_full
        && (stream->pool->conf->queue_size || !stream->may_restart))
    {
        /* not again to those who are full: in the line, where they stood */
        stream->claim.to_line = 1;
        stream->saw_full = 0;
        return 1;
    }

    if (!stream->may_restart
        || (rc != NGX_HTTP_LLMGW_EXCLUDED && rc != NGX_HTTP_LLMGW_ASIDE
            && rc != NGX_HTTP_LLMGW_OPEN))
    {
        return 0;
    }

    stream->may_restart = 0;
    stream->saw_full = 0;
    ngx_http_llmgw_claim_clear_excluded(&stream->claim);

    return 1;
}


static void
ngx_http_llmgw_stream_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed)
{
    ngx_http_llmgw_claim_exclude(&stream->claim, stream->request->pool,
                                 replica, failed);
    stream->may_restart |= failed;
}


/* The leg has its lease. */

void
ngx_http_llmgw_stream_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg)
{
    u_char                    *p;
    ngx_http_llmgw_replica_t  *replica;

    if (stream->attempts++ == 0) {
        stream->queue_ms = ngx_current_msec - stream->start_ms;
    }

    /* for the log: the replica itself may be gone by then */

    replica = leg->lease.replica;
    p = ngx_pstrdup(stream->request->pool, &replica->node.str);

    stream->replica.data = p;
    stream->replica.len = p ? replica->node.str.len : 0;

    if (stream->tokens) {
        ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                      "llmgw: stream goes on at replica \"%V\" behind %ui "
                      "tokens", &stream->replica, stream->tokens);
    }

    ngx_http_llmgw_attempt_start(leg);
    ngx_http_llmgw_timer_arm(stream);
}


static void
ngx_http_llmgw_stream_no_replica(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_claim_rc_t rc)
{
    static ngx_str_t  full = ngx_string("all replicas are full");
    static ngx_str_t  open = ngx_string("the circuits of all are open");
    static ngx_str_t  none = ngx_string("no replica can be used");

    switch (rc) {

    case NGX_HTTP_LLMGW_FULL:
    case NGX_HTTP_LLMGW_ASIDE:
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                                     "queue_full", &full);
        break;

    case NGX_HTTP_LLMGW_OPEN:
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_UNAVAILABLE,
                                     "circuits_open", &open);
        break;

    default:
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_UNAVAILABLE,
                                     "no_replicas", &none);
        break;
    }
}


/* Within a callback: nothing may be finished here. */

void
ngx_http_llmgw_stream_token(ngx_http_llmgw_attempt_t *attempt,
    const u_char *message, size_t len)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = attempt->stream;

    if (stream->serving == NULL) {
        stream->serving = attempt;
        stream->may_hedge = 0;
        stream->rearm = 1;

        ngx_http_llmgw_attempt_stop(ngx_http_llmgw_stream_other(attempt));
    }

    stream->tokens++;
    stream->pool->worker->coalesce.load.tokens++;

    if (!stream->has_first_token) {
        stream->has_first_token = 1;
        stream->first_token_ms = ngx_current_msec - stream->start_ms;
        stream->hedged = (attempt == &stream->legs[1]);

        if (stream->has_second) {
            ngx_http_llmgw_metrics_hedge(stream->pool->zone,
                                         stream->hedged
                                         ? NGX_HTTP_LLMGW_HEDGE_WON
                                         : NGX_HTTP_LLMGW_HEDGE_LOST);
        }
    }

    ngx_http_llmgw_stream_count(stream, attempt->replica);

    if (ngx_http_llmgw_output_append(stream, message, len) != NGX_OK) {
        stream->out_failed = 1;
    }

    if (!stream->blocked || stream->out_failed) {
        ngx_http_llmgw_worker_post(stream);     /* else nginx calls us */
    }
}


static void
ngx_http_llmgw_stream_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica)
{
    ngx_uint_t  is_first;

    is_first = (stream->tokens == 1);

    ngx_http_llmgw_metrics_token(stream->pool->zone, replica->slot, is_first,
                                 is_first ? stream->first_token_ms
                                 : ngx_current_msec - stream->token_ms);

    stream->token_ms = ngx_current_msec;
}


static ngx_http_llmgw_attempt_t *
ngx_http_llmgw_stream_other(ngx_http_llmgw_attempt_t *leg)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = leg->stream;

    return leg == &stream->legs[0] ? &stream->legs[1] : &stream->legs[0];
}


/* Posted: an attempt has ended, or tokens are to be flushed, or both. */

void
ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream)
{
    if (stream->out_failed || stream->request->connection->error) {
        ngx_http_llmgw_stream_abort(stream);
        return;
    }

    if (ngx_http_llmgw_stream_leg_ended(&stream->legs[1])
        || ngx_http_llmgw_stream_leg_ended(&stream->legs[0]))
    {
        return;
    }

    if (stream->rearm) {
        stream->rearm = 0;
        ngx_http_llmgw_timer_arm(stream);
    }

    switch (ngx_http_llmgw_output_flush(stream)) {

    case NGX_OK:
        ngx_http_llmgw_stream_sent(stream);
        break;

    case NGX_AGAIN:
        stream->blocked = 1;
        break;

    default:
        ngx_http_llmgw_stream_abort(stream);
        break;
    }
}


/* The client has all that there was. */

static void
ngx_http_llmgw_stream_sent(ngx_http_llmgw_stream_t *stream)
{
    stream->blocked = 0;

    if (stream->serving) {
        ngx_http_llmgw_attempt_consume(stream->serving);
    }
}


/* The client takes bytes again.  Its slowness was not the replica's. */

void
ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream)
{
    if (stream->serving) {
        stream->serving->activity_ms = ngx_current_msec;
    }

    if (ngx_http_llmgw_output_is_sent(stream)) {
        ngx_http_llmgw_stream_sent(stream);
        return;
    }

    ngx_http_llmgw_worker_post(stream);
}


/* 1: the stream is finished and may be gone. */

static ngx_uint_t
ngx_http_llmgw_stream_leg_ended(ngx_http_llmgw_attempt_t *leg)
{
    ngx_http_llmgw_stream_t   *stream;
    ngx_http_llmgw_attempt_t  *other;

    if (leg->replica == NULL || !leg->ended) {
        return 0;
    }

    stream = leg->stream;
    other = ngx_http_llmgw_stream_other(leg);

    if (other->replica == NULL || leg->outcome == LLMGW_ENDING_PASSED) {
        ngx_http_llmgw_attempt_stop(other);
        return ngx_http_llmgw_stream_ended(leg);
    }

    /* the other one goes on alone */

    ngx_http_llmgw_stream_note(leg, LLMGW_NEXT_AGAIN);
    ngx_http_llmgw_stream_exclude(stream, leg->replica,
                                  leg->outcome == LLMGW_ENDING_FAILED);
    ngx_http_llmgw_attempt_stop(leg);

    return 0;
}


/* What follows the stream's only attempt.  1: it is finished. */

static ngx_uint_t
ngx_http_llmgw_stream_ended(ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_resume_step_t        step;
    ngx_http_llmgw_stream_t   *stream;
    ngx_http_llmgw_replica_t  *replica;
    static ngx_str_t           exhausted = ngx_string("no replica finished it");

    stream = attempt->stream;
    replica = attempt->replica;

    step = llmgw_resume_next(&stream->resume, attempt->outcome,
                             attempt->tokens, stream->tokens);

    ngx_http_llmgw_stream_note(attempt, step.next);
    ngx_http_llmgw_attempt_stop(attempt);
    stream->serving = NULL;

    switch (step.next) {

    case LLMGW_NEXT_FINISH:
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_OK, NULL, NULL);
        return 1;

    case LLMGW_NEXT_PASS:
        ngx_http_llmgw_stream_finish(stream, attempt->status, NULL,
                                     &attempt->message);
        return 1;

    case LLMGW_NEXT_GIVE_UP:
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_UNAVAILABLE,
                                     "tries_exhausted", &exhausted);
        return 1;

    case LLMGW_NEXT_AGAIN:
        break;
    }

    stream->retried = 1;
    stream->failovers += (stream->tokens > 0);

    if (stream->tokens) {
        ngx_http_llmgw_metrics_failover(stream->pool->zone, attempt->cause);
    }

    ngx_http_llmgw_timer_attempt_failed(attempt);

    if (step.clear_excluded) {
        ngx_http_llmgw_claim_clear_excluded(&stream->claim);
    }

    if (step.exclude) {
        ngx_http_llmgw_stream_exclude(stream, replica, step.counted);
    }

    stream->saw_full |= (attempt->outcome == LLMGW_ENDING_FULL);

    return ngx_http_llmgw_stream_claim(stream);
}


static void
ngx_http_llmgw_stream_note(ngx_http_llmgw_attempt_t *attempt,
    llmgw_next_t next)
{
    ngx_log_t                *log;
    ngx_uint_t                level;
    ngx_http_llmgw_stream_t  *stream;

    stream = attempt->stream;
    log = stream->request->connection->log;

    if (attempt->outcome != LLMGW_ENDING_FAILED) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "llmgw: attempt at \"%V\" ends, outcome %d",
                       &attempt->replica->node.str, attempt->outcome);
        return;
    }

    ngx_http_llmgw_metrics_attempt_failed(stream->pool->zone, attempt->cause);

    level = (next == LLMGW_NEXT_GIVE_UP) ? NGX_LOG_ERR : NGX_LOG_WARN;

    ngx_log_error(level, log, 0,
                  "llmgw: stream lost replica \"%V\" after %ui tokens, "
                  "cause %s, status %i, %s", &attempt->replica->node.str,
                  stream->tokens, llmgw_cause_name(attempt->cause),
                  attempt->status,
                  next == LLMGW_NEXT_GIVE_UP ? "giving up"
                                             : "another takes over");
}


/* Once for each stream. */

static void
ngx_http_llmgw_stream_over(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason)
{
    stream->status = status;
    stream->reason = reason;

    ngx_http_llmgw_metrics_request(stream->pool->zone, status, reason);
    ngx_http_llmgw_metrics_time(stream->pool->zone,
                                NGX_HTTP_LLMGW_HISTOGRAM_request_seconds,
                                ngx_current_msec - stream->start_ms);
}


/* The request may be gone when this returns. */

void
ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message)
{
    if (status != LLMGW_GRPC_OK) {
        ngx_log_error(NGX_LOG_INFO, stream->request->connection->log, 0,
                      "llmgw: answered %s%s%s", llmgw_grpc_status_name(status),
                      reason ? ", " : "", reason ? reason : "");
    }

    ngx_http_llmgw_stream_over(stream, status, reason);
    ngx_http_llmgw_stream_release(stream);
    ngx_http_llmgw_output_finish(stream, status, reason, message);
}


/* Without an answer: there is nobody to read it, or no memory for it. */

void
ngx_http_llmgw_stream_abort(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_stream_over(stream, LLMGW_GRPC_CANCELLED, "client_gone");
    ngx_http_llmgw_stream_release(stream);
    ngx_http_finalize_request(stream->request, NGX_ERROR);
}


/* All that the stream holds beyond its request's pool; idempotent. */

static void
ngx_http_llmgw_stream_release(ngx_http_llmgw_stream_t *stream)
{
    stream->finished = 1;

    ngx_http_llmgw_claim_leave(&stream->claim);
    ngx_http_llmgw_claim_clear_excluded(&stream->claim);
    ngx_http_llmgw_attempt_stop(&stream->legs[0]);
    ngx_http_llmgw_attempt_stop(&stream->legs[1]);
    ngx_http_llmgw_worker_forget(stream);
    ngx_http_llmgw_timer_done(stream);

    if (stream->running) {
        stream->running = 0;
        ngx_http_llmgw_pool_stream_ends(stream->pool);
    }
}


void
ngx_http_llmgw_stream_cleanup(void *data)
{
    ngx_http_llmgw_stream_t  *stream = data;

    if (stream->log_handler) {
        stream->request->log_handler = stream->log_handler;
    }

    if (stream->claim.pool && !stream->finished) {
        ngx_http_llmgw_stream_over(stream, LLMGW_GRPC_CANCELLED,
                                   "client_gone");
        ngx_http_llmgw_stream_release(stream);
    }
}
