
/*
 * How a stream is served: core/serve/serve.h decides, and this file carries out
 * its steps, with nginx's clock, claims and attempts.  ended.c knows what the
 * client has when an attempt ends; attempt/attempt.c speaks the replica's
 * protocol.
 */

#include "attempt/asking.h"
#include "front/clients.h"
#include "front/stream.h"


static void ngx_http_llmgw_serve_turn(ngx_http_llmgw_claim_t *claim);
static llmgw_hedge_t ngx_http_llmgw_serve_hedges(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_serve_follow(ngx_http_llmgw_stream_t *stream);
static ngx_uint_t ngx_http_llmgw_serve_enter(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_serve_settle(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *it, const llmgw_serve_step_t *step);
static void ngx_http_llmgw_serve_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *it, ngx_http_llmgw_replica_t *replica,
    const llmgw_serve_step_t *step);
static llmgw_serve_step_t ngx_http_llmgw_serve_claim(
    ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_serve_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_serve_hedge(ngx_http_llmgw_stream_t *stream);
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
        stream->ask.model = llmgw_models_hash((char *) stream->model->data,
                                              stream->model->len);
    }

    stream->ask.events = &ngx_http_llmgw_serve_events;
    stream->ask.want |= LLMGATEWAY__WANT__WANT_IDS;

    if (stream->conf->resume == LLMGW_RESUME_TEXT) {
        stream->ask.want |= LLMGATEWAY__WANT__WANT_TEXT;
        stream->keeps = 1;
    }

    stream->claim.turn = ngx_http_llmgw_serve_turn;
    stream->serve.hedge = ngx_http_llmgw_serve_hedges(stream);
    stream->serve.resume.tries_max = stream->conf->tries;
    stream->serve.resume.failovers_max = LLMGW_RESUME_FAILOVERS;

    if (!ngx_http_llmgw_entry_refused(stream)) {
        (void) ngx_http_llmgw_serve_enter(stream);
    }
}


/*
 * With a delay, every request is hedged once the delay has passed.  With "on" a
 * request is hedged if its own flag asks for it, at once.
 */

static llmgw_hedge_t
ngx_http_llmgw_serve_hedges(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = stream->pool->conf;

    if (conf->hedge_delay) {
        return LLMGW_HEDGE_LATER;
    }

    return conf->hedge_on && stream->wants_hedge ? LLMGW_HEDGE_AT_ONCE
                                                 : LLMGW_HEDGE_NEVER;
}


/* Called when a waiting stream is to claim again, as at the queue's head. */

static void
ngx_http_llmgw_serve_turn(ngx_http_llmgw_claim_t *claim)
{
    ngx_connection_t         *c;
    ngx_http_llmgw_stream_t  *stream;

    stream = ngx_queue_data(claim, ngx_http_llmgw_stream_t, claim);
    c = stream->request->connection;

    if (claim->ask.is_held && stream->model) {
        ngx_http_llmgw_serve_follow(stream);
    }

    (void) ngx_http_llmgw_serve_enter(stream);
    ngx_http_run_posted_requests(c);
}


/*
 * A held stream goes to the pool that serves its name by now.  The stream may
 * have come when no replica had reported its models, or the name has turned out
 * to be an adapter's.  A stream that has delivered tokens stays with its base
 * model.
 */

static void
ngx_http_llmgw_serve_follow(ngx_http_llmgw_stream_t *stream)
{
    llmgw_serves_t              serves;
    ngx_http_llmgw_pool_t      *pool;
    ngx_http_llmgw_upstream_t  *upstream;

    if (stream->claim.ask.resumes || stream->claim.only) {
        return;
    }

    upstream = stream->pool->upstream;
    serves = ngx_http_llmgw_upstream_serves(upstream, stream->model, &pool);

    if (serves == LLMGW_SERVES_NOT && stream->is_named) {
        pool = ngx_http_llmgw_upstream_await(upstream, stream->model);
    }

    if (pool == NULL || pool == stream->pool) {
        if (stream->claim.base == 0) {
            ngx_http_llmgw_claim_model(&stream->claim, stream->model);
        }

        return;
    }

    ngx_http_llmgw_claim_move(&stream->claim, pool, stream->model);

    ngx_http_llmgw_pool_stream_begins(pool);
    ngx_http_llmgw_pool_stream_ends(stream->pool);
    stream->pool = pool;
}


static ngx_uint_t
ngx_http_llmgw_serve_enter(ngx_http_llmgw_stream_t *stream)
{
    llmgw_serve_step_t   step;
    llmgw_serve_facts_t  facts;

    ngx_http_llmgw_serve_facts(stream, &facts);
    step = llmgw_serve_begin(&stream->serve, &facts);

    return ngx_http_llmgw_serve_step(stream, NULL, &step);
}


