
/*
 * How a stream is served, by as many attempts as it takes.  core/resume.c
 * decides what follows when an attempt has ended; upstream/attempt.c speaks
 * the replica's protocol.
 *
 *     begin
 *       |        full: waits in the queue
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
 *     FINAL --------------------------------------> finish: served
 *
 * A hedged stream has two attempts until its first token.  The attempt that
 * brings the token serves the stream, and the other is cancelled at once.  If
 * one of the two fails before that, the other runs on alone.
 */

#include "front/clients.h"
#include "front/stream.h"
#include "upstream/pool.h"


static void ngx_http_llmgw_serve_turn(ngx_http_llmgw_claim_t *claim);
static ngx_uint_t ngx_http_llmgw_serve_claim(ngx_http_llmgw_stream_t *stream);
static llmgw_admission_rc_t ngx_http_llmgw_serve_claim_any(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_serve_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed);
static void ngx_http_llmgw_serve_token(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token);
static void ngx_http_llmgw_serve_end(ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_serve_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica);
static ngx_http_llmgw_stream_t *ngx_http_llmgw_serve_owner(
    ngx_http_llmgw_attempt_t *attempt);
static ngx_http_llmgw_attempt_t *ngx_http_llmgw_serve_other(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt);
static ngx_uint_t ngx_http_llmgw_serve_attempt_ended(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt);
static llmgw_ending_t ngx_http_llmgw_serve_ending(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt);
static ngx_uint_t ngx_http_llmgw_serve_last_ended(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_serve_note(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_next_t next);


static const ngx_http_llmgw_attempt_events_t  ngx_http_llmgw_serve_events = {
    .token = ngx_http_llmgw_serve_token,
    .end = ngx_http_llmgw_serve_end,
};


void
ngx_http_llmgw_serve_begin(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_claim_init(&stream->claim, stream->pool, stream->key);

    stream->ask.events = &ngx_http_llmgw_serve_events;
    stream->claim.turn = ngx_http_llmgw_serve_turn;
    stream->resume.tries_max = stream->conf->tries;
    stream->resume.failovers_max = NGX_HTTP_LLMGW_MAX_FAILOVERS;

    if (ngx_http_llmgw_serve_claim(stream) || stream->waits) {
        return;
    }

    ngx_http_llmgw_hedge_later(stream);
}


/* Called when a waiting stream is at the queue's head: it claims again. */

static void
ngx_http_llmgw_serve_turn(ngx_http_llmgw_claim_t *claim)
{
    ngx_connection_t         *c;
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_queue_data(claim, ngx_http_llmgw_stream_t, claim);
    c = stream->request->connection;

    if (!ngx_http_llmgw_serve_claim(stream) && !stream->waits
        && stream->record.tokens == 0)
    {
        ngx_http_llmgw_hedge_later(stream);
    }

    ngx_http_run_posted_requests(c);
}


/*
 * Claims a replica and starts the attempt, or waits in the queue.  1: neither
 * was possible; the stream is finished and may be gone.
 */

static ngx_uint_t
ngx_http_llmgw_serve_claim(ngx_http_llmgw_stream_t *stream)
{
    llmgw_admission_rc_t       rc;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = &stream->attempts[0];
    stream->claim.ask.is_urgent = (stream->record.tokens > 0);
    stream->claim.ask.is_last = stream->doubt
                            || llmgw_resume_is_last_try(&stream->resume);

    rc = ngx_http_llmgw_serve_claim_any(stream);

    if (stream->doubt && rc != LLMGW_ADMISSION_LEASED
        && rc != LLMGW_ADMISSION_WAITS && rc != LLMGW_ADMISSION_FULL)
    {
        ngx_http_llmgw_doubt_answer(stream);
        return 1;
    }

    stream->waits = (rc == LLMGW_ADMISSION_WAITS);

    switch (rc) {

    case LLMGW_ADMISSION_LEASED:
        ngx_http_llmgw_serve_start(stream, attempt);
        return 0;

    case LLMGW_ADMISSION_WAITS:
        ngx_http_llmgw_timer_arm(stream);
        return 0;

    case LLMGW_ADMISSION_FULL:
    case LLMGW_ADMISSION_SKIPPABLE:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_QUEUE_FULL);
        return 1;

    case LLMGW_ADMISSION_OPEN:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_CIRCUITS_OPEN);
        return 1;

    case LLMGW_ADMISSION_EXCLUDED:
        /* after its first token: none of the resume group is left */
        ngx_http_llmgw_stream_finish(stream, stream->record.tokens
                                             ? LLMGW_OUTCOME_TRIES_EXHAUSTED
                                             : LLMGW_OUTCOME_NO_REPLICAS);
        return 1;

    default:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_NO_REPLICAS);
        return 1;
    }
}


/*
 * A stream with a doubt waits in the queue only if the other replicas are full,
 * and gives the doubt up, without blame, before it does.  It waits for nothing
 * else, as for a circuit to close: then the client gets the refusal at once.
 */

