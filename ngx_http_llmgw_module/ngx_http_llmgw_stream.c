
/*
 * A stream: one client's request, from its decoded message to its last byte,
 * through as many attempts as it takes.  No protocol is spoken in here: the
 * client's end is front.c and output.c, the replica's is attempt.c, and what
 * follows an attempt's end is decided by core/resume.c.
 *
 *     begin
 *       |
 *       v         no replica, none with room
 *     pick -------------------------------------> finish with a reason
 *       |  ^
 *       v  | another one takes over: DRAINING, FULL, REFUSED, FAILED
 *    attempt ----+
 *       |        \-- tries used up -------------> finish: tries_exhausted
 *       |        \-- PASSED --------------------> finish: replica's answer
 *       | tokens
 *       v
 *     FINAL ------------------------------------> finish: OK
 *
 *    at any time: deadline -> finish: DEADLINE_EXCEEDED
 *                 client gone -> cleanup, the attempt is cancelled
 *
 * Each stream has one timer.  It is not cancelable, so that a worker that
 * shall exit waits for the stream, and it is not moved at each token: its
 * handler looks how long the silence has been and waits for the rest.  Only an
 * attempt's first token moves it, from the one time limit to the other.
 */

#include "ngx_http_llmgw.h"


static ngx_uint_t ngx_http_llmgw_stream_pick(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_note_replica(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_stream_no_replica(ngx_http_llmgw_stream_t *stream,
    llmgw_pick_rc_t rc);
static ngx_uint_t ngx_http_llmgw_stream_ended(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_stream_clear_excluded(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_log(ngx_http_llmgw_stream_t *stream,
    llmgw_next_t next);
static void ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message);
static void ngx_http_llmgw_stream_release(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_timer_handler(ngx_event_t *ev);
static ngx_msec_t ngx_http_llmgw_stream_silence(
    ngx_http_llmgw_stream_t *stream, llmgw_cause_t *cause);
static void ngx_http_llmgw_stream_arm(ngx_http_llmgw_stream_t *stream);


void
ngx_http_llmgw_stream_begin(ngx_http_llmgw_stream_t *stream)
{
    stream->timer.handler = ngx_http_llmgw_stream_timer_handler;
    stream->timer.data = stream;
    stream->timer.log = stream->request->connection->log;

    stream->attempt.stream = stream;
    stream->resume.tries_max = stream->conf->tries;
    stream->resume.failovers_max = NGX_HTTP_LLMGW_MAX_FAILOVERS;

    stream->running = 1;
    ngx_http_llmgw_pool_stream_begins(stream->pool);

    (void) ngx_http_llmgw_stream_pick(stream);
}


/* 1: there is none, the stream is finished and may be gone. */

static ngx_uint_t
ngx_http_llmgw_stream_pick(ngx_http_llmgw_stream_t *stream)
{
    llmgw_route_t              route;
    llmgw_pick_rc_t            rc;
    ngx_http_llmgw_replica_t  *replica;

    rc = ngx_http_llmgw_table_pick(stream, &replica, &route);

    if (rc == LLMGW_PICK_EXCLUDED && stream->may_restart) {
        /* each has failed once, and there are tries left: start over */
        ngx_http_llmgw_stream_clear_excluded(stream);
        rc = ngx_http_llmgw_table_pick(stream, &replica, &route);
    }

    if (rc != LLMGW_PICK_OK) {
        ngx_http_llmgw_stream_no_replica(stream, rc);
        return 1;
    }

    if (stream->attempts++ == 0) {
        stream->queue_ms = ngx_current_msec - stream->start_ms;
    }

    stream->route = route;
    ngx_http_llmgw_stream_note_replica(stream, replica);

    ngx_http_llmgw_attempt_start(&stream->attempt, replica);
    ngx_http_llmgw_stream_arm(stream);

    return 0;
}


/* For the log: the replica itself may be gone by then. */

static void
ngx_http_llmgw_stream_note_replica(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica)
{
    u_char  *p;

    p = ngx_pstrdup(stream->request->pool, &replica->node.str);

    stream->replica.data = p;
    stream->replica.len = p ? replica->node.str.len : 0;
}


static void
ngx_http_llmgw_stream_no_replica(ngx_http_llmgw_stream_t *stream,
    llmgw_pick_rc_t rc)
{
    static ngx_str_t  full = ngx_string("all replicas are full");
    static ngx_str_t  none = ngx_string("no replica can be used");

    if (rc == LLMGW_PICK_FULL
        || (rc == LLMGW_PICK_EXCLUDED
            && stream->attempt.outcome == LLMGW_OUTCOME_FULL))
    {
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                                     "queue_full", &full);
        return;
    }

    ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_UNAVAILABLE,
                                 "no_replicas", &none);
}


/* Within a callback: nothing may be finished here. */

void
ngx_http_llmgw_stream_token(ngx_http_llmgw_stream_t *stream, ngx_str_t *token,
    ngx_uint_t final)
{
    stream->tokens++;

    if (stream->attempt.tokens == 1) {
        stream->rearm = 1;
    }

    if (!stream->has_first_token) {
        stream->has_first_token = 1;
        stream->first_token_ms = ngx_current_msec - stream->start_ms;
    }

    if (ngx_http_llmgw_output_append(stream, token, final) != NGX_OK) {
        stream->out_failed = 1;
    }

    ngx_http_llmgw_worker_post(stream);
}


/* Posted: the attempt has ended, or tokens are to be flushed, or both. */

void
ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream)
{
    if (stream->out_failed) {
        ngx_http_llmgw_stream_release(stream);
        ngx_http_finalize_request(stream->request, NGX_ERROR);
        return;
    }

    if (stream->attempt.replica && stream->attempt.ended
        && ngx_http_llmgw_stream_ended(stream))
    {
        return;
    }

    if (stream->finished) {
        return;
    }

    if (stream->rearm) {
        stream->rearm = 0;
        ngx_http_llmgw_stream_arm(stream);
    }

    switch (ngx_http_llmgw_output_flush(stream)) {

    case NGX_OK:
        stream->blocked = 0;
        ngx_http_llmgw_attempt_consume(&stream->attempt);
        break;

    case NGX_AGAIN:
        stream->blocked = 1;
        break;

    default:
        ngx_http_llmgw_stream_release(stream);
        ngx_http_finalize_request(stream->request, NGX_ERROR);
    }
}


/* The client takes bytes again.  Its slowness was not the replica's. */

void
ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream)
{
    stream->attempt.activity_ms = ngx_current_msec;
    ngx_http_llmgw_stream_run(stream);
}


