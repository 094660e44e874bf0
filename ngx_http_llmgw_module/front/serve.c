
/*
 * How a stream is served, by as many attempts as it takes.  What follows when
 * one has ended is in ended.c; upstream/attempt.c speaks the replica's
 * protocol.
 *
 *     begin ------ may not enter --------------> finish with a reason
 *       |        full: waits in the queue
 *       v  +-----------------------------+
 *     claim <----------------------------+
 *       |  ^    no replica, queue full -----------> finish with a reason
 *       |  |
 *       v  | another one takes over: DRAINING, FULL, REFUSED, FAILED;
 *    attempt ----+  after a pause, if all that are left have failed
 *       |        \-- tries used up ---------------> finish: tries_exhausted
 *       |        \-- nobody can go on ------------> finish: not_resumable
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
static llmgw_admission_rc_t ngx_http_llmgw_serve_claim_any(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_serve_pause(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_serve_token(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token);
static void ngx_http_llmgw_serve_first(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_serve_keep(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token);
static void ngx_http_llmgw_serve_end(ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_serve_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_lease_t *lease, const llmgw_token_t *token);
static ngx_http_llmgw_stream_t *ngx_http_llmgw_serve_owner(
    ngx_http_llmgw_attempt_t *attempt);


static const ngx_http_llmgw_attempt_events_t  ngx_http_llmgw_serve_events = {
    .token = ngx_http_llmgw_serve_token,
    .end = ngx_http_llmgw_serve_end,
};


void
ngx_http_llmgw_serve_begin(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_claim_init(&stream->claim, stream->pool,
                              stream->request->pool, stream->key);

    if (stream->claim.traced) {
        stream->claim.traced->request =
                                  ngx_http_llmgw_record_id(&stream->record);
    }

    if (stream->model) {
        ngx_http_llmgw_claim_model(&stream->claim, stream->model);
    }

    stream->ask.events = &ngx_http_llmgw_serve_events;
    stream->ask.want |= LLMGATEWAY__WANT__WANT_IDS;

    if (stream->conf->resume == LLMGW_RESUME_TEXT) {
        stream->ask.want |= LLMGATEWAY__WANT__WANT_TEXT;
        stream->keeps = 1;
    }

    stream->claim.turn = ngx_http_llmgw_serve_turn;
    stream->resume.tries_max = stream->conf->tries;
    stream->resume.failovers_max = LLMGW_RESUME_FAILOVERS;

    if (ngx_http_llmgw_entry_refused(stream)
        || ngx_http_llmgw_serve_claim(stream) || stream->waits)
    {
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
        && !stream->has_begun)
    {
        ngx_http_llmgw_hedge_later(stream);
    }

    ngx_http_run_posted_requests(c);
}


ngx_uint_t
ngx_http_llmgw_serve_claim(ngx_http_llmgw_stream_t *stream)
{
    llmgw_admission_rc_t       rc;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = &stream->attempts[0];
    stream->claim.ask.is_urgent = stream->has_begun;
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

    if (llmgw_claim_pauses(&stream->claim.ask, rc)) {
        ngx_http_llmgw_serve_pause(stream);
        return 0;
    }

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

    case LLMGW_ADMISSION_SHED:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_QUEUE_SHED);
        return 1;

    case LLMGW_ADMISSION_OPEN:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_CIRCUITS_OPEN);
        return 1;

    case LLMGW_ADMISSION_EXCLUDED:
        /* after its first token: none of the resume group is left */
        ngx_http_llmgw_stream_finish(stream, stream->has_begun
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


/* Each replica that could serve has failed the stream: it asks them later. */

static void
ngx_http_llmgw_serve_pause(ngx_http_llmgw_stream_t *stream)
{
    ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                  "llmgw: stream has no other replica left, tries again soon");

    stream->pauses = 1;
    ngx_http_llmgw_timer_arm(stream);
}


void
ngx_http_llmgw_serve_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_replica_t *replica, ngx_uint_t failed)
{
    ngx_msec_t  pause_end;

    /* with a doubt a wait drops no exclusion: another replica must answer */

    ngx_http_llmgw_claim_exclude(&stream->claim, stream->request->pool,
                                 replica, failed || stream->doubt);

    if (failed) {
        pause_end = stream->attempts[0].start_ms
                    + llmgw_resume_pause_ms(&stream->resume, ngx_random());

        stream->claim.ask.may_restart = 1;
        stream->claim.ask.has_paused = (ngx_msec_int_t)
                                       (pause_end - ngx_current_msec) <= 0;
        stream->pause_end_ms = (uint32_t) pause_end;
    }
}


