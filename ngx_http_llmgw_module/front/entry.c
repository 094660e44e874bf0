
/*
 * How a stream enters and leaves (admit/admit.h, keys/keys.h): once each,
 * whatever happens in between.  Its caller's account is checked last, so that a
 * request that is refused elsewhere has taken nothing there.
 */

#include "fleet/pool.h"
#include "front/stream.h"


static ngx_int_t ngx_http_llmgw_entry_admits(ngx_http_llmgw_stream_t *stream,
    llmgw_end_t *end);
static ngx_int_t ngx_http_llmgw_entry_priority(
    ngx_http_llmgw_stream_t *stream);
static ngx_int_t ngx_http_llmgw_entry_charge(ngx_http_llmgw_stream_t *stream,
    llmgw_end_t *end);
static ngx_str_t ngx_http_llmgw_entry_model(ngx_http_llmgw_stream_t *stream);
static void ngx_http_llmgw_entry_leaves(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome);
static void ngx_http_llmgw_entry_settles(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome);
static ngx_int_t ngx_http_llmgw_entry_prompt_tokens(
    ngx_http_llmgw_stream_t *stream);


ngx_int_t
ngx_http_llmgw_entry_said(ngx_http_llmgw_stream_t *stream,
    const ngx_http_llmgw_said_t *said)
{
    ngx_http_llmgw_identity_t  *identity;

    if (!ngx_http_llmgw_admits(stream->conf, stream->pool->conf,
                               stream->caller))
    {
        return NGX_OK;
    }

    identity = ngx_pcalloc(stream->request->pool,
                           sizeof(ngx_http_llmgw_identity_t));
    if (identity == NULL) {
        return NGX_ERROR;
    }

    identity->said = *said;
    stream->identity = identity;

    return NGX_OK;
}


ngx_uint_t
ngx_http_llmgw_entry_refused(ngx_http_llmgw_stream_t *stream)
{
    llmgw_end_t  end;

    if (ngx_http_llmgw_entry_admits(stream, &end) == NGX_OK
        && ngx_http_llmgw_entry_charge(stream, &end) == NGX_OK)
    {
        return 0;
    }

    ngx_http_llmgw_stream_answer(stream, &end);

    return 1;
}


/* Admits by the upstream's rules.  NGX_DECLINED: *end has the reason. */

static ngx_int_t
ngx_http_llmgw_entry_admits(ngx_http_llmgw_stream_t *stream, llmgw_end_t *end)
{
    if (stream->identity == NULL) {
        return NGX_OK;
    }

    ngx_http_llmgw_identify(stream->request, stream->pool, stream->identity,
                            stream->caller, &stream->record, &stream->claim);

    if (ngx_http_llmgw_entry_priority(stream) != NGX_OK) {
        ngx_memzero(end, sizeof(llmgw_end_t));
        end->outcome = LLMGW_OUTCOME_INTERNAL;
        return NGX_DECLINED;
    }

    return ngx_http_llmgw_enter(stream->pool, stream->identity, &stream->claim,
                                end);
}


/*
 * Sets the priority at the engine, by the request's class.  If some class has
 * one, a request with a class cannot set its own.
 */

static ngx_int_t
ngx_http_llmgw_entry_priority(ngx_http_llmgw_stream_t *stream)
{
    ngx_int_t                         value;
    Llmgateway__Priority             *priority;
    const ngx_http_llmgw_rules_t     *rules;
    const ngx_http_llmgw_identity_t  *identity;

    identity = stream->identity;
    rules = stream->pool->conf->rules;

    if (!rules->has_engine_priority || identity->whose.class.len == 0) {
        return NGX_OK;
    }

    priority = ngx_palloc(stream->request->pool, sizeof(Llmgateway__Priority));
    if (priority == NULL) {
        return NGX_ERROR;
    }

    llmgateway__priority__init(priority);
    stream->ask.priority = priority;

    value = identity->class < LLMGW_CLASSES_MAX
            ? rules->slo[identity->class].engine_priority : NGX_CONF_UNSET;

    if (value != NGX_CONF_UNSET) {
        priority->has_value_case = LLMGATEWAY__PRIORITY__HAS_VALUE_VALUE;
        priority->value = value;
    }

    return NGX_OK;
}


/* Charges the caller's account. */

static ngx_int_t
ngx_http_llmgw_entry_charge(ngx_http_llmgw_stream_t *stream, llmgw_end_t *end)
{
    const ngx_http_llmgw_ask_t  *ask;
    ngx_http_llmgw_charge_t      charge;

    if (stream->caller == NULL) {
        return NGX_OK;
    }

    ngx_memzero(&charge, sizeof(ngx_http_llmgw_charge_t));
    ngx_memzero(end, sizeof(llmgw_end_t));

    ask = &stream->ask;
    charge.model = ngx_http_llmgw_entry_model(stream);
    charge.request_id = ngx_http_llmgw_record_id(&stream->record);
    charge.class = stream->caller->class;
    charge.tenant = stream->caller->tenant;

    if (stream->identity) {
        charge.class = stream->identity->whose.class;
        charge.tenant = stream->identity->name;
    }

    if (ask->openai) {
        charge.bytes = stream->record.usage->prompt_bytes;
        charge.max_tokens = (uint64_t) ask->openai->max_tokens * ask->choices;

        if (ask->openai->engine_model) {
            charge.served.data = (u_char *) ask->openai->engine_model;
            charge.served.len = ngx_strlen(charge.served.data);
        }

    } else {
        charge.bytes = ask->prompt.len;
        charge.max_tokens = ask->max_tokens;

        if (!ngx_http_llmgw_caller_may(stream->caller, &charge.model)) {
            end->outcome = LLMGW_OUTCOME_NOT_FOUND;
            return NGX_DECLINED;
        }
    }

    if (ngx_http_llmgw_caller_enter(stream->caller, &charge, end) != NGX_OK) {
        return NGX_DECLINED;
    }

    stream->slot = ngx_http_llmgw_caller_slot(stream->caller);

    return NGX_OK;
}


