
/*
 * Generate: an attempt's call to a replica over gRPC, and its result.  Most
 * messages are plain tokens, and are not even decoded; a real engine's may
 * contain more, and are decoded on the stack (proto/token_message.h).
 *
 * Only ngx_http_llmgw_attempt_ending() in attempt.c interprets the replica's
 * status.
 */

#include "attempt/attempt.h"
#include "llmgateway.pb-c.h"
#include "proto/ask_message.h"
#include "proto/utf8.h"


#define NGX_HTTP_LLMGW_GENERATE      "/llmgateway.LLMReplica/Generate"
#define NGX_HTTP_LLMGW_GRACE_MS      1000       /* so our deadline ends first */
#define NGX_HTTP_LLMGW_MAX_MESSAGE   1024       /* of a grpc-message */
#define NGX_HTTP_LLMGW_TRACE_FIELDS  2

/* The most failures of shards that are counted for one attempt, whatever its
   replica reports; far more than a stream survives. */
#define NGX_HTTP_LLMGW_MAX_SHARD_FAILURES  1000


static ngx_int_t ngx_http_llmgw_generate_ask(
    ngx_http_llmgw_attempt_t *attempt);
static ngx_uint_t ngx_http_llmgw_generate_is_plain(
    ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_generate_set_limit(
    ngx_http_llmgw_attempt_t *attempt);
static uint64_t ngx_http_llmgw_generate_timeout(
    const ngx_http_llmgw_ask_t *ask);
static ngx_uint_t ngx_http_llmgw_generate_trace(llmgw_trace_span_t *trace,
    llmgw_grpc_field_t fields[NGX_HTTP_LLMGW_TRACE_FIELDS]);
static void ngx_http_llmgw_generate_on_field(llmgw_grpc_stream_t *call,
    const char *name, size_t name_len, const char *value, size_t value_len,
    int is_trailer);
static ngx_uint_t ngx_http_llmgw_generate_pushback(const char *value,
    size_t len);
static void ngx_http_llmgw_generate_on_message(llmgw_grpc_stream_t *call,
    const uint8_t *data, size_t len, size_t wire_bytes);
static ngx_int_t ngx_http_llmgw_generate_token(
    ngx_http_llmgw_attempt_t *attempt, const llmgw_token_t *token,
    size_t wire_bytes);
static ngx_int_t ngx_http_llmgw_generate_decode(
    ngx_http_llmgw_attempt_t *attempt, const uint8_t *data, size_t len,
    size_t wire_bytes);
static ngx_int_t ngx_http_llmgw_generate_more(
    ngx_http_llmgw_attempt_t *attempt, const llmgw_token_t *token,
    size_t wire_bytes);
static void ngx_http_llmgw_generate_quiet(ngx_http_llmgw_attempt_t *attempt,
    size_t wire_bytes);
static void ngx_http_llmgw_generate_keep_shards(
    ngx_http_llmgw_attempt_t *attempt, const Llmgateway__Shards *shards);
static void ngx_http_llmgw_generate_keep_failure(
    ngx_http_llmgw_attempt_t *attempt, const Llmgateway__Failure *failure);
static llmgw_end_t *ngx_http_llmgw_generate_refusal(
    ngx_http_llmgw_attempt_t *attempt);
static void ngx_http_llmgw_generate_on_end(llmgw_grpc_stream_t *call,
    int status, const char *message);
static void ngx_http_llmgw_generate_keep_message(
    ngx_http_llmgw_attempt_t *attempt, const char *message);
static void ngx_http_llmgw_generate_on_close(llmgw_grpc_stream_t *call,
    uint32_t http2_error, int is_refused);
static void ngx_http_llmgw_generate_on_goaway(llmgw_grpc_session_t *grpc);
static void ngx_http_llmgw_generate_on_settings(llmgw_grpc_session_t *grpc);


static const llmgw_grpc_callbacks_t  ngx_http_llmgw_generate_cbs = {
    .on_field = ngx_http_llmgw_generate_on_field,
    .on_message = ngx_http_llmgw_generate_on_message,
    .on_end = ngx_http_llmgw_generate_on_end,
    .on_close = ngx_http_llmgw_generate_on_close,
    .on_goaway = ngx_http_llmgw_generate_on_goaway,
    .on_settings = ngx_http_llmgw_generate_on_settings,
};


const llmgw_grpc_callbacks_t *
ngx_http_llmgw_generate_callbacks(void)
{
    return &ngx_http_llmgw_generate_cbs;
}


ngx_int_t
ngx_http_llmgw_generate_send(ngx_http_llmgw_attempt_t *attempt)
{
    llmgw_grpc_call_t            call;
    llmgw_grpc_field_t           fields[NGX_HTTP_LLMGW_TRACE_FIELDS];
    const ngx_http_llmgw_ask_t  *ask;

    ask = attempt->ask;

    ngx_memzero(&call, sizeof(llmgw_grpc_call_t));

    call.path = NGX_HTTP_LLMGW_GENERATE;
    call.authority = (char *) attempt->replica->member.grpc;
    call.timeout_ms = ngx_http_llmgw_generate_timeout(ask);
    call.fields = fields;
    call.nfields = ngx_http_llmgw_generate_trace(ask->trace, fields);
    call.data = attempt;

    if (llmgw_grpc_call(attempt->session->grpc, &call, &attempt->call)
        != LLMGW_GRPC_DONE)
    {
        attempt->call = NULL;
        return NGX_ERROR;
    }

    attempt->session->called = 1;
    ngx_http_llmgw_generate_set_limit(attempt);

    if (ngx_http_llmgw_generate_ask(attempt) != NGX_OK) {
        return NGX_ERROR;
    }

    return llmgw_grpc_half_close(attempt->call) == LLMGW_GRPC_DONE
           ? NGX_OK : NGX_ERROR;
}


static uint64_t
ngx_http_llmgw_generate_timeout(const ngx_http_llmgw_ask_t *ask)
{
    ngx_msec_int_t  left;

    if (!ask->has_deadline) {
        return 0;
    }

    left = (ngx_msec_int_t) (ask->deadline_ms - ngx_current_msec);

    return ngx_max(left, 0) + NGX_HTTP_LLMGW_GRACE_MS;
}


/*
 * A replica's call is a span of its own under the client's: so the parts of a
 * stream that was taken over can be distinguished.  Returns the number of
 * fields.
 */

static ngx_uint_t
ngx_http_llmgw_generate_trace(llmgw_trace_span_t *trace,
    llmgw_grpc_field_t fields[NGX_HTTP_LLMGW_TRACE_FIELDS])
{
    if (trace == NULL) {
        return 0;
    }

    /* random enough to differ within one trace */

    do {
        trace->span = (uint64_t) ngx_random() << 42
                      ^ (uint64_t) ngx_random() << 21
                      ^ (uint64_t) ngx_random();
    } while (trace->span == 0);

    llmgw_trace_format(&trace->parent, trace->span, trace->text);

    fields[0].name = "traceparent";
    fields[0].value = trace->text;
    fields[1].name = "tracestate";
    fields[1].value = trace->state;

    return trace->state ? 2 : 1;
}


/* 1: the replica probably does not read OpenAI requests. */

static ngx_uint_t
ngx_http_llmgw_generate_is_plain(ngx_http_llmgw_attempt_t *attempt)
{
    return attempt->ask->openai && !attempt->session->has_more
           && !ngx_http_llmgw_replica_reads_openai(attempt->replica);
}


/* Readers of plain text must not exceed the max_tokens that they were sent. */

static void
ngx_http_llmgw_generate_set_limit(ngx_http_llmgw_attempt_t *attempt)
{
    ngx_uint_t                   limit;
    const ngx_http_llmgw_ask_t  *ask;

    ask = attempt->ask;

    limit = ngx_http_llmgw_generate_is_plain(attempt) ? ask->max_tokens
                                                      : ask->token_limit;

    attempt->limit = limit > attempt->from ? limit - attempt->from : 0;
}


/*
 * The body of an OpenAI request is sent from where it is: the client's request
 * keeps it longer than any attempt lives.
 */

static ngx_int_t
ngx_http_llmgw_generate_ask(ngx_http_llmgw_attempt_t *attempt)
{
    uint8_t                      *p;
    ngx_str_t                     prompt;
    llmgw_ask_message_t           message;
    Llmgateway__Delivered         delivered;
    const ngx_http_llmgw_ask_t   *ask;
    Llmgateway__GenerateRequest   request;

    ask = attempt->ask;
    llmgateway__generate_request__init(&request);

    request.request_id = ask->request_id;
    request.max_tokens = ask->max_tokens;
    request.tokens_already_generated = attempt->from;
    request.want = ask->want;
    request.openai = (Llmgateway__OpenaiRequest *) ask->openai;
    request.priority = ask->priority;

    prompt = ask->prompt;

    if (ngx_http_llmgw_generate_is_plain(attempt) && ask->text(ask, &prompt)) {
        return NGX_ERROR;
    }

    request.prompt.data = prompt.data;
    request.prompt.len = prompt.len;

    if (ask->delivered && attempt->resumes) {
        llmgw_delivered_tell(ask->delivered, &delivered);
        request.delivered = &delivered;
    }

    llmgw_ask_message_init(&message, &request);

    p = llmgw_grpc_send_before(attempt->call, message.bytes,
                               message.openai.body.data, message.body_bytes);
    if (p == NULL) {
        return NGX_ERROR;
    }

    llmgw_ask_message_write(&message, p);

    return NGX_OK;
}


static void
ngx_http_llmgw_generate_on_field(llmgw_grpc_stream_t *call, const char *name,
    size_t name_len, const char *value, size_t value_len, int is_trailer)
{
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = llmgw_grpc_stream_data(call);

    if (attempt == NULL) {
        return;
    }

    if (name_len == sizeof("llmgw-draining") - 1
        && ngx_memcmp(name, "llmgw-draining", name_len) == 0
        && value_len == 1 && value[0] == '1')
    {
        attempt->draining = 1;

    } else if (name_len == sizeof("grpc-retry-pushback-ms") - 1
               && ngx_memcmp(name, "grpc-retry-pushback-ms", name_len) == 0)
    {
        attempt->has_pushback = 1;
        attempt->pushback_ms = ngx_http_llmgw_generate_pushback(value,
                                                                value_len);
    }
}


/*
 * In gRPC a value that is not a number means "do not retry": as late as
 * possible.
 */

static ngx_uint_t
ngx_http_llmgw_generate_pushback(const char *value, size_t len)
{
    ngx_int_t  ms;

    ms = ngx_atoi((u_char *) value, len);

    return ms == NGX_ERROR || ms > LLMGW_PUSHBACK_MAX_MS
           ? LLMGW_PUSHBACK_MAX_MS : ms;
}


static void
ngx_http_llmgw_generate_on_message(llmgw_grpc_stream_t *call,
    const uint8_t *data, size_t len, size_t wire_bytes)
{
    ngx_int_t                  rc;
    llmgw_token_t              token;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = llmgw_grpc_stream_data(call);

    if (attempt == NULL || attempt->state.has_ended) {
        (void) llmgw_grpc_stream_consume(call, wire_bytes);
        return;
    }

    rc = llmgw_token_message_read(data, len, &token)
         ? ngx_http_llmgw_generate_token(attempt, &token, wire_bytes)
         : ngx_http_llmgw_generate_decode(attempt, data, len, wire_bytes);

    if (rc != NGX_OK) {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED,
                                   LLMGW_CAUSE_MALFORMED);
    }
}