/* What follows the attempt.  1: the stream is finished and may be gone. */

static ngx_uint_t
ngx_http_llmgw_stream_ended(ngx_http_llmgw_stream_t *stream)
{
    llmgw_resume_step_t        step;
    ngx_http_llmgw_attempt_t  *attempt;
    ngx_http_llmgw_replica_t  *replica;
    static ngx_str_t           exhausted = ngx_string("no replica finished it");

    attempt = &stream->attempt;
    replica = attempt->replica;

    step = llmgw_resume_next(&stream->resume, attempt->outcome,
                             attempt->tokens, stream->tokens);

    ngx_http_llmgw_stream_log(stream, step.next);
    ngx_http_llmgw_attempt_stop(attempt);

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

    if (stream->tokens) {
        stream->failovers++;
    }

    if (step.clear_excluded) {
        ngx_http_llmgw_stream_clear_excluded(stream);
    }

    if (step.exclude) {
        ngx_http_llmgw_stream_exclude(stream, replica);
    }

    stream->may_restart = step.counted;

    return ngx_http_llmgw_stream_pick(stream);
}


static void
ngx_http_llmgw_stream_log(ngx_http_llmgw_stream_t *stream, llmgw_next_t next)
{
    ngx_log_t                 *log;
    ngx_uint_t                 level;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = &stream->attempt;
    log = stream->request->connection->log;

    if (attempt->outcome != LLMGW_OUTCOME_FAILED) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "llmgw: attempt at \"%V\" ends, outcome %d",
                       &attempt->replica->node.str, attempt->outcome);
        return;
    }

    level = (next == LLMGW_NEXT_GIVE_UP) ? NGX_LOG_ERR : NGX_LOG_WARN;

    ngx_log_error(level, log, 0,
                  "llmgw: request \"%V\" lost replica \"%V\" after %ui "
                  "tokens, cause %s, status %i, %s",
                  &stream->request_id, &attempt->replica->node.str,
                  stream->tokens, llmgw_cause_name(attempt->cause),
                  attempt->status,
                  next == LLMGW_NEXT_GIVE_UP ? "giving up"
                                             : "another takes over");
}


