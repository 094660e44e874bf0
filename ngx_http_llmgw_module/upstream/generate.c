
/*
 * Generate: what an attempt asks a replica over gRPC, and what comes of it.
 * What a status of the replica means is decided here, in generate_ending(),
 * and nowhere else.
 */

#include "llmgateway.pb-c.h"
#include "proto/utf8.h"
#include "upstream/generate.h"


#define NGX_HTTP_LLMGW_GENERATE      "/llmgateway.LLMReplica/Generate"
#define NGX_HTTP_LLMGW_GRACE_MS      1000       /* so our deadline ends first */
#define NGX_HTTP_LLMGW_MAX_MESSAGE   1024       /* of a grpc-message */
#define NGX_HTTP_LLMGW_TRACE_FIELDS  2


static uint64_t ngx_http_llmgw_generate_timeout(
    const ngx_http_llmgw_ask_t *ask);
static ngx_uint_t ngx_http_llmgw_generate_trace(llmgw_trace_span_t *trace,
    llmgw_grpc_field_t fields[NGX_HTTP_LLMGW_TRACE_FIELDS]);
static void ngx_http_llmgw_generate_on_field(llmgw_grpc_stream_t *call,
    const char *name, size_t name_len, const char *value, size_t value_len,
    int is_trailer);
static void ngx_http_llmgw_generate_on_message(llmgw_grpc_stream_t *call,
    const uint8_t *data, size_t len, size_t wire_bytes);
static ngx_uint_t ngx_http_llmgw_generate_may_follow(
    ngx_http_llmgw_attempt_t *attempt, const llmgw_token_t *token);
static void ngx_http_llmgw_generate_token(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token, size_t wire_bytes);
static u_char *ngx_http_llmgw_generate_rewrite(const uint8_t *data,
    size_t *len);
static void ngx_http_llmgw_generate_on_end(llmgw_grpc_stream_t *call,
    int status, const char *message);
static llmgw_ending_t ngx_http_llmgw_generate_ending(
    ngx_http_llmgw_attempt_t *attempt, int status, llmgw_cause_t *cause);
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
    size_t                         size;
    uint8_t                       *p;
    llmgw_grpc_call_t              call;
    llmgw_grpc_field_t             fields[NGX_HTTP_LLMGW_TRACE_FIELDS];
    const ngx_http_llmgw_ask_t    *ask;
    Llmgateway__GenerateRequest    request;

    ask = attempt->ask;

    llmgateway__generate_request__init(&request);

    request.request_id = ask->request_id;
    request.prompt.data = ask->prompt.data;
    request.prompt.len = ask->prompt.len;
    request.max_tokens = ask->max_tokens;
    request.tokens_already_generated = attempt->from;

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

    size = llmgateway__generate_request__get_packed_size(&request);

    p = llmgw_grpc_send_reserve(attempt->call, size);
    if (p == NULL) {
        return NGX_ERROR;
    }

    llmgateway__generate_request__pack(&request, p);

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
 * A replica's call is a span of its own under the client's: the two halves of
 * a stream that another replica took over can be told apart.  Returns how many
 * fields it takes.
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


static void
ngx_http_llmgw_generate_on_field(llmgw_grpc_stream_t *call, const char *name,
    size_t name_len, const char *value, size_t value_len, int is_trailer)
{
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = llmgw_grpc_stream_data(call);

    if (attempt
        && name_len == sizeof("llmgw-draining") - 1
        && ngx_memcmp(name, "llmgw-draining", name_len) == 0
        && value_len == 1 && value[0] == '1')
    {
        attempt->draining = 1;
    }
}


static void
ngx_http_llmgw_generate_on_message(llmgw_grpc_stream_t *call,
    const uint8_t *data, size_t len, size_t wire_bytes)
{
    u_char                    *rewritten;
    ngx_uint_t                 ok;
    llmgw_token_t              token;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = llmgw_grpc_stream_data(call);

    if (attempt == NULL || attempt->ended) {
        (void) llmgw_grpc_stream_consume(call, wire_bytes);
        return;
    }

    rewritten = NULL;
    ok = llmgw_token_message_read(data, len, &token);

    if (!ok) {
        rewritten = ngx_http_llmgw_generate_rewrite(data, &len);
        ok = rewritten && llmgw_token_message_read(rewritten, len, &token);
    }

    if (ok && ngx_http_llmgw_generate_may_follow(attempt, &token)) {
        ngx_http_llmgw_generate_token(attempt, &token, wire_bytes);

    } else {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED,
                                   LLMGW_CAUSE_MALFORMED);
    }

    free(rewritten);
}


/*
 * 1: the token may be passed on.  No more than were asked for may follow,
 * except for a final message, and its text must be valid UTF-8: a client's
 * protobuf decoder would fail at other bytes.
 */

static ngx_uint_t
ngx_http_llmgw_generate_may_follow(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token)
{
    return (token->is_final
            || attempt->from + attempt->tokens < attempt->ask->max_tokens)
           && llmgw_utf8_is_valid(token->text, token->text_len);
}