/*
 * This and the next two return NGX_DECLINED if the message breaks a rule: only
 * a final message may bring more tokens than were asked for, and text must be
 * valid UTF-8: a client's protobuf decoder would fail at other bytes.
 */

static ngx_int_t
ngx_http_llmgw_generate_token(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token, size_t wire_bytes)
{
    if ((!token->is_final
         && token->count > attempt->limit - attempt->state.tokens)
        || !llmgw_utf8_is_valid(token->text, token->text_len))
    {
        return NGX_DECLINED;
    }

    attempt->unacked += wire_bytes;
    attempt->state.heard_ms = ngx_current_msec;

    if (!attempt->state.has_begun) {
        attempt->state.has_begun = 1;
        ngx_http_llmgw_session_proves(attempt->session);
        ngx_http_llmgw_lease_proves(&attempt->lease);
    }

    attempt->state.tokens += token->count;
    attempt->ask->events->token(attempt, token);

    if (token->is_final) {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FINAL,
                                   LLMGW_CAUSE_NONE);
    }

    return NGX_OK;
}


static ngx_int_t
ngx_http_llmgw_generate_decode(ngx_http_llmgw_attempt_t *attempt,
    const uint8_t *data, size_t len, size_t wire_bytes)
{
    ngx_int_t            rc;
    llmgw_token_t        token;
    llmgw_token_arena_t  arena;

    rc = NGX_DECLINED;

    if (llmgw_token_message_decode(data, len, attempt->ask->openai != NULL,
                                   &arena, &token))
    {
        rc = token.more
             ? ngx_http_llmgw_generate_more(attempt, &token, wire_bytes)
             : ngx_http_llmgw_generate_token(attempt, &token, wire_bytes);
    }

    llmgw_token_arena_done(&arena);

    return rc;
}


