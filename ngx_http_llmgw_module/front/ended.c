
/*
 * What follows when an attempt of a stream has ended.  core/resume.c decides;
 * this file gives it the facts, and carries out what it says.
 *
 * A stream that was lost goes on behind what the client has, if the next
 * replica can be told what that is (front/delivered.h).  If it cannot, but
 * the client has nothing because its answer is still being put together, all of
 * it begins anew.  Otherwise it breaks off, and the client is told so.
 */

#include "front/clients.h"
#include "front/stream.h"
#include "upstream/pool.h"


static llmgw_ending_t ngx_http_llmgw_ended_ending(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt,
    const char **why);
static ngx_uint_t ngx_http_llmgw_ended_is_complete(
    ngx_http_llmgw_stream_t *stream);
static llmgw_ending_t ngx_http_llmgw_ended_lost(
    ngx_http_llmgw_stream_t *stream, llmgw_ending_t ending,
    const char **why);
static ngx_uint_t ngx_http_llmgw_ended_restart(
    ngx_http_llmgw_stream_t *stream);
static ngx_uint_t ngx_http_llmgw_ended_last(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_ended_full(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, ngx_http_llmgw_replica_t *replica);
static void ngx_http_llmgw_ended_note(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_next_t next, const char *why);


ngx_uint_t
ngx_http_llmgw_ended(ngx_http_llmgw_stream_t *stream,
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
        return ngx_http_llmgw_ended_last(stream, attempt);
    }

    /* the other attempt runs on alone */

    ngx_http_llmgw_ended_note(stream, attempt, LLMGW_NEXT_AGAIN, "");

    if (attempt->ending == LLMGW_ENDING_FULL) {
        ngx_http_llmgw_ended_full(stream, attempt, attempt->replica);

    } else {
        ngx_http_llmgw_serve_exclude(stream, attempt->replica,
                                     attempt->ending == LLMGW_ENDING_FAILED);
    }
    ngx_http_llmgw_attempt_stop(attempt);

    return 0;
}


/*
 * How the attempt ended, for its stream.  A stream that is complete ends so
 * even if its replica did not say so but failed: another one could add nothing.
 */

static llmgw_ending_t
ngx_http_llmgw_ended_ending(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, const char **why)
{
    if (ngx_http_llmgw_ended_is_complete(stream)) {
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

    if (!stream->has_begun || attempt->ending == LLMGW_ENDING_FINAL
        || attempt->ending == LLMGW_ENDING_PASSED)
    {
        return attempt->ending;
    }

    return ngx_http_llmgw_ended_lost(stream, attempt->ending, why);
}


/* All tokens asked for have come, or each choice has said why it ended. */

static ngx_uint_t
ngx_http_llmgw_ended_is_complete(ngx_http_llmgw_stream_t *stream)
{
    ngx_uint_t                         max;
    const ngx_http_llmgw_ask_t        *ask;
    const llmgw_delivered_t           *delivered;

    ask = &stream->ask;
    max = ask->max_tokens;
    delivered = ask->delivered;

    if (delivered && delivered->has_more) {

        if (ask->choices && delivered->nfinished >= ask->choices) {
            return 1;
        }

        if (ask->openai) {
            /* it is each choice's, and not what a plain replica is told */
            max = ask->choices == 1 ? ask->openai->max_tokens : 0;
        }
    }

    return max && stream->record.tokens >= max;
}


/*
 * A stream of which the client has a part is lost: how does it go on?  Where it
 * cannot, but the client's part is still held here, all of it begins anew.
 */

static llmgw_ending_t
ngx_http_llmgw_ended_lost(ngx_http_llmgw_stream_t *stream,
    llmgw_ending_t ending, const char **why)
{
    stream->resume_by = ngx_http_llmgw_delivered_resume(stream->ask.delivered,
                                         stream->record.tokens,
                                         stream->ask.choices, why);

    if (ending == LLMGW_ENDING_UNABLE) {
        stream->resume_by = LLMGW_RESUME_BY_NOTHING;
        *why = "its replica cannot go on there";
    }

    if (stream->resume_by != LLMGW_RESUME_BY_NOTHING) {
        return ending;
    }

    if (!ngx_http_llmgw_ended_restart(stream)) {
        stream->record.has_resume = 1;
        stream->record.resume_by = LLMGW_RESUME_BY_NOTHING;
        return LLMGW_ENDING_UNABLE;
    }

    *why = "";

    /* what cannot go on behind a part may well begin anew */

    return ending == LLMGW_ENDING_UNABLE ? LLMGW_ENDING_REFUSED : ending;
}


/* 1: the client has nothing of the stream, and what was kept is dropped. */

static ngx_uint_t
ngx_http_llmgw_ended_restart(ngx_http_llmgw_stream_t *stream)
{
    if (stream->front->restart == NULL
        || stream->front->restart(stream) != NGX_OK)
    {
        return 0;
    }

    ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                  "llmgw: stream begins anew, its client had nothing yet of "
                  "%ui tokens", stream->record.tokens);

    if (stream->ask.delivered) {
        llmgw_delivered_release(stream->ask.delivered);
        stream->ask.delivered = NULL;
        stream->keeps = (stream->conf->resume == LLMGW_RESUME_TEXT);
    }

    stream->has_begun = 0;
    stream->record.tokens = 0;
    stream->claim.ask.resumes = 0;

    return 1;
}