void
ngx_http_llmgw_serve_facts(ngx_http_llmgw_stream_t *stream,
    llmgw_serve_facts_t *facts)
{
    ngx_msec_t                  delay;
    ngx_http_llmgw_loc_conf_t  *conf;

    conf = stream->conf;

    /* coalescing may leave a token unread for that long */
    delay = stream->pool->worker->asking->coalesce.load.interval_ms;

    facts->attempts[0] = &stream->attempts[0].state;
    facts->attempts[1] = &stream->attempts[1].state;
    facts->claim = &stream->claim.ask;
    facts->now_ms = ngx_current_msec;
    facts->deadline_ms = stream->ask.has_deadline ? stream->ask.deadline_ms
                                                  : 0;
    facts->ping_ms = ngx_http_llmgw_timer_ping_ms(stream);
    facts->patience_ms = ngx_http_llmgw_claim_patience(&stream->claim);
    facts->hedge_delay_ms = stream->pool->conf->hedge_delay;
    facts->first_token_ms = conf->first_token_timeout + delay;
    facts->token_ms = conf->token_timeout + delay;
    facts->is_blocked = stream->blocked;
}


ngx_uint_t
ngx_http_llmgw_serve_step(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *it, const llmgw_serve_step_t *first)
{
    llmgw_end_t          end;
    llmgw_serve_step_t   step;
    llmgw_serve_facts_t  facts;

    step = *first;

    for ( ;; ) {
        ngx_http_llmgw_serve_settle(stream, it, &step);

        switch (step.next) {

        case LLMGW_SERVE_CLAIMS:
            step = ngx_http_llmgw_serve_claim(stream);
            break;

        case LLMGW_SERVE_STARTS:
            ngx_http_llmgw_serve_start(stream, &stream->attempts[0]);
            ngx_http_llmgw_serve_facts(stream, &facts);
            step = llmgw_serve_started(&stream->serve, &facts);
            break;

        case LLMGW_SERVE_HEDGES:
            ngx_http_llmgw_serve_hedge(stream);

            /* fall through */

        case LLMGW_SERVE_RUNS:
            ngx_http_llmgw_timer_run(stream, &step);
            return 0;

        case LLMGW_SERVE_ENDS:
            ngx_http_llmgw_stream_finish(stream, step.outcome);
            return 1;

        case LLMGW_SERVE_EXPIRES:
            ngx_http_llmgw_stream_finish(stream,
                                ngx_http_llmgw_claim_expires(&stream->claim));
            return 1;

        case LLMGW_SERVE_PASSES:
            ngx_http_llmgw_ended_refusal(it, &end);
            ngx_http_llmgw_stream_answer(stream, &end);
            return 1;

        case LLMGW_SERVE_PASSES_KEPT:
            ngx_http_llmgw_ambiguous_answer(stream);
            return 1;
        }
    }
}


/* Carries out a step, except for what comes next. */

static void
ngx_http_llmgw_serve_settle(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *it, const llmgw_serve_step_t *step)
{
    ngx_http_llmgw_replica_t  *replica;

    replica = it ? it->replica : NULL;

    if (step->is_ambiguous) {
        ngx_http_llmgw_ambiguous_keep(stream, it);
    }

    if (step->acquits) {
        ngx_http_llmgw_lease_end(&it->lease, LLMGW_VERDICT_SUCCESS);
    }

    if (step->judges) {
        ngx_http_llmgw_ambiguous_settle(stream, step->verdict);
    }

    if (step->stops_other) {
        ngx_http_llmgw_attempt_stop(it == &stream->attempts[0]
                                    ? &stream->attempts[1]
                                    : &stream->attempts[0]);
    }

    if (step->stops) {
        ngx_http_llmgw_attempt_stop(it);
        stream->serving = NULL;
    }

    if (step->forgets) {
        ngx_http_llmgw_excluded_drop(&stream->claim, 0);
    }

    ngx_http_llmgw_serve_exclude(stream, it, replica, step);
}


static void
ngx_http_llmgw_serve_exclude(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *it, ngx_http_llmgw_replica_t *replica,
    const llmgw_serve_step_t *step)
{
    if (step->excludes) {
        ngx_http_llmgw_claim_exclude(&stream->claim, stream->request->pool,
                                     replica, step->keeps);

    } else if (step->pushes_back) {
        ngx_http_llmgw_claim_push_back(&stream->claim, stream->request->pool,
                                       replica,
                                       it->has_pushback
                                       ? (int64_t) it->pushback_ms
                                       : LLMGW_PUSHBACK_NONE, step->keeps);
    }
}


