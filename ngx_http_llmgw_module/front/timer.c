
/*
 * A stream's waits, all on one timer:
 *
 *   the client's deadline, at any time
 *   the place in the queue, as long as `llmgw_queue timeout` says
 *   the first token of an attempt, the next token behind it
 *   the moment for a hedge
 *
 * The timer is not cancelable, so that a worker that shall exit waits for the
 * stream; and it is not moved at each token: its handler looks how long the
 * silence has been, and waits for the rest.  Only an attempt's first token
 * moves it, from the one limit to the other.
 */

#include "front/stream.h"
#include "upstream/pool.h"


/* a timer that comes later than that: the worker stood still */
#define NGX_HTTP_LLMGW_LATE_MS  100

static void ngx_http_llmgw_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_timer_expired(ngx_http_llmgw_stream_t *stream,
    ngx_msec_int_t late);
static ngx_uint_t ngx_http_llmgw_timer_looks_again(
    ngx_http_llmgw_stream_t *stream, ngx_msec_int_t late);
static ngx_uint_t ngx_http_llmgw_timer_is_silent(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *leg);
static ngx_uint_t ngx_http_llmgw_timer_is_due(ngx_msec_t when);
static void ngx_http_llmgw_timer_check_silence(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *leg);
static ngx_msec_t ngx_http_llmgw_timer_silence(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *leg,
    llmgw_cause_t *cause);
static ngx_msec_t ngx_http_llmgw_timer_until(ngx_msec_t wait,
    ngx_msec_t when);


void
ngx_http_llmgw_timer_init(ngx_http_llmgw_stream_t *stream)
{
    stream->timer.handler = ngx_http_llmgw_timer_handler;
    stream->timer.data = stream;
    stream->timer.log = stream->request->connection->log;
}


void
ngx_http_llmgw_timer_done(ngx_http_llmgw_stream_t *stream)
{
    if (stream->timer.timer_set) {
        ngx_del_timer(&stream->timer);
    }
}


static void
ngx_http_llmgw_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_llmgw_stream_t  *stream = ev->data;

    c = stream->request->connection;

    ngx_http_llmgw_timer_expired(stream, (ngx_msec_int_t) (ngx_current_msec
                                                           - ev->timer.key));
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llmgw_timer_expired(ngx_http_llmgw_stream_t *stream,
    ngx_msec_int_t late)
{
    if (stream->ask.has_deadline
        && ngx_http_llmgw_timer_is_due(stream->ask.deadline_ms))
    {
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_DEADLINE);
        return;
    }

    if (stream->waits && ngx_http_llmgw_timer_is_due(stream->queue_end_ms)) {
        ngx_http_llmgw_stream_finish(stream,
                            ngx_http_llmgw_claim_waits_open(&stream->claim)
                            ? LLMGW_OUTCOME_CIRCUITS_OPEN
                            : LLMGW_OUTCOME_QUEUE_TIMEOUT);
        return;
    }

    if (stream->may_hedge && ngx_http_llmgw_timer_is_due(stream->hedge_ms)) {
        (void) ngx_http_llmgw_hedge(stream);
    }

    if (!stream->blocked && !ngx_http_llmgw_timer_looks_again(stream, late)) {
        ngx_http_llmgw_timer_check_silence(stream, &stream->legs[0]);
        ngx_http_llmgw_timer_check_silence(stream, &stream->legs[1]);
    }

    ngx_http_llmgw_timer_arm(stream);
}


static ngx_uint_t
ngx_http_llmgw_timer_is_due(ngx_msec_t when)
{
    return (ngx_msec_int_t) (when - ngx_current_msec) <= 0;
}


/*
 * Silence is judged at the second look.  This worker may have stood still, by
 * SIGSTOP or with its machine, and the sockets are full of tokens: between two
 * looks they are read.  Where it stood still for long, replicas of the same
 * machine did too, and have all of their time again.  1: not yet.
 */