static ngx_int_t
ngx_http_llmgw_generate_more(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token, size_t wire_bytes)
{
    const Llmgateway__GenerateResponse  *more;

    more = token->more;

    attempt->session->has_more = 1;
    ngx_http_llmgw_generate_set_limit(attempt);

    if (more->raw && attempt->ask->openai == NULL) {
        return NGX_DECLINED;    /* Infer's clients read only text */
    }

    if (more->shards) {
        ngx_http_llmgw_generate_keep_shards(attempt, more->shards);
    }

    if (more->failure) {
        if (attempt->state.has_begun || attempt->refusal) {
            return NGX_DECLINED;    /* raw is a whole answer by itself */
        }

        ngx_http_llmgw_generate_keep_failure(attempt, more->failure);
    }

    /*
     * facts alone do not start a stream: the attempt that starts it wins a
     * hedge
     */

    if (llmgw_token_is_output(token)
        || (attempt->state.has_begun
            && (more->usage || more->prompt || more->resume_by)))
    {
        return ngx_http_llmgw_generate_token(attempt, token, wire_bytes);
    }

    ngx_http_llmgw_generate_quiet(attempt, wire_bytes);

    return NGX_OK;
}


/* For the gateway only, not for its client: returns the message's window. */

static void
ngx_http_llmgw_generate_quiet(ngx_http_llmgw_attempt_t *attempt,
    size_t wire_bytes)
{
    attempt->state.heard_ms = ngx_current_msec;
    ngx_http_llmgw_session_proves(attempt->session);

    if (llmgw_grpc_stream_consume(attempt->call, wire_bytes)) {
        ngx_http_llmgw_session_wake(attempt->session);
    }
}