static void
ngx_http_llmgw_generate_token(ngx_http_llmgw_attempt_t *attempt,
    const llmgw_token_t *token, size_t wire_bytes)
{
    attempt->unacked += wire_bytes;
    attempt->activity_ms = ngx_current_msec;

    if (attempt->tokens++ == 0) {
        ngx_http_llmgw_session_proves(attempt->session);
        ngx_http_llmgw_lease_proves(&attempt->lease);
    }

    attempt->ask->events->token(attempt, token);

    if (token->is_final) {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FINAL,
                                   LLMGW_CAUSE_NONE);
    }
}


/*
 * For a message that our own encoder would write otherwise, or with fields
 * that we do not know: encodes the fields that we know anew.  NULL: no valid
 * message, or no memory.
 */

static u_char *
ngx_http_llmgw_generate_rewrite(const uint8_t *data, size_t *len)
{
    u_char                        *p;
    Llmgateway__GenerateResponse   known, *response;

    response = llmgateway__generate_response__unpack(NULL, *len, data);
    if (response == NULL) {
        return NULL;
    }

    llmgateway__generate_response__init(&known);

    known.token = response->token;
    known.is_final = response->is_final;

    *len = llmgateway__generate_response__get_packed_size(&known);

    p = malloc(*len + 1);       /* it may be empty */
    if (p) {
        llmgateway__generate_response__pack(&known, p);
    }

    llmgateway__generate_response__free_unpacked(response, NULL);

    return p;
}


static void
ngx_http_llmgw_generate_on_end(llmgw_grpc_stream_t *call, int status,
    const char *message)
{
    llmgw_cause_t              cause;
    llmgw_ending_t             ending;
    ngx_http_llmgw_attempt_t  *attempt;

    attempt = llmgw_grpc_stream_data(call);

    if (attempt == NULL || attempt->ended) {
        return;
    }

    ngx_http_llmgw_session_proves(attempt->session);

    attempt->status = status;
    ngx_http_llmgw_generate_keep_message(attempt, message);

    ending = ngx_http_llmgw_generate_ending(attempt, status, &cause);

    if (ending == LLMGW_ENDING_FULL) {
        ngx_http_llmgw_replica_is_full(attempt->replica);
    }

    ngx_http_llmgw_attempt_end(attempt, ending, cause);
}


static llmgw_ending_t
ngx_http_llmgw_generate_ending(ngx_http_llmgw_attempt_t *attempt, int status,
    llmgw_cause_t *cause)
{
    *cause = LLMGW_CAUSE_STATUS;

    switch (status) {

    case LLMGW_GRPC_OK:
        *cause = LLMGW_CAUSE_UNFINISHED;
        return attempt->from + attempt->tokens < attempt->ask->max_tokens
               ? LLMGW_ENDING_FAILED : LLMGW_ENDING_FINAL;

    case LLMGW_GRPC_INVALID_ARGUMENT:
    case LLMGW_GRPC_NOT_FOUND:
    case LLMGW_GRPC_PERMISSION_DENIED:
    case LLMGW_GRPC_FAILED_PRECONDITION:
    case LLMGW_GRPC_OUT_OF_RANGE:
        return LLMGW_ENDING_PASSED;

    case LLMGW_GRPC_UNAUTHENTICATED:
    case LLMGW_GRPC_UNIMPLEMENTED:
        /* not the request's fault: a replica has served tokens of it */
        return attempt->from + attempt->tokens ? LLMGW_ENDING_FAILED
                                               : LLMGW_ENDING_DOUBTED;

    case LLMGW_GRPC_UNAVAILABLE:
        if (attempt->draining) {
            *cause = LLMGW_CAUSE_DRAINING;
            return LLMGW_ENDING_DRAINING;
        }
        return LLMGW_ENDING_FAILED;

    case LLMGW_GRPC_RESOURCE_EXHAUSTED:
        if (attempt->tokens == 0) {
            *cause = LLMGW_CAUSE_FULL;
            return LLMGW_ENDING_FULL;
        }
        return LLMGW_ENDING_FAILED;

    default:
        return LLMGW_ENDING_FAILED;
    }
}


static void
ngx_http_llmgw_generate_keep_message(ngx_http_llmgw_attempt_t *attempt,
    const char *message)
{
    size_t  len;
    u_char  *p;

    len = message ? ngx_strlen(message) : 0;
    len = ngx_min(len, NGX_HTTP_LLMGW_MAX_MESSAGE);

    p = len ? ngx_pnalloc(attempt->ask->memory, len) : NULL;

    if (p == NULL) {
        attempt->message.len = 0;
        return;
    }

    ngx_memcpy(p, message, len);
    attempt->message.data = p;
    attempt->message.len = len;
}


static void
ngx_http_llmgw_generate_on_close(llmgw_grpc_stream_t *call,
    uint32_t http2_error, int is_refused)
{
    ngx_http_llmgw_attempt_t  *attempt;
    ngx_http_llmgw_session_t  *session;

    attempt = llmgw_grpc_stream_data(call);
    session = llmgw_grpc_session_data(llmgw_grpc_stream_session(call));

    /* a place is free for one that waits */
    ngx_http_llmgw_session_wake(session);

    if (attempt == NULL) {
        return;
    }

    attempt->call = NULL;

    if (is_refused) {
        ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_REFUSED,
                                   LLMGW_CAUSE_GOAWAY);
        return;
    }

    ngx_http_llmgw_attempt_end(attempt, LLMGW_ENDING_FAILED,
                               LLMGW_CAUSE_RESET);
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