static llmgw_admission_rc_t
ngx_http_llmgw_serve_claim_any(ngx_http_llmgw_stream_t *stream)
{
    llmgw_admission_rc_t  rc;

    stream->claim.ask.no_wait = (stream->doubt != NULL);

    rc = ngx_http_llmgw_claim(&stream->claim, &stream->attempts[0].lease,
                              &stream->record.route);

    if (stream->doubt == NULL
        || (rc != LLMGW_ADMISSION_FULL && rc != LLMGW_ADMISSION_SKIPPABLE))
    {
        return rc;
    }

    ngx_http_llmgw_doubt_judge(stream, LLMGW_VERDICT_NEUTRAL);

    stream->claim.ask.no_wait = 0;
    stream->claim.ask.to_queue = 1;

    return ngx_http_llmgw_claim(&stream->claim, &stream->attempts[0].lease,
                                &stream->record.route);
}


static void
ngx_http_llmgw_serve_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed)
{
    /* with a doubt a wait drops no exclusion: another replica must answer */

    ngx_http_llmgw_claim_exclude(&stream->claim, stream->request->pool,
                                 replica, failed || stream->doubt);
    stream->claim.ask.may_restart |= failed;
}


void
ngx_http_llmgw_serve_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    (void) ngx_http_llmgw_record_attempt(&stream->record,
                                         stream->request->pool,
                                         &attempt->lease.replica->node.str);

    if (stream->record.tokens) {
        ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                      "llmgw: stream continues at replica \"%V\" after %ui "
                      "tokens", &stream->record.replica,
                      stream->record.tokens);
    }

    ngx_http_llmgw_attempt_start(attempt, &stream->ask, stream->record.tokens);
    ngx_http_llmgw_timer_arm(stream);
}


/* Runs within a callback of the session: it must not finish the stream. */

static void
ngx_http_llmgw_serve_token(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_llmgw_serve_owner(attempt);

    if (stream->serving == NULL) {
        stream->serving = attempt;
        stream->may_hedge = 0;
        stream->rearm = 1;

        ngx_http_llmgw_doubt_judge(stream, LLMGW_VERDICT_FAILURE);
        stream->doubt = NULL;

        ngx_http_llmgw_claim_resume_as(&stream->claim, attempt->replica);
        ngx_http_llmgw_attempt_stop(ngx_http_llmgw_serve_other(stream,
                                                               attempt));
    }

    stream->record.tokens++;
    stream->has_final = token->is_final;
    stream->pool->worker->coalesce.load.tokens++;

    if (ngx_http_llmgw_record_first_token(&stream->record)) {
        stream->record.hedged = (attempt == &stream->attempts[1]);

        if (stream->has_second) {
            ngx_http_llmgw_metrics_hedge(stream->pool->zone,
                                         stream->record.hedged
                                         ? NGX_HTTP_LLMGW_HEDGE_WON
                                         : NGX_HTTP_LLMGW_HEDGE_LOST);
        }
    }

    ngx_http_llmgw_serve_count(stream, attempt->replica);

    if (stream->front->token(stream, token) != NGX_OK) {
        stream->out_failed = 1;
    }

    if (!stream->blocked || stream->out_failed) {
        ngx_http_llmgw_clients_post(stream);    /* else nginx's event does */
    }
}


/* The same: the stream is posted, and handles the end when it runs. */

static void
ngx_http_llmgw_serve_end(ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_clients_post(ngx_http_llmgw_serve_owner(attempt));
}


static void
ngx_http_llmgw_serve_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica)
{
    ngx_uint_t  is_first;

    is_first = (stream->record.tokens == 1);

    ngx_http_llmgw_metrics_token(stream->pool->zone, replica->slot, is_first,
                                 is_first ? stream->record.first_token_ms
                                 : ngx_current_msec - stream->token_ms);

    stream->token_ms = ngx_current_msec;
}


static ngx_http_llmgw_stream_t *
ngx_http_llmgw_serve_owner(ngx_http_llmgw_attempt_t *attempt)
{
    return ngx_queue_data(attempt->ask, ngx_http_llmgw_stream_t, ask);
}


static ngx_http_llmgw_attempt_t *
ngx_http_llmgw_serve_other(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    return attempt == &stream->attempts[0] ? &stream->attempts[1]
                                           : &stream->attempts[0];
}


ngx_uint_t
ngx_http_llmgw_serve_run(ngx_http_llmgw_stream_t *stream)
{
    if (ngx_http_llmgw_serve_attempt_ended(stream, &stream->attempts[1])
        || ngx_http_llmgw_serve_attempt_ended(stream, &stream->attempts[0]))
    {
        return 1;
    }

    if (stream->rearm) {
        stream->rearm = 0;
        ngx_http_llmgw_timer_arm(stream);
    }

    return 0;
}


/* 1: the stream is finished and may be gone. */

