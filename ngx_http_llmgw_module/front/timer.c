
/*
 * A stream's waits, all on one timer:
 *
 *   for the client's deadline
 *   in the queue, for the timeout or the ttl of `llmgw_queue`
 *   before it asks replicas again that have failed it
 *   for an attempt's first token, and then for each next one
 *   for the moment of a hedge
 *   for the moment at which the client should hear something
 *
 * The timer is not cancelable, so that a worker that is told to exit waits for
 * the stream.  A token does not move it: its handler looks how long the replica
 * has been silent, and waits for the rest of the timeout.  Only an attempt's
 * first token moves it, from the one timeout to the other.
 */

#include "front/clients.h"
#include "upstream/pool.h"


/* if a timer fires this much too late, the worker stood still */
#define NGX_HTTP_LLMGW_LATE_MS  100

static void ngx_http_llmgw_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_timer_expired(ngx_http_llmgw_stream_t *stream,
    int32_t late_ms);
static ngx_uint_t ngx_http_llmgw_timer_looks_again(
    ngx_http_llmgw_stream_t *stream, int32_t late_ms);
static ngx_uint_t ngx_http_llmgw_timer_is_silent(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt);
static ngx_uint_t ngx_http_llmgw_timer_is_due(ngx_msec_t when);
static void ngx_http_llmgw_timer_check_silence(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt);
static ngx_msec_t ngx_http_llmgw_timer_silence(
    ngx_http_llmgw_stream_t *stream, ngx_http_llmgw_attempt_t *attempt,
    llmgw_cause_t *cause);
static ngx_uint_t ngx_http_llmgw_timer_pings(ngx_http_llmgw_stream_t *stream,
    ngx_msec_t *when);
static void ngx_http_llmgw_timer_ping(ngx_http_llmgw_stream_t *stream);
static ngx_msec_t ngx_http_llmgw_timer_whole(uint32_t ms);
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


/* The event has no key any more: nginx clears it before it calls this. */

static void
ngx_http_llmgw_timer_handler(ngx_event_t *ev)
{
    ngx_connection_t         *c;
    ngx_http_llmgw_stream_t  *stream = ev->data;

    c = stream->request->connection;

    ngx_http_llmgw_timer_expired(stream, (int32_t)
                            ((uint32_t) ngx_current_msec - stream->due_ms));
    ngx_http_run_posted_requests(c);
}


static void
ngx_http_llmgw_timer_expired(ngx_http_llmgw_stream_t *stream, int32_t late_ms)
{
    if (stream->ask.has_deadline
        && ngx_http_llmgw_timer_is_due(stream->ask.deadline_ms))
    {
        ngx_http_llmgw_stream_finish(stream, LLMGW_OUTCOME_DEADLINE);
        return;
    }

    if (stream->waits && ngx_http_llmgw_timer_is_due(stream->queue_end_ms)) {
        ngx_http_llmgw_stream_finish(stream,
                               ngx_http_llmgw_claim_expires(&stream->claim));
        return;
    }

    if (stream->pauses
        && ngx_http_llmgw_timer_is_due(
               ngx_http_llmgw_timer_whole(stream->pause_end_ms)))
    {
        stream->pauses = 0;
        stream->claim.ask.has_paused = 1;
        (void) ngx_http_llmgw_serve_claim(stream);
        return;
    }

    if (stream->may_hedge
        && ngx_http_llmgw_timer_is_due(
               ngx_http_llmgw_timer_whole(stream->hedge_ms)))
    {
        (void) ngx_http_llmgw_hedge(stream);
    }

    ngx_http_llmgw_timer_ping(stream);

    if (!stream->blocked
        && !ngx_http_llmgw_timer_looks_again(stream, late_ms))
    {
        ngx_http_llmgw_timer_check_silence(stream, &stream->attempts[0]);
        ngx_http_llmgw_timer_check_silence(stream, &stream->attempts[1]);
    }

    ngx_http_llmgw_timer_arm(stream);
}


static void
ngx_http_llmgw_timer_ping(ngx_http_llmgw_stream_t *stream)
{
    ngx_msec_t  when;

    if (!ngx_http_llmgw_timer_pings(stream, &when)
        || !ngx_http_llmgw_timer_is_due(when))
    {
        return;
    }

    stream->sent_ms = ngx_current_msec;

    if (stream->blocked) {
        return;         /* what waits for the client will do when it reads */
    }

    if (stream->front->ping(stream) != NGX_OK) {
        stream->out_failed = 1;
    }

    ngx_http_llmgw_clients_post(stream);
}


/*
 * 1: the client is to hear something at *when.  Before the answer's header
 * that is some time after the first lease, so that the status can still be
 * true; in the queue it is never, for a refusal must be one by its status.
 */

static ngx_uint_t
ngx_http_llmgw_timer_pings(ngx_http_llmgw_stream_t *stream, ngx_msec_t *when)
{
    if (!stream->pings) {
        return 0;
    }

    if (stream->out || stream->request->header_sent) {
        *when = (stream->out ? ngx_current_msec : stream->sent_ms)
                + stream->conf->sse_keepalive;
        return 1;
    }

    *when = stream->record.start_ms + stream->record.queue_ms
            + stream->conf->sse_header;

    return stream->record.attempts && !stream->waits;
}


static ngx_uint_t
ngx_http_llmgw_timer_is_due(ngx_msec_t when)
{
    return (ngx_msec_int_t) (when - ngx_current_msec) <= 0;
}