/*
 * The stream's only running attempt has ended.  1: so has the stream, which may
 * be gone; 0: it claims another replica.
 */

static ngx_uint_t
ngx_http_llmgw_ended_last(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_end_t                end;
    ngx_uint_t                 tokens;
    const char                *why;
    llmgw_ending_t             ending;
    llmgw_resume_step_t        step;
    ngx_http_llmgw_replica_t  *replica;

    replica = attempt->replica;
    why = "";
    tokens = stream->record.tokens;
    ending = ngx_http_llmgw_ended_ending(stream, attempt, &why);
    step = llmgw_resume_next(&stream->resume, ending, attempt->tokens, tokens);

    if (step.next == LLMGW_NEXT_FINISH && !stream->has_final
        && stream->front->token(stream, &llmgw_token_final) != NGX_OK)
    {
        step.next = LLMGW_NEXT_GIVE_UP;
    }

    ngx_http_llmgw_ended_note(stream, attempt, step.next, why);
    ngx_http_llmgw_attempt_stop(attempt);
    stream->serving = NULL;

    switch (step.next) {

    case LLMGW_NEXT_FINISH:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_SERVED);
        return 1;

    case LLMGW_NEXT_PASS:
        ngx_http_llmgw_ended_refusal(attempt, &end);
        ngx_http_llmgw_stream_answer(stream, &end);
        return 1;

    case LLMGW_NEXT_BREAK:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_NOT_RESUMABLE);
        return 1;

    case LLMGW_NEXT_GIVE_UP:
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_TRIES_EXHAUSTED);
        return 1;

    case LLMGW_NEXT_AGAIN:
        break;
    }

    stream->record.retried = 1;

    if (stream->has_begun && attempt->ending != LLMGW_ENDING_ABSENT) {
        stream->record.failovers++;
        ngx_http_llmgw_metrics_failover(stream->pool->zone, attempt->cause);
    }

    ngx_http_llmgw_timer_attempt_failed(stream, attempt);

    if (step.clear_excluded) {
        ngx_http_llmgw_excluded_drop(&stream->claim, 0);
    }

    if (attempt->ending == LLMGW_ENDING_FULL) {
        ngx_http_llmgw_ended_full(stream, attempt, replica);
        stream->claim.ask.saw_full = 1;

    } else if (step.exclude) {
        ngx_http_llmgw_serve_exclude(stream, replica, step.counted);
    }

    return ngx_http_llmgw_serve_claim(stream);
}


/*
 * This stream asks the replica again when that wants it.  With a doubt a wait
 * drops no exclusion: another replica must answer.
 */

static void
ngx_http_llmgw_ended_full(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, ngx_http_llmgw_replica_t *replica)
{
    ngx_http_llmgw_claim_push_back(&stream->claim, stream->request->pool,
                                   replica,
                                   attempt->has_pushback
                                   ? (int64_t) attempt->pushback_ms
                                   : LLMGW_PUSHBACK_NONE,
                                   stream->doubt != NULL);
}


static void
ngx_http_llmgw_ended_note(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_next_t next, const char *why)
{
    ngx_log_t   *log;
    ngx_uint_t   level;

    log = stream->request->connection->log;

    if (attempt->ending == LLMGW_ENDING_FAILED) {
        ngx_http_llmgw_metrics_attempt_failed(stream->pool->zone,
                                              attempt->cause);

    } else if (next != LLMGW_NEXT_BREAK) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "llmgw: attempt at \"%V\" ends, ending %d",
                       &attempt->replica->node.str, attempt->ending);
        return;
    }

    level = (next == LLMGW_NEXT_GIVE_UP || next == LLMGW_NEXT_BREAK)
            ? NGX_LOG_ERR : NGX_LOG_WARN;

    ngx_log_error(level, log, 0,
                  "llmgw: stream lost replica \"%V\" after %ui tokens, "
                  "cause %s, status %d, %s%s", &attempt->replica->node.str,
                  stream->record.tokens, llmgw_cause_name(attempt->cause),
                  attempt->status,
                  next == LLMGW_NEXT_GIVE_UP ? "giving up"
                  : next == LLMGW_NEXT_BREAK ? "not resumable: "
                  : next == LLMGW_NEXT_FINISH ? "but is complete"
                                              : "another takes over", why);
}


void
ngx_http_llmgw_ended_refusal(ngx_http_llmgw_attempt_t *attempt,
    llmgw_end_t *end)
{
    ngx_memzero(end, sizeof(llmgw_end_t));

    if (attempt->refusal) {
        *end = *attempt->refusal;
    }

    end->outcome = LLMGW_OUTCOME_REFUSED;
    end->status = attempt->status;
}