static ngx_uint_t
ngx_http_llmgw_serve_attempt_ended(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_attempt_t  *other;

    if (attempt->replica == NULL || !attempt->ended) {
        return 0;
    }

    other = ngx_http_llmgw_serve_other(stream, attempt);

    if (other->replica == NULL || attempt->ending == LLMGW_ENDING_PASSED
        || (attempt->ending == LLMGW_ENDING_DOUBTED
            && !ngx_http_llmgw_doubt_take(stream, attempt)))
    {
        ngx_http_llmgw_attempt_stop(other);
        return ngx_http_llmgw_serve_last_ended(stream, attempt);
    }

    /* the other attempt runs on alone */

    ngx_http_llmgw_serve_note(stream, attempt, LLMGW_NEXT_AGAIN);
    ngx_http_llmgw_serve_exclude(stream, attempt->replica,
                                  attempt->ending == LLMGW_ENDING_FAILED);
    ngx_http_llmgw_attempt_stop(attempt);

    return 0;
}


/*
 * How the attempt ended, for its stream.  A stream that has all the tokens it
 * asked for is complete, even if its replica did not say so but failed: another
 * replica could add nothing.
 */

static llmgw_ending_t
ngx_http_llmgw_serve_ending(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    if (stream->record.tokens >= stream->ask.max_tokens) {
        return LLMGW_ENDING_FINAL;
    }

    if (attempt->ending == LLMGW_ENDING_DOUBTED
        && !ngx_http_llmgw_doubt_take(stream, attempt))
    {
        /* two replicas have refused the request: it is at fault */
        ngx_http_llmgw_doubt_judge(stream, LLMGW_VERDICT_SUCCESS);
        ngx_http_llmgw_lease_end(&attempt->lease, LLMGW_VERDICT_SUCCESS);
        return LLMGW_ENDING_PASSED;
    }

    return attempt->ending;
}


/*
 * The stream's only running attempt has ended.  1: so has the stream, which may
 * be gone; 0: it claims another replica.
 */

static ngx_uint_t
ngx_http_llmgw_serve_last_ended(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_end_t                end;
    llmgw_resume_step_t        step;
    ngx_http_llmgw_replica_t  *replica;

    replica = attempt->replica;

    step = llmgw_resume_next(&stream->resume,
                             ngx_http_llmgw_serve_ending(stream, attempt),
                             attempt->tokens, stream->record.tokens);

    if (step.next == LLMGW_NEXT_FINISH && !stream->has_final
        && stream->front->token(stream, &llmgw_token_final) != NGX_OK)
    {
        step.next = LLMGW_NEXT_GIVE_UP;
    }

    ngx_http_llmgw_serve_note(stream, attempt, step.next);
    ngx_http_llmgw_attempt_stop(attempt);
    stream->serving = NULL;

    switch (step.next) {

    case LLMGW_NEXT_FINISH:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_SERVED);
        return 1;

    case LLMGW_NEXT_PASS:
        end.outcome = LLMGW_OUTCOME_REFUSED;
        end.status = attempt->status;
        end.text = (char *) attempt->message.data;
        end.text_len = attempt->message.len;

        ngx_http_llmgw_stream_answer(stream, &end);
        return 1;

    case LLMGW_NEXT_GIVE_UP:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_TRIES_EXHAUSTED);
        return 1;

    case LLMGW_NEXT_AGAIN:
        break;
    }

    stream->record.retried = 1;

    if (stream->record.tokens) {
        stream->record.failovers++;
        ngx_http_llmgw_metrics_failover(stream->pool->zone, attempt->cause);
    }

    ngx_http_llmgw_timer_attempt_failed(stream, attempt);

    if (step.clear_excluded) {
        ngx_http_llmgw_claim_clear_excluded(&stream->claim);
    }

    if (step.exclude) {
        ngx_http_llmgw_serve_exclude(stream, replica, step.counted);
    }

    stream->claim.ask.saw_full |= (attempt->ending == LLMGW_ENDING_FULL);

    return ngx_http_llmgw_serve_claim(stream);
}


static void
ngx_http_llmgw_serve_note(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_next_t next)
{
    ngx_log_t   *log;
    ngx_uint_t   level;

    log = stream->request->connection->log;

    if (attempt->ending != LLMGW_ENDING_FAILED) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "llmgw: attempt at \"%V\" ends, ending %d",
                       &attempt->replica->node.str, attempt->ending);
        return;
    }

    ngx_http_llmgw_metrics_attempt_failed(stream->pool->zone, attempt->cause);

    level = (next == LLMGW_NEXT_GIVE_UP) ? NGX_LOG_ERR : NGX_LOG_WARN;

    ngx_log_error(level, log, 0,
                  "llmgw: stream lost replica \"%V\" after %ui tokens, "
                  "cause %s, status %i, %s", &attempt->replica->node.str,
                  stream->record.tokens, llmgw_cause_name(attempt->cause),
                  attempt->status,
                  next == LLMGW_NEXT_GIVE_UP ? "giving up"
                  : next == LLMGW_NEXT_FINISH ? "but has all tokens"
                                              : "another takes over");
}