static void
ngx_http_llmgw_stream_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_replica_t  **excluded;

    if (stream->excluded.elts == NULL
        && ngx_array_init(&stream->excluded, stream->request->pool, 4,
                          sizeof(void *))
           != NGX_OK)
    {
        return;
    }

    excluded = ngx_array_push(&stream->excluded);
    if (excluded) {
        *excluded = replica;
        replica->holders++;
    }
}


static void
ngx_http_llmgw_stream_clear_excluded(ngx_http_llmgw_stream_t *stream)
{
    ngx_uint_t                  i;
    ngx_http_llmgw_replica_t  **excluded;

    excluded = stream->excluded.elts;

    for (i = 0; i < stream->excluded.nelts; i++) {
        excluded[i]->holders--;
    }

    stream->excluded.nelts = 0;
}


/* The request may be gone when this returns. */

static void
ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_grpc_status_t status, const char *reason, ngx_str_t *message)
{
    ngx_http_llmgw_stream_release(stream);
    ngx_http_llmgw_output_finish(stream, status, reason, message);
}


/* All that the stream holds beyond its request's pool; idempotent. */

static void
ngx_http_llmgw_stream_release(ngx_http_llmgw_stream_t *stream)
{
    stream->finished = 1;

    ngx_http_llmgw_attempt_stop(&stream->attempt);
    ngx_http_llmgw_worker_forget(stream);
    ngx_http_llmgw_stream_clear_excluded(stream);

    if (stream->timer.timer_set) {
        ngx_del_timer(&stream->timer);
    }

    if (stream->running) {
        stream->running = 0;
        ngx_http_llmgw_pool_stream_ends(stream->pool);
    }
}


void
ngx_http_llmgw_stream_cleanup(void *data)
{
    ngx_http_llmgw_stream_release(data);
}


static void
ngx_http_llmgw_stream_timer_handler(ngx_event_t *ev)
{
    llmgw_cause_t             cause;
    ngx_http_llmgw_stream_t  *stream = ev->data;
    static ngx_str_t          passed = ngx_string("deadline exceeded");

    if (stream->has_deadline
        && (ngx_msec_int_t) (stream->deadline_ms - ngx_current_msec) <= 0)
    {
        ngx_http_llmgw_stream_finish(stream, LLMGW_GRPC_DEADLINE_EXCEEDED,
                                     NULL, &passed);
        return;
    }

    if (!stream->blocked && !stream->attempt.ended
        && ngx_http_llmgw_stream_silence(stream, &cause) == 0)
    {
        ngx_http_llmgw_attempt_fail(&stream->attempt, LLMGW_OUTCOME_FAILED,
                                    cause);
    }

    ngx_http_llmgw_stream_arm(stream);
}


/* How long the replica may still be silent; 0: too long already. */

static ngx_msec_t
ngx_http_llmgw_stream_silence(ngx_http_llmgw_stream_t *stream,
    llmgw_cause_t *cause)
{
    ngx_msec_t                 limit, silent;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = &stream->attempt;

    if (attempt->tokens) {
        *cause = LLMGW_CAUSE_TOKEN_TIMEOUT;
        limit = stream->conf->token_timeout;

    } else {
        *cause = LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT;
        limit = stream->conf->first_token_timeout;
    }

    silent = ngx_current_msec - attempt->activity_ms;

    return silent < limit ? limit - silent : 0;
}


/* For the earlier of deadline and silence; never earlier than is set. */

static void
ngx_http_llmgw_stream_arm(ngx_http_llmgw_stream_t *stream)
{
    ngx_msec_t      wait;
    llmgw_cause_t   cause;
    ngx_msec_int_t  left;

    wait = stream->blocked ? stream->conf->token_timeout
                           : ngx_http_llmgw_stream_silence(stream, &cause);
    wait = ngx_max(wait, 1);

    if (stream->has_deadline) {
        left = (ngx_msec_int_t) (stream->deadline_ms - ngx_current_msec);
        wait = ngx_min(wait, (ngx_msec_t) ngx_max(left, 1));
    }

    /* nginx would keep an old time that differs by little: ours may not */

    if (stream->timer.timer_set) {
        ngx_del_timer(&stream->timer);
    }

    ngx_add_timer(&stream->timer, wait);
}