/*
 * The client's name of the model; Infer requests have none, and get the pool's.
 */

static ngx_str_t
ngx_http_llmgw_entry_model(ngx_http_llmgw_stream_t *stream)
{
    ngx_str_t    name;
    const char  *base;

    if (stream->record.usage) {
        return stream->record.usage->model;
    }

    ngx_http_llmgw_pool_look(stream->pool);
    name = stream->pool->conf->model;
    base = name.len ? NULL : ngx_http_llmgw_pool_model(stream->pool);

    if (base) {
        name.data = (u_char *) base;
        name.len = ngx_strlen(name.data);
    }

    return name;
}


void
ngx_http_llmgw_entry_first_token(ngx_http_llmgw_stream_t *stream)
{
    ngx_http_llmgw_identity_t  *identity;

    identity = stream->identity;

    if (identity == NULL) {
        return;
    }

    if (identity->class_cohort) {
        ngx_http_llmgw_cohorts_first_token(identity->class_cohort,
                                           stream->record.first_token_ms);
    }

    if (identity->tenant_cohort) {
        ngx_http_llmgw_cohorts_first_token(identity->tenant_cohort,
                                           stream->record.first_token_ms);
    }
}


void
ngx_http_llmgw_entry_restarts(ngx_http_llmgw_stream_t *stream)
{
    stream->wasted += stream->record.tokens;

    if (stream->slot) {
        llmgw_usage_slot_wasted(stream->slot, stream->wasted);
        llmgw_usage_slot_delivered(stream->slot, 0);
    }
}


void
ngx_http_llmgw_entry_ends(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome)
{
    if (stream->identity) {
        ngx_http_llmgw_entry_leaves(stream, outcome);
    }

    if (stream->slot) {
        ngx_http_llmgw_entry_settles(stream, outcome);
    }
}


/* A stream without any token counts as having waited for one until its end. */

static void
ngx_http_llmgw_entry_leaves(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome)
{
    ngx_msec_t               start;
    ngx_http_llmgw_leave_t   leave;
    ngx_http_llmgw_record_t  *record;

    record = &stream->record;
    ngx_memzero(&leave, sizeof(ngx_http_llmgw_leave_t));

    leave.outcome = outcome;
    leave.has_times = 1;
    leave.tokens = record->tokens;
    leave.first_token_ms = ngx_current_msec - record->start_ms;
    leave.prompt_tokens = ngx_http_llmgw_entry_prompt_tokens(stream);

    if (record->has_first_token) {
        start = record->start_ms + record->first_token_ms;
        leave.first_token_ms = record->first_token_ms;
        leave.tokens_ms = stream->token_ms - start;
    }

    ngx_http_llmgw_leave(stream->pool, stream->identity, &leave);
}


/*
 * Settles by the engine's own count if there is one, or else by what the engine
 * sent.
 */

static void
ngx_http_llmgw_entry_settles(ngx_http_llmgw_stream_t *stream,
    llmgw_outcome_t outcome)
{
    ngx_int_t                 prompt;
    llmgw_accounts_end_t      end;
    const llmgw_delivered_t  *delivered;

    ngx_memzero(&end, sizeof(llmgw_accounts_end_t));

    delivered = stream->ask.delivered;
    prompt = ngx_http_llmgw_entry_prompt_tokens(stream);

    if (prompt == -1 && stream->record.tokens == 0
        && outcome != LLMGW_OUTCOME_SERVED && outcome != LLMGW_OUTCOME_GONE)
    {
        prompt = 0;                 /* an error without any token */
    }

    end.prompt = prompt == -1 ? LLMGW_USAGE_UNKNOWN : (uint64_t) prompt;
    end.completion = stream->record.tokens;
    end.wasted = stream->wasted;
    end.outcome = llmgw_outcome_name(outcome);
    end.settled_by = LLMGW_SETTLED_BY_COUNT;

    if (delivered) {
        end.cached = delivered->cached_tokens;
    }

    if (stream->record.usage) {
        end.reasoning = stream->record.usage->reasoning_tokens;
    }

    if (delivered && delivered->has_usage) {
        end.completion = delivered->completion_tokens;
        end.settled_by = LLMGW_SETTLED_BY_ENGINE;
    }

    stream->slot = NULL;
    ngx_http_llmgw_caller_leave(stream->caller, &end);
}


/* As the engine counted the prompt; 0 if no engine got it; -1: not known. */

static ngx_int_t
ngx_http_llmgw_entry_prompt_tokens(ngx_http_llmgw_stream_t *stream)
{
    const llmgw_delivered_t  *delivered;

    if (stream->record.attempts == 0) {
        return 0;
    }

    delivered = stream->ask.delivered;

    return delivered && (delivered->has_prompt || delivered->has_usage)
           ? (ngx_int_t) delivered->prompt_tokens : -1;
}