/* A replica reports failures of its shards once. */

static void
ngx_http_llmgw_generate_keep_shards(ngx_http_llmgw_attempt_t *attempt,
    const Llmgateway__Shards *shards)
{
    ngx_str_t                 last;
    ngx_http_llmgw_shards_t  *kept;

    if (attempt->shards == NULL) {
        attempt->shards = ngx_pcalloc(attempt->ask->memory,
                                      sizeof(ngx_http_llmgw_shards_t));
    }

    kept = attempt->shards;

    if (kept == NULL || kept->last.len) {
        return;
    }

    kept->failures = ngx_min(shards->failures,
                             NGX_HTTP_LLMGW_MAX_SHARD_FAILURES);
    last.data = (u_char *) shards->last;
    last.len = ngx_strlen(shards->last);
    kept->last.data = ngx_pstrdup(attempt->ask->memory, &last);
    kept->last.len = kept->last.data ? last.len : 0;
}


/* Keeps the engine's refusal of the request; the call's status follows. */

static void
ngx_http_llmgw_generate_keep_failure(ngx_http_llmgw_attempt_t *attempt,
    const Llmgateway__Failure *failure)
{
    ngx_str_t     body;
    llmgw_end_t  *refusal;

    body.data = failure->body.data;
    body.len = failure->body.len;

    if (failure->denies_model && attempt->reported) {
        attempt->denies = 1;
        ngx_http_llmgw_lease_denies(&attempt->lease);
    }

    refusal = ngx_http_llmgw_generate_refusal(attempt);

    if (refusal) {
        refusal->http = failure->status;
        refusal->body = (char *) ngx_pstrdup(attempt->ask->memory, &body);
        refusal->body_len = refusal->body ? body.len : 0;
    }
}