static ngx_uint_t
ngx_http_llmgw_timer_looks_again(ngx_http_llmgw_stream_t *stream,
    ngx_msec_int_t late)
{
    if (stream->looked
        || (!ngx_http_llmgw_timer_is_silent(stream, &stream->legs[0])
            && !ngx_http_llmgw_timer_is_silent(stream, &stream->legs[1])))
    {
        stream->looked = 0;
        return 0;
    }

    stream->looked = 1;

    if (late >= NGX_HTTP_LLMGW_LATE_MS) {
        stream->spared_ms = ngx_current_msec;
        stream->is_spared = 1;
    }

    return 1;
}


static ngx_uint_t
ngx_http_llmgw_timer_is_silent(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg)
{
    llmgw_cause_t  cause;

    return leg->replica && !leg->ended
           && ngx_http_llmgw_timer_silence(stream, leg, &cause) == 0;
}


static void
ngx_http_llmgw_timer_check_silence(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg)
{
    llmgw_cause_t  cause;

    if (leg->replica && !leg->ended
        && ngx_http_llmgw_timer_silence(stream, leg, &cause) == 0)
    {
        ngx_http_llmgw_attempt_end(leg, LLMGW_ENDING_FAILED, cause);
    }
}


/* How long the replica may still be silent; 0: too long already. */

static ngx_msec_t
ngx_http_llmgw_timer_silence(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg, llmgw_cause_t *cause)
{
    ngx_msec_t  limit, silent, since;

    if (leg->tokens) {
        *cause = LLMGW_CAUSE_TOKEN_TIMEOUT;
        limit = stream->conf->token_timeout;

    } else {
        *cause = LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT;
        limit = stream->conf->first_token_timeout;
    }

    /* what came may be held for as long */
    limit += stream->pool->worker->coalesce.load.interval_ms;

    since = leg->activity_ms;

    if (stream->is_spared
        && (ngx_msec_int_t) (stream->spared_ms - since) > 0)
    {
        since = stream->spared_ms;
    }

    silent = ngx_current_msec - since;

    return silent < limit ? limit - silent : 0;
}


/*
 * What the queue's limit counts is the waiting since the last token.  So an
 * attempt that failed without one stops the clock while it lasts; a refusal
 * for want of room does not, or a replica that refuses for ever could keep
 * the stream for ever.  Of a hedge the first leg began before the second; what
 * it did last, without a token, is to begin.
 */

void
ngx_http_llmgw_timer_attempt_failed(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *leg)
{
    if (leg->ending == LLMGW_ENDING_FULL) {
        return;
    }

    if (leg->tokens) {
        stream->has_queue_end = 0;
        return;
    }

    stream->queue_end_ms += ngx_current_msec - stream->legs[0].activity_ms;
}


/* For the earliest of what is waited for. */

void
ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream)
{
    ngx_msec_t     wait;
    ngx_uint_t     i;
    llmgw_cause_t  cause;

    wait = stream->conf->token_timeout;

    if (stream->waits) {

        if (!stream->has_queue_end) {
            stream->has_queue_end = 1;
            stream->queue_end_ms = ngx_current_msec
                                   + stream->pool->conf->queue_timeout;
        }

        wait = ngx_http_llmgw_timer_until(NGX_MAX_INT32_VALUE,
                                          stream->queue_end_ms);

    } else if (!stream->blocked) {
        wait = NGX_MAX_INT32_VALUE;

        for (i = 0; i < 2; i++) {
            if (stream->legs[i].replica) {
                wait = ngx_min(wait, ngx_http_llmgw_timer_silence(
                                 stream, &stream->legs[i], &cause));
            }
        }
    }

    if (stream->ask.has_deadline) {
        wait = ngx_http_llmgw_timer_until(wait, stream->ask.deadline_ms);
    }

    if (stream->may_hedge) {
        wait = ngx_http_llmgw_timer_until(wait, stream->hedge_ms);
    }

    /* nginx would keep an old time that differs by little: ours may not */

    if (stream->timer.timer_set) {
        ngx_del_timer(&stream->timer);
    }

    ngx_add_timer(&stream->timer, ngx_max(wait, 1));
}


static ngx_msec_t
ngx_http_llmgw_timer_until(ngx_msec_t wait, ngx_msec_t when)
{
    ngx_msec_int_t  left;

    left = (ngx_msec_int_t) (when - ngx_current_msec);

    return ngx_min(wait, (ngx_msec_t) ngx_max(left, 0));
}