/*
 * 1: a replica is silent, and the timer must look once more before that counts.
 *
 * This worker may have stood still, because of SIGSTOP or with its machine, and
 * its sockets may be full of tokens; between two looks they are read.  If the
 * timer came late as well, replicas on the same machine may have stood still
 * too: their time starts anew.
 */

static ngx_uint_t
ngx_http_llmgw_timer_looks_again(ngx_http_llmgw_stream_t *stream,
    int32_t late_ms)
{
    if (stream->was_silent
        || (!ngx_http_llmgw_timer_is_silent(stream, &stream->attempts[0])
            && !ngx_http_llmgw_timer_is_silent(stream, &stream->attempts[1])))
    {
        stream->was_silent = 0;
        return 0;
    }

    stream->was_silent = 1;

    if (late_ms >= NGX_HTTP_LLMGW_LATE_MS) {
        stream->spared_ms = ngx_current_msec;
        stream->is_spared = 1;
    }

    return 1;
}


static ngx_uint_t
ngx_http_llmgw_timer_is_silent(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_cause_t  cause;

    return attempt->replica && !attempt->ended
           && ngx_http_llmgw_timer_silence(stream, attempt, &cause) == 0;
}


static void
ngx_http_llmgw_timer_check_silence(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_cause_t  cause;

    if (attempt->replica && !attempt->ended
        && ngx_http_llmgw_timer_silence(stream, attempt, &cause) == 0)
    {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED, cause);
    }
}


/* How long the replica may still be silent; 0: too long already. */

static ngx_msec_t
ngx_http_llmgw_timer_silence(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_cause_t *cause)
{
    ngx_msec_t  limit, silent, since;

    if (attempt->has_begun) {
        *cause = LLMGW_CAUSE_TOKEN_TIMEOUT;
        limit = stream->conf->token_timeout;

    } else {
        *cause = LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT;
        limit = stream->conf->first_token_timeout;
    }

    /* coalescing may keep a token unread for as long */
    limit += stream->pool->worker->coalesce.load.interval_ms;

    since = attempt->activity_ms;

    if (stream->is_spared
        && (ngx_msec_int_t) (stream->spared_ms - since) > 0)
    {
        since = stream->spared_ms;
    }

    silent = ngx_current_msec - since;

    return silent < limit ? limit - silent : 0;
}


/*
 * The queue's timeout limits how long a stream waits in the queue, counted from
 * its last token.  So the time of an attempt that failed without a token is
 * added to the limit.  The time of an attempt that a full replica refused is
 * not, or a replica that always refuses could keep the stream for ever; nor is
 * that of one that found nobody there.
 *
 * Of two attempts the first one began before its hedge.
 */

void
ngx_http_llmgw_timer_attempt_failed(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    if (attempt->ending == LLMGW_ENDING_FULL
        || attempt->ending == LLMGW_ENDING_ABSENT)
    {
        return;
    }

    if (attempt->has_begun) {
        stream->has_queue_end = 0;
        return;
    }

    stream->queue_end_ms += ngx_current_msec - stream->attempts[0].start_ms;
}


/* Sets the timer for the earliest of the waits. */

void
ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream)
{
    ngx_msec_t     wait, when;
    ngx_uint_t     i;
    llmgw_cause_t  cause;

    wait = stream->conf->token_timeout;

    if (stream->waits) {

        if (!stream->has_queue_end) {
            stream->has_queue_end = 1;
            stream->queue_end_ms = ngx_current_msec
                              + ngx_http_llmgw_claim_patience(&stream->claim);
        }

        wait = ngx_http_llmgw_timer_until(NGX_MAX_INT32_VALUE,
                                          stream->queue_end_ms);

    } else if (!stream->blocked) {
        wait = NGX_MAX_INT32_VALUE;

        for (i = 0; i < 2; i++) {
            if (stream->attempts[i].replica) {
                wait = ngx_min(wait, ngx_http_llmgw_timer_silence(
                                 stream, &stream->attempts[i], &cause));
            }
        }
    }

    if (stream->pauses) {
        wait = ngx_http_llmgw_timer_until(wait,
                             ngx_http_llmgw_timer_whole(stream->pause_end_ms));
    }

    if (stream->ask.has_deadline) {
        wait = ngx_http_llmgw_timer_until(wait, stream->ask.deadline_ms);
    }

    if (stream->may_hedge) {
        wait = ngx_http_llmgw_timer_until(wait,
                                 ngx_http_llmgw_timer_whole(stream->hedge_ms));
    }

    if (ngx_http_llmgw_timer_pings(stream, &when)) {
        wait = ngx_http_llmgw_timer_until(wait, when);
    }

    /* ngx_add_timer() keeps an old time that differs by little: delete it */

    if (stream->timer.timer_set) {
        ngx_del_timer(&stream->timer);
    }

    wait = ngx_max(wait, 1);
    stream->due_ms = (uint32_t) (ngx_current_msec + wait);
    ngx_add_timer(&stream->timer, wait);
}


/* The moment of which a stream keeps only 32 bits: the one next to now. */

static ngx_msec_t
ngx_http_llmgw_timer_whole(uint32_t ms)
{
    return ngx_current_msec + (int32_t) (ms - (uint32_t) ngx_current_msec);
}


static ngx_msec_t
ngx_http_llmgw_timer_until(ngx_msec_t wait, ngx_msec_t when)
{
    ngx_msec_int_t  left;

    left = (ngx_msec_int_t) (when - ngx_current_msec);

    return ngx_min(wait, (ngx_msec_t) ngx_max(left, 0));
}