static llmgw_end_t *
ngx_http_llmgw_generate_refusal(ngx_http_llmgw_attempt_t *attempt)
{
    if (attempt->refusal == NULL) {
        attempt->refusal = ngx_pcalloc(attempt->ask->memory,
                                       sizeof(llmgw_end_t));
    }

    return attempt->refusal;
}


static void
ngx_http_llmgw_generate_on_end(llmgw_grpc_stream_t *call, int status,
    const char *message)
{
    llmgw_cause_t              cause;
    llmgw_ending_t             ending;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = llmgw_grpc_stream_data(call);

    if (attempt == NULL || attempt->state.has_ended) {
        return;
    }

    ngx_http_llmgw_session_proves(attempt->session);

    attempt->status = status;
    ngx_http_llmgw_generate_keep_message(attempt, message);

    ending = ngx_http_llmgw_attempt_ending(attempt, status, &cause);

    if (ending == LLMGW_ENDING_FULL) {
        ngx_http_llmgw_replica_is_full(attempt->replica);
    }

    ngx_http_llmgw_attempt_end(attempt, ending, cause);
}


static void
ngx_http_llmgw_generate_keep_message(ngx_http_llmgw_attempt_t *attempt,
    const char *message)
{
    ngx_str_t     text;
    llmgw_end_t  *refusal;

    text.data = (u_char *) message;
    text.len = ngx_min(ngx_strlen(message), NGX_HTTP_LLMGW_MAX_MESSAGE);

    refusal = text.len ? ngx_http_llmgw_generate_refusal(attempt) : NULL;

    if (refusal) {
        refusal->text = (char *) ngx_pstrdup(attempt->ask->memory, &text);
        refusal->text_len = refusal->text ? text.len : 0;
    }
}


static void
ngx_http_llmgw_generate_on_close(llmgw_grpc_stream_t *call,
    uint32_t http2_error, int is_refused)
{
    ngx_http_llmgw_attempt_t  *attempt;
    ngx_http_llmgw_session_t  *session;

    attempt = llmgw_grpc_stream_data(call);
    session = llmgw_grpc_session_data(llmgw_grpc_stream_session(call));

    /* capacity is free for a waiting claim */
    ngx_http_llmgw_session_wake(session);

    if (attempt == NULL) {
        return;
    }

    attempt->call = NULL;

    ngx_http_llmgw_attempt_end(attempt,
                   is_refused ? LLMGW_ENDING_REFUSED : LLMGW_ENDING_FAILED,
                   is_refused ? LLMGW_CAUSE_GOAWAY : LLMGW_CAUSE_RESET);
}


static void
ngx_http_llmgw_generate_on_goaway(llmgw_grpc_session_t *grpc)
{
    ngx_http_llmgw_session_retire(llmgw_grpc_session_data(grpc));
}


static void
ngx_http_llmgw_generate_on_settings(llmgw_grpc_session_t *grpc)
{
    ngx_http_llmgw_session_ready(llmgw_grpc_session_data(grpc));
}
