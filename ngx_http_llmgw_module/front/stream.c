
/*
 * A stream: one client's request, from its decoded message to its last byte.
 * serve.c decides which attempts serve it, and its front speaks the client's
 * protocol; this file does neither.
 *
 *     open ---> begins ---> runs, each time tokens came or an attempt ended
 *                             |
 *                             +--> flush: sent, or the client is slow
 *                             +--> finish with an outcome, exactly once
 *
 *     at any time: deadline -> finish
 *                  client gone -> cleanup, the attempts are cancelled
 */

#include "fleet/pool.h"
#include "front/clients.h"
#include "front/output.h"
#include "front/stream.h"
#include "http/outcome.h"


static void ngx_http_llmgw_stream_watch(ngx_event_t *rev);
static ngx_http_llmgw_stream_t *ngx_http_llmgw_stream_create(
    ngx_http_request_t *r, const ngx_http_llmgw_front_t *front);
static void ngx_http_llmgw_stream_blame(ngx_http_llmgw_stream_t *stream,
    llmgw_end_t *end);
static void ngx_http_llmgw_stream_sent(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_abort(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_record_end(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end);
static void ngx_http_llmgw_stream_release(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_stream_cleanup(void *data);


ngx_int_t
ngx_http_llmgw_stream_open(ngx_http_request_t *r,
    const ngx_http_llmgw_front_t *front, void *data)
{
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_http_llmgw_stream_create(r, front);
    if (stream == NULL) {
        return NGX_ERROR;
    }

    stream->data = data;

    if (front->read(stream) != NGX_OK) {
        return NGX_OK;
    }

    ngx_http_llmgw_trace_request_id(stream);
    ngx_http_llmgw_trace_read(stream);

    stream->ask.request_id = (char *) stream->record.request_id.data;

    /* a client that resets or disconnects ends the request, whose cleanup
     * ends the stream */

    r->read_event_handler = ngx_http_test_reading;
    r->write_event_handler = ngx_http_llmgw_output_write_handler;

    ngx_http_llmgw_stream_watch(r->connection->read);

    stream->running = 1;
    ngx_http_llmgw_pool_stream_begins(stream->pool);
    ngx_http_llmgw_timer_init(stream);
    ngx_http_llmgw_serve_begin(stream);

    return NGX_OK;
}


/*
 * The client may have gone with the event that brought the end of its request:
 * no other event would come.
 */

static void
ngx_http_llmgw_stream_watch(ngx_event_t *rev)
{
#if (NGX_HAVE_EPOLLRDHUP)
    if (rev->pending_eof) {
        ngx_post_event(rev, &ngx_posted_events);
    }
#endif
}


static ngx_http_llmgw_stream_t *
ngx_http_llmgw_stream_create(ngx_http_request_t *r,
    const ngx_http_llmgw_front_t *front)
{
    ngx_http_cleanup_t       *cln;
    ngx_pool_cleanup_t       *chunks;
    ngx_http_llmgw_pool_t    *pool;
    ngx_http_llmgw_stream_t  *stream;

    pool = ngx_http_llmgw_worker_pool(r);
    stream = ngx_pcalloc(r->pool, sizeof(ngx_http_llmgw_stream_t));
    cln = ngx_http_cleanup_add(r, 0);
    chunks = ngx_pool_cleanup_add(r->pool, 0);

    if (pool == NULL || stream == NULL || cln == NULL || chunks == NULL) {
        return NULL;
    }

    stream->clients = ngx_http_llmgw_clients_get(pool->worker);
    if (stream->clients == NULL) {
        return NULL;
    }

    stream->request = r;
    stream->front = front;
    stream->pool = pool;
    stream->conf = ngx_http_get_module_loc_conf(r, ngx_http_llmgw_module);
    stream->record.start_ms = ngx_current_msec;
    stream->ask.connect_timeout = stream->conf->connect_timeout;
    stream->ask.memory = r->pool;

    if (stream->conf->keys) {
        stream->caller = ngx_http_llmgw_caller(r);
    }

    cln->handler = ngx_http_llmgw_stream_cleanup;
    cln->data = stream;

    chunks->handler = ngx_http_llmgw_chunk_cleanup;
    chunks->data = stream;

    ngx_http_set_ctx(r, &stream->record, ngx_http_llmgw_module);

    return stream;
}


void
ngx_http_llmgw_stream_run(ngx_http_llmgw_stream_t *stream)
{
    if (stream->out_failed || stream->request->connection->error) {
        ngx_http_llmgw_stream_abort(stream);
        return;
    }

    if (stream->verdict) {
        ngx_http_llmgw_stream_answer(stream, stream->verdict);
        return;
    }

    if (ngx_http_llmgw_serve_run(stream)) {
        return;
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


/* nginx has sent all output: the replica may send more. */

static void
ngx_http_llmgw_stream_sent(ngx_http_llmgw_stream_t *stream)
{
    stream->blocked = 0;

    if (stream->serving) {
        ngx_http_llmgw_attempt_consume(stream->serving);
    }
}


/* The replica's silence counts from now on: so far the client was slow. */

void
ngx_http_llmgw_stream_unblocked(ngx_http_llmgw_stream_t *stream)
{
    if (stream->serving) {
        stream->serving->state.heard_ms = ngx_current_msec;
    }

    if (ngx_http_llmgw_output_is_sent(stream)) {
        ngx_http_llmgw_stream_sent(stream);
        return;
    }

    ngx_http_llmgw_clients_post(stream);
}


void
ngx_http_llmgw_stream_finish(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome)
{
    llmgw_end_t  end;

    ngx_memzero(&end, sizeof(llmgw_end_t));
    end.outcome = outcome;

    if (outcome != LLMGW_OUTCOME_SERVED && stream->record.shard_failure.len) {
        ngx_http_llmgw_stream_blame(stream, &end);
    }

    ngx_http_llmgw_stream_answer(stream, &end);
}


/* Adds how shards failed to the outcome's own text, if there is memory. */

static void
ngx_http_llmgw_stream_blame(ngx_http_llmgw_stream_t *stream, llmgw_end_t *end)
{
    u_char      *p;
    ngx_str_t   *last;
    const char  *text;

    last = &stream->record.shard_failure;
    text = llmgw_outcome_text(end->outcome);
    p = ngx_pnalloc(stream->request->pool, ngx_strlen(text) + sizeof(": ")
                                           + last->len);
    if (p) {
        end->text = (char *) p;
        end->text_len = ngx_sprintf(p, "%s: %V", text, last) - p;
    }
}


void
ngx_http_llmgw_stream_answer(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end)
{
    const char  *reason;

    ngx_http_llmgw_stream_record_end(stream, end);

    if (stream->claim.traced) {
        ngx_http_llmgw_log_ended(stream->pool->conf->log,
                                 stream->claim.traced, end->outcome);
    }

    if (end->outcome != LLMGW_OUTCOME_SERVED) {
        reason = llmgw_outcome_reason(end->outcome);

        ngx_log_error(NGX_LOG_INFO, stream->request->connection->log, 0,
                      "llmgw: answered %s%s%s",
                      llmgw_grpc_status_name(stream->record.status),
                      reason ? ", " : "", reason ? reason : "");
    }

    ngx_http_llmgw_stream_release(stream);
    stream->front->end(stream, end);
}


/* Ends the stream without an answer: nobody would read it, or memory is out. */

static void
ngx_http_llmgw_stream_abort(ngx_http_llmgw_stream_t *stream)
{
    static const llmgw_end_t  gone = { .outcome = LLMGW_OUTCOME_GONE };

    ngx_http_llmgw_stream_record_end(stream, &gone);
    ngx_http_llmgw_stream_release(stream);
    ngx_http_finalize_request(stream->request, NGX_ERROR);
}


/* Records and counts the outcome; called once for each stream. */

static void
ngx_http_llmgw_stream_record_end(ngx_http_llmgw_stream_t *stream,
    const llmgw_end_t *end)
{
    stream->record.outcome = end->outcome;
    stream->record.status = ngx_http_llmgw_outcome_grpc(end);

    ngx_http_llmgw_metrics_request(stream->pool->zone, stream->record.status,
                                   end->outcome);
    ngx_http_llmgw_metrics_time(stream->pool->zone,
                                NGX_HTTP_LLMGW_HISTOGRAM_request_seconds,
                                ngx_current_msec - stream->record.start_ms);
    ngx_http_llmgw_entry_ends(stream, end->outcome);
}


/* Releases all that is not in the request's pool; idempotent. */

static void
ngx_http_llmgw_stream_release(ngx_http_llmgw_stream_t *stream)
{
    stream->record.finished = 1;

    ngx_http_llmgw_claim_leave(&stream->claim);
    ngx_http_llmgw_claim_clear_excluded(&stream->claim);
    ngx_http_llmgw_ambiguous_settle(stream, LLMGW_VERDICT_NEUTRAL);
    ngx_http_llmgw_attempt_stop(&stream->attempts[0]);
    ngx_http_llmgw_attempt_stop(&stream->attempts[1]);
    ngx_http_llmgw_clients_forget(stream);
    ngx_http_llmgw_timer_done(stream);

    if (stream->ask.delivered) {
        llmgw_delivered_release(stream->ask.delivered);
    }

    if (stream->running) {
        stream->running = 0;
        ngx_http_llmgw_pool_stream_ends(stream->pool);
    }
}


static void
ngx_http_llmgw_stream_cleanup(void *data)
{
    ngx_http_llmgw_stream_t   *stream = data;
    static const llmgw_end_t   gone = { .outcome = LLMGW_OUTCOME_GONE };

    if (stream->log_handler) {
        stream->request->log_handler = stream->log_handler;
    }

    if (stream->claim.pool && !stream->record.finished) {
        ngx_http_llmgw_stream_record_end(stream, &gone);
        ngx_http_llmgw_stream_release(stream);
    }
}


ngx_http_llmgw_stream_t *
ngx_http_llmgw_stream_of_cleanup(ngx_http_cleanup_t *cln)
{
    return cln->handler == ngx_http_llmgw_stream_cleanup ? cln->data : NULL;
}