void
ngx_http_llmgw_serve_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    (void) ngx_http_llmgw_record_attempt(&stream->record,
                                         stream->request->pool,
                                         &attempt->lease.replica->node.str);

    if (stream->has_begun) {
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
        ngx_http_llmgw_serve_first(stream, attempt);
    }

    stream->record.tokens += token->count;
    stream->has_final = token->is_final;
    stream->pool->worker->coalesce.load.tokens++;

    if (token->more || stream->keeps) {
        ngx_http_llmgw_serve_keep(stream, token);
    }

    ngx_http_llmgw_serve_count(stream, &attempt->lease, token);

    if (stream->front->token(stream, token) != NGX_OK) {
        stream->out_failed = 1;
    }

    if (!stream->blocked || stream->out_failed) {
        ngx_http_llmgw_clients_post(stream);    /* else nginx's event does */
    }
}


/* The attempt has something for the client: it serves the stream. */

static void
ngx_http_llmgw_serve_first(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    stream->serving = attempt;
    stream->may_hedge = 0;
    stream->rearm = 1;

    if (stream->has_begun) {
        stream->record.has_resume = 1;
        stream->record.resume_by = stream->resume_by;
        ngx_http_llmgw_metrics_resume(stream->pool->zone, stream->resume_by);

    } else {
        stream->record.hedged = (attempt == &stream->attempts[1]);
    }

    if (stream->has_second) {
        stream->has_second = 0;
        ngx_http_llmgw_metrics_hedge(stream->pool->zone,
                                     stream->record.hedged
                                     ? NGX_HTTP_LLMGW_HEDGE_WON
                                     : NGX_HTTP_LLMGW_HEDGE_LOST);
    }

    stream->has_begun = 1;

    ngx_http_llmgw_doubt_judge(stream, LLMGW_VERDICT_FAILURE);
    stream->doubt = NULL;

    ngx_http_llmgw_claim_resume_as(&stream->claim, attempt->replica);
    ngx_http_llmgw_attempt_stop(ngx_http_llmgw_serve_other(stream, attempt));
}


/* Takes note of what the next replica would have to know. */

static void
ngx_http_llmgw_serve_keep(ngx_http_llmgw_stream_t *stream,
    const llmgw_token_t *token)
{
    llmgw_delivered_t  *delivered;

    delivered = stream->ask.delivered;

    if (delivered == NULL) {
        delivered = ngx_http_llmgw_delivered_create(stream->request->pool,
                                                    stream->pool,
                                                    stream->conf->resume);
        if (delivered == NULL) {
            stream->out_failed = 1;
            return;
        }

        stream->ask.delivered = delivered;
        stream->keeps = 1;
    }

    if (!llmgw_delivered_add(delivered, token)) {
        ngx_log_error(NGX_LOG_WARN, stream->request->connection->log, 0,
                      "llmgw: stream cannot be resumed any more after %ui "
                      "tokens, llmgw_body_memory is used up",
                      stream->record.tokens);
    }
}


/* The same: the stream is posted, and handles the end when it runs. */

static void
ngx_http_llmgw_serve_end(ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_clients_post(ngx_http_llmgw_serve_owner(attempt));
}


/* A message may be several tokens, or none: then only a first piece counts. */

static void
ngx_http_llmgw_serve_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_lease_t *lease, const llmgw_token_t *token)
{
    ngx_uint_t  is_first;

    if (token->count == 0
        && (token->more == NULL || token->more->raw == NULL
            || stream->record.has_first_token))
    {
        return;
    }

    is_first = ngx_http_llmgw_record_first_token(&stream->record);

    ngx_http_llmgw_lease_tokens(lease, token->count);
    ngx_http_llmgw_metrics_tokens(stream->pool->zone, is_first,
                                  is_first ? stream->record.first_token_ms
                                  : ngx_current_msec - stream->token_ms);

    stream->token_ms = ngx_current_msec;

    if (is_first) {
        ngx_http_llmgw_entry_first_token(stream);
    }
}


static ngx_http_llmgw_stream_t *
ngx_http_llmgw_serve_owner(ngx_http_llmgw_attempt_t *attempt)
{
    return ngx_queue_data(attempt->ask, ngx_http_llmgw_stream_t, ask);
}


ngx_http_llmgw_attempt_t *
ngx_http_llmgw_serve_other(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    return attempt == &stream->attempts[0] ? &stream->attempts[1]
                                           : &stream->attempts[0];
}


ngx_uint_t
ngx_http_llmgw_serve_run(ngx_http_llmgw_stream_t *stream)
{
    if (ngx_http_llmgw_ended(stream, &stream->attempts[1])
        || ngx_http_llmgw_ended(stream, &stream->attempts[0]))
    {
        return 1;
    }

    if (stream->rearm) {
        stream->rearm = 0;
        ngx_http_llmgw_timer_arm(stream);
    }

    return 0;
}
