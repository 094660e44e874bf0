
/*
 * How an attempt ended, for its stream.  core/serve/serve.h decides what
 * follows; this file knows what the client has by then.
 *
 * A stream that was lost continues after what the client has, if the next
 * replica can be told what that is (front/delivered.h).  If it cannot, but the
 * client has nothing because its answer is still being put together, all of the
 * stream begins anew.  Otherwise it breaks off, with an error to the client.
 */

#include "fleet/pool.h"
#include "front/clients.h"
#include "front/stream.h"


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
static void ngx_http_llmgw_ended_note(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_next_t next, const char *why);
static void ngx_http_llmgw_ended_shards(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_ending_t ending);


ngx_uint_t
ngx_http_llmgw_ended(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    const char           *why;
    llmgw_serve_end_t     end;
    llmgw_serve_step_t    step;
    llmgw_serve_facts_t   facts;

    if (!attempt->state.is_running || !attempt->state.has_ended) {
        return 0;
    }

    why = "";
    end.which = attempt - stream->attempts;
    end.stream_tokens = stream->record.tokens;
    end.ending = ngx_http_llmgw_ended_ending(stream, attempt, &why);
    end.random = ngx_random();
    end.may_keep = end.ending == LLMGW_ENDING_AMBIGUOUS
                    && ngx_http_llmgw_ambiguous_reserve(stream);
    end.is_denial = attempt->denies;

    ngx_http_llmgw_serve_facts(stream, &facts);
    step = llmgw_serve_ended(&stream->serve, &facts, &end);

    if (step.after == LLMGW_NEXT_FINISH && !stream->has_final
        && stream->front->token(stream, &llmgw_token_final) != NGX_OK)
    {
        step.after = LLMGW_NEXT_GIVE_UP;
        step.outcome = LLMGW_OUTCOME_TRIES_EXHAUSTED;
    }

    ngx_http_llmgw_ended_note(stream, attempt, step.after, why);
    ngx_http_llmgw_ended_shards(stream, attempt, end.ending);

    if (step.next == LLMGW_SERVE_CLAIMS) {
        stream->record.retried = 1;
    }

    if (step.fails_over) {
        stream->record.failovers++;
        ngx_http_llmgw_metrics_failover(stream->pool->zone,
                                        attempt->state.cause);
    }

    return ngx_http_llmgw_serve_step(stream, attempt, &step);
}


/*
 * How the attempt ended, for its stream.  An attempt whose stream is complete
 * ends as final, even if its replica failed without reporting the end: another
 * one could add nothing.
 */

static llmgw_ending_t
ngx_http_llmgw_ended_ending(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, const char **why)
{
    if (ngx_http_llmgw_ended_is_complete(stream)) {
        return LLMGW_ENDING_FINAL;
    }

    return llmgw_serve_is_broken(&stream->serve, attempt->state.ending)
           ? ngx_http_llmgw_ended_lost(stream, attempt->state.ending, why)
           : attempt->state.ending;
}


/* 1: all tokens asked for have come, or each choice has its finish reason. */

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
            /*
             * this limit is each choice's, not the max_tokens sent to a plain
             * replica
             */
            max = ask->choices == 1 ? ask->openai->max_tokens : 0;
        }
    }

    return max && stream->record.tokens >= max;
}


/*
 * Decides how a lost stream continues if the client has a part of it.  If it
 * cannot continue, but the client's part is still buffered here, it starts
 * again.
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
        *why = "its replica cannot continue it";
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

    /* a stream that cannot continue after a part may still begin anew */

    return ending == LLMGW_ENDING_UNABLE ? LLMGW_ENDING_REFUSED : ending;
}


/* 1: the client has nothing of the stream, and buffered output is dropped. */

static ngx_uint_t
ngx_http_llmgw_ended_restart(ngx_http_llmgw_stream_t *stream)
{
    if (stream->front->restart == NULL
        || stream->front->restart(stream) != NGX_OK)
    {
        return 0;
    }

    ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                  "llmgw: stream starts again, its client has received none of "
                  "%ui tokens", stream->record.tokens);

    if (stream->ask.delivered) {
        llmgw_delivered_release(stream->ask.delivered);
        stream->ask.delivered = NULL;
        stream->keeps = (stream->conf->resume == LLMGW_RESUME_TEXT);
    }

    llmgw_serve_restarted(&stream->serve, &stream->claim.ask);
    ngx_http_llmgw_entry_restarts(stream);
    stream->record.tokens = 0;

    return 1;
}


static void
ngx_http_llmgw_ended_note(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_next_t next, const char *why)
{
    ngx_log_t   *log;
    ngx_uint_t   level;

    log = stream->request->connection->log;

    if (attempt->state.ending == LLMGW_ENDING_FAILED) {
        ngx_http_llmgw_metrics_attempt_failed(stream->pool->zone,
                                              attempt->state.cause);

    } else if (next != LLMGW_NEXT_BREAK) {
        ngx_log_debug2(NGX_LOG_DEBUG_HTTP, log, 0,
                       "llmgw: attempt at \"%V\" ends, ending %d",
                       &attempt->replica->node.str, attempt->state.ending);
        return;
    }

    level = (next == LLMGW_NEXT_GIVE_UP || next == LLMGW_NEXT_BREAK)
            ? NGX_LOG_ERR : NGX_LOG_WARN;

    ngx_log_error(level, log, 0,
                  "llmgw: stream lost replica \"%V\" after %ui tokens, "
                  "cause %s, status %d, %s%s", &attempt->replica->node.str,
                  stream->record.tokens, llmgw_cause_name(attempt->state.cause),
                  attempt->status,
                  next == LLMGW_NEXT_GIVE_UP ? "giving up"
                  : next == LLMGW_NEXT_BREAK ? "not resumable: "
                  : next == LLMGW_NEXT_FINISH ? "but is complete"
                                              : "another takes over", why);
}


/* Notes how shards failed under the attempt, whether or not it ended well. */

static void
ngx_http_llmgw_ended_shards(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt, llmgw_ending_t ending)
{
    ngx_http_llmgw_shards_t  *shards;

    shards = attempt->shards;

    if (shards == NULL) {
        return;
    }

    stream->record.shard_failures += shards->failures;

    /* a later attempt that finds no shard tells less than why shards failed */

    if (shards->failures || stream->record.shard_failure.len == 0) {
        stream->record.shard_failure = shards->last;
    }

    ngx_http_llmgw_metrics_shards(stream->pool->zone,
                                  ending == LLMGW_ENDING_FINAL
                                  ? NGX_HTTP_LLMGW_SHARDS_SURVIVED
                                  : NGX_HTTP_LLMGW_SHARDS_LOST,
                                  shards->failures);
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