static llmgw_serve_step_t
ngx_http_llmgw_serve_claim(ngx_http_llmgw_stream_t *stream)
{
    llmgw_serve_step_t    step;
    llmgw_serve_facts_t   facts;
    llmgw_admission_rc_t  rc;

    rc = ngx_http_llmgw_claim(&stream->claim, &stream->attempts[0].lease,
                              &stream->record.route);

    ngx_http_llmgw_serve_facts(stream, &facts);
    step = llmgw_serve_claimed(&stream->serve, &facts, rc);

    if (stream->serve.pauses) {
        ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                      "llmgw: stream has no other replica left, tries again "
                      "soon");
    }

    return step;
}


/* Starts an attempt that has its lease. */

static void
ngx_http_llmgw_serve_start(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    (void) ngx_http_llmgw_record_attempt(&stream->record,
                                         stream->request->pool,
                                         &attempt->lease.replica->node.str);

    if (stream->slot) {
        llmgw_usage_replica(&stream->slot->usage,
                            (char *) stream->record.replica.data,
                            stream->record.replica.len);
    }

    if (stream->serve.has_begun) {
        ngx_log_error(NGX_LOG_NOTICE, stream->request->connection->log, 0,
                      "llmgw: stream continues at replica \"%V\" after %ui "
                      "tokens", &stream->record.replica,
                      stream->record.tokens);
    }

    ngx_http_llmgw_attempt_start(attempt, &stream->ask, stream->record.tokens);
}


/* Starts a second attempt beside the first one, at another replica. */

static void
ngx_http_llmgw_serve_hedge(ngx_http_llmgw_stream_t *stream)
{
    ngx_uint_t                  budget;
    ngx_http_llmgw_attempt_t   *first, *second;
    ngx_http_llmgw_srv_conf_t  *conf;

    conf = stream->pool->conf;
    first = &stream->attempts[0];
    second = &stream->attempts[1];
    budget = conf->hedge_delay ? conf->hedge_budget : 0;

    if (ngx_http_llmgw_claim_second(&stream->claim, first->replica, budget,
                                    &second->lease))
    {
        llmgw_serve_hedged(&stream->serve);
        ngx_http_llmgw_serve_start(stream, second);
    }
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

    if (stream->slot) {
        llmgw_usage_slot_delivered(stream->slot, stream->record.tokens);
    }

    stream->has_final = token->is_final;
    stream->pool->worker->asking->coalesce.load.tokens++;

    if (token->more || stream->keeps) {
        ngx_http_llmgw_serve_keep(stream, token);
    }

    ngx_http_llmgw_serve_count(stream, &attempt->lease, token);

    if (stream->front->token(stream, token) != NGX_OK) {
        stream->out_failed = 1;
    }

    if (!stream->blocked || stream->out_failed) {
        ngx_http_llmgw_clients_post(stream);    /* otherwise nginx's event
                                                   does */
    }
}


/* The attempt has something for the client: it serves the stream. */

static void
ngx_http_llmgw_serve_first(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_serve_step_t  step;

    stream->serving = attempt;
    stream->rearm = 1;

    if (stream->serve.has_begun) {
        stream->record.has_resume = 1;
        stream->record.resume_by = stream->resume_by;
        ngx_http_llmgw_metrics_resume(stream->pool->zone, stream->resume_by);

    } else {
        stream->record.hedged = (attempt == &stream->attempts[1]);
    }

    if (stream->serve.has_second) {
        ngx_http_llmgw_metrics_hedge(stream->pool->zone,
                                     stream->record.hedged
                                     ? NGX_HTTP_LLMGW_HEDGE_WON
                                     : NGX_HTTP_LLMGW_HEDGE_LOST);
    }

    step = llmgw_serve_first(&stream->serve);

    ngx_http_llmgw_claim_resume_as(&stream->claim, attempt->replica);
    ngx_http_llmgw_serve_settle(stream, attempt, &step);
}


/* Notes what the next replica would have to know. */

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


/*
 * Runs within a callback, too: the stream is posted, and handles the end when
 * it runs.
 */

static void
ngx_http_llmgw_serve_end(ngx_http_llmgw_attempt_t *attempt)
{
    ngx_http_llmgw_clients_post(ngx_http_llmgw_serve_owner(attempt));
}


/*
 * A message may be several tokens, or none.  In an answer that is passed on
 * whole, the first piece counts as the first token.  In a stream it does not:
 * an engine may announce an answer before it has read the prompt.
 */

static void
ngx_http_llmgw_serve_count(ngx_http_llmgw_stream_t *stream,
    ngx_http_llmgw_lease_t *lease, const llmgw_token_t *token)
{
    ngx_uint_t  is_first;

    if (token->count == 0
        && (token->more == NULL || token->more->raw == NULL
            || !stream->holds || stream->record.has_first_token))
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
