
/*
 * A stream's waits, all on one timer: those of core/serve/serve.h, and the wait
 * until the client should get a sign of life.
 *
 * The timer is not cancelable, so that a worker that is told to exit waits for
 * the stream.  A token does not move it: it fires, and waits for the rest of
 * the timeout.  Only an attempt's first token moves it, from the one timeout to
 * the other.
 */

#include "fleet/pool.h"
#include "front/clients.h"


static void ngx_http_llmgw_timer_handler(ngx_event_t *ev);
static void ngx_http_llmgw_timer_ping(ngx_http_llmgw_stream_t *stream);


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
    llmgw_serve_step_t        step;
    llmgw_serve_facts_t       facts;
    ngx_http_llmgw_stream_t  *stream = ev->data;

    c = stream->request->connection;

    ngx_http_llmgw_serve_facts(stream, &facts);
    step = llmgw_serve_expired(&stream->serve, &facts);

    (void) ngx_http_llmgw_serve_step(stream, NULL, &step);
    ngx_http_run_posted_requests(c);
}


void
ngx_http_llmgw_timer_run(ngx_http_llmgw_stream_t *stream,
    const llmgw_serve_step_t *step)
{
    ngx_uint_t                 i;
    ngx_http_llmgw_attempt_t  *attempt;

    if (step->pings) {
        ngx_http_llmgw_timer_ping(stream);
    }

    for (i = 0; i < 2; i++) {
        if (step->silent >> i & 1) {
            attempt = &stream->attempts[i];
            ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED,
                                       llmgw_attempt_timeout(&attempt->state));
        }
    }

    ngx_http_llmgw_timer_arm(stream);
}


static void
ngx_http_llmgw_timer_ping(ngx_http_llmgw_stream_t *stream)
{
    stream->sent_ms = ngx_current_msec;

    if (stream->blocked) {
        return;         /* the rest is done when the client reads */
    }

    if (stream->front->ping(stream) != NGX_OK) {
        stream->out_failed = 1;
    }

    ngx_http_llmgw_clients_post(stream);
}


/*
 * Before the answer's header a ping is due only some time after the first
 * lease, so that the status can still be true.  In the queue there is none, as
 * a refusal must show in the status.  But a held stream may be held for
 * minutes, while a model is loaded somewhere, and proxies would give up: for it
 * time runs from its beginning, and a refusal after the header is an event.
 */

ngx_msec_t
ngx_http_llmgw_timer_ping_ms(ngx_http_llmgw_stream_t *stream)
{
    if (!stream->pings) {
        return 0;
    }

    if (stream->out || stream->request->header_sent) {
        return (stream->out ? ngx_current_msec : stream->sent_ms)
               + stream->conf->sse_keepalive;
    }

    if (stream->claim.ask.is_held) {
        return stream->record.start_ms + stream->conf->sse_header;
    }

    return stream->record.attempts && !stream->serve.waits
           ? stream->record.start_ms + stream->record.queue_ms
             + stream->conf->sse_header
           : 0;
}


void
ngx_http_llmgw_timer_arm(ngx_http_llmgw_stream_t *stream)
{
    ngx_msec_t           wait;
    llmgw_serve_facts_t  facts;

    ngx_http_llmgw_serve_facts(stream, &facts);
    wait = llmgw_serve_wait_ms(&stream->serve, &facts);

    /* ngx_add_timer() keeps an old time that differs little: delete it */

    if (stream->timer.timer_set) {
        ngx_del_timer(&stream->timer);
    }

    ngx_add_timer(&stream->timer, wait);
}
