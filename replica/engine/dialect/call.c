
/*
 * A call's steps, and the driver's functions.
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/utf8.h"
#include "replica/engine/dialect/dialect_inner.h"


static int
call_keep(dialect_call_t *call)
{
    const Llmgateway__OpenaiRequest    *openai;
    const Llmgateway__GenerateRequest  *request;

    request = call->request;
    openai = request->openai;

    call->want = request->want;
    call->is_infer = openai == NULL;
    call->is_plain = openai == NULL && request->want == 0;
    call->nchoices = 1;

    if (openai == NULL) {
        call->api = LLMGATEWAY__API__API_COMPLETIONS;
        call->is_stream = 1;
        return 0;
    }

    call->api = openai->api;
    call->features = openai->features;
    call->is_stream = openai->stream != 0;
    call->include_usage = openai->include_usage != 0;
    call->created = openai->created;

    buf_string(&call->id, openai->id, strlen(openai->id));
    buf_string(&call->model, openai->model, strlen(openai->model));

    return call->id.failed || call->model.failed ? -1 : 0;
}


dialect_call_t *
dialect_call_create(const dialect_t *dialect, const dialect_facts_t *facts,
    const Llmgateway__GenerateRequest *request)
{
    dialect_call_t  *call;

    call = calloc(1, sizeof(dialect_call_t));

    if (call == NULL) {
        return NULL;
    }

    call->dialect = dialect;
    call->facts = facts;
    call->request = request;
    message_begin(call);

    if (call_keep(call) != 0) {
        dialect_call_destroy(call);
        return NULL;
    }

    return call;
}


void
dialect_call_destroy(dialect_call_t *call)
{
    buf_free(&call->id);
    buf_free(&call->model);
    buf_free(&call->engine_model);
    buf_free(&call->path);
    buf_free(&call->type);
    buf_free(&call->body);
    buf_free(&call->answer);
    buf_free(&call->prompt);
    buf_free(&call->data);
    buf_free(&call->again.event);
    buf_free(&call->token);
    buf_free(&call->reasons);
    whole_free(call);
    extra_free(call);
    free(call->ids);
    free(call->given_ids);
    free(call->finishes);
    free(call->why);
    free(call);
}


dialect_do_t
dialect_start(dialect_call_t *call)
{
    return plan_start(call);
}


void
call_step(dialect_call_t *call, step_t step, const char *path)
{
    buf_free(&call->body);

    call->step = step;
    call->http.method = "POST";
    call->http.path = path;
    call->http.is_stream = step == STEP_GENERATE || step == STEP_PASS;
    call->http.is_step = step == STEP_PIECES || step == STEP_DETOKENIZE
                         || step == STEP_RENDER;
}


const dialect_http_t *
dialect_http(dialect_call_t *call)
{
    call->http.body = call->body.data;
    call->http.body_bytes = call->body.len;

    return &call->http;
}


void
dialect_sent(dialect_call_t *call)
{
    buf_free(&call->body);
}


int
dialect_needs_request(const dialect_call_t *call)
{
    return call->request != NULL;
}


/*
 * An engine's refusal of a pass is passed on like any other answer, also a 501,
 * by which llama.cpp reports that it lacks the API.  A 404 is read before,
 * since it may be for an unknown model.
 */
static int
call_passes(const dialect_call_t *call)
{
    unsigned  status;

    status = call->status;

    return call->step == STEP_PASS
           && (status / 100 == 2 || status == 501
               || (status / 100 == 4 && status != 401 && status != 404
                   && status != 429));
}


void
dialect_open(dialect_call_t *call, int is_open)
{
    call->is_open = is_open != 0;
}


dialect_do_t
dialect_head(dialect_call_t *call, unsigned status, const char *content_type)
{
    size_t  len;

    call->status = status;
    call->answer.len = 0;
    call->raw_left = 0;

    len = content_type == NULL ? 0
          : strnlen(content_type, sizeof(call->content_type) - 1);

    if (len > 0 && !llmgw_utf8_is_valid(content_type, len)) {
        len = 0;
    }

    memcpy(call->content_type, len == 0 ? "" : content_type, len);
    call->content_type[len] = '\0';

    call->reads_events = call->step == STEP_GENERATE && status / 100 == 2
                         && strncasecmp(call->content_type,
                                        "text/event-stream", 17) == 0;
    call->passes = call_passes(call);
    pass_begin(call);
    again_begin(call);
    message_begin(call);

    return DIALECT_MORE;
}


int
dialect_reads_events(const dialect_call_t *call)
{
    return call->reads_events;
}


static dialect_do_t
call_done(dialect_call_t *call)
{
    if (!call_is_complete(call)) {
        return call_fail(call, LLMGW_GRPC_UNAVAILABLE,
                         "the engine ended its answer in the middle");
    }

    if (call->out == OUT_WHOLE) {
        return whole_end(call);
    }

    call->has_final = 1;

    return DIALECT_DONE;
}


dialect_do_t
dialect_event(dialect_call_t *call, const char *data, size_t len)
{
    llmgw_json_t  event;
    dialect_do_t  next;

    message_begin(call);

    if (len == 0) {
        return DIALECT_MORE;
    }

    if (again_event(call, data, len, &next)) {
        return next;
    }

    if (len == 6 && memcmp(data, "[DONE]", 6) == 0) {
        return call_done(call);
    }

    if (llmgw_json_check(data, len, &event) != 0
        || (event.kind != LLMGW_JSON_OBJECT && event.kind != LLMGW_JSON_NULL))
    {
        return call_malformed(call, "an event that is no JSON object");
    }

    if (event.kind == LLMGW_JSON_NULL) {
        return DIALECT_MORE;    /* llama.cpp: another prompt has begun */
    }

    if (fault_is_event(event)) {
        return fault_event(call, event);
    }

    if (call->is_rendered && call->dialect->ops->event != NULL) {
        return call->dialect->ops->event(call, event);
    }

    return chunk_event(call, event);
}


dialect_do_t
dialect_bytes(dialect_call_t *call, const char *data, size_t len)
{
    size_t  limit;

    message_begin(call);

    if (call->passes) {
        call->raw_at = data;
        call->raw_left = len;
        pass_bytes(call, data, len);
        return DIALECT_MORE;
    }

    limit = call->status / 100 == 2 ? DIALECT_WHOLE_BYTES
                                    : DIALECT_ERROR_BYTES;

    if (len > limit - call->answer.len) {
        if (call->status / 100 == 2) {
            return call_malformed(call, "an answer that is too long");
        }

        len = limit - call->answer.len;
    }

    buf_add(&call->answer, data, len);

    return call->answer.failed ? call_fail(call, LLMGW_GRPC_UNAVAILABLE,
                                           "no memory for an answer")
                               : DIALECT_MORE;
}


/* A step's whole answer of 2xx has come. */
static dialect_do_t
call_answered(dialect_call_t *call)
{
    llmgw_json_t  answer;

    if (call->step == STEP_WHOLE) {
        return whole_answer(call);
    }

    if (llmgw_json_check(call->answer.data, call->answer.len, &answer) != 0
        || answer.kind != LLMGW_JSON_OBJECT)
    {
        return call_malformed(call, "an answer that is no JSON object");
    }

    if (fault_is_event(answer)) {
        return fault_event(call, answer);
    }

    switch (call->step) {
    case STEP_PIECES:
        return plan_pieces(call, answer);

    case STEP_DETOKENIZE:
        return plan_detokenized(call, answer);

    case STEP_RENDER:
        return plan_rendered(call, answer);

    default:
        return call_malformed(call, "no event stream, which was asked for");
    }
}


dialect_do_t
dialect_end(dialect_call_t *call)
{
    message_begin(call);

    if (call->passes) {
        call->has_final = 1;
        return DIALECT_DONE;
    }

    if (call->status / 100 != 2) {
        return fault_answer(call);
    }

    return call->reads_events ? call_done(call) : call_answered(call);
}


static const Llmgateway__GenerateResponse *
call_take_raw(dialect_call_t *call)
{
    size_t  len;

    len = call->raw_left < DIALECT_PIECE_BYTES ? call->raw_left
                                               : DIALECT_PIECE_BYTES;

    llmgateway__generate_response__init(&call->raw_message);
    llmgateway__raw__init(&call->raw);
    call->raw_message.raw = &call->raw;
    call->raw.data.data = (uint8_t *) call->raw_at;
    call->raw.data.len = len;

    if (!call->said_head) {
        call->raw.status = call->status;
        call->raw.content_type = call->content_type;
        call->raw.is_open = call->is_open;
        call->said_head = 1;
    }

    if (call->passes) {
        pass_fill(call, &call->raw_message);
    }

    call->raw_at += len;
    call->raw_left -= len;

    return &call->raw_message;
}


const Llmgateway__GenerateResponse *
dialect_take(dialect_call_t *call)
{
    if (call->raw_left > 0 || (call->passes && call->has_final
                               && !call->said_head))
    {
        return call_take_raw(call);
    }

    if (call->has_message) {
        call->has_message = 0;
        return &call->message;
    }

    if (call->has_final) {
        call->has_final = 0;
        message_begin(call);
        call->message.is_final = 1;
        extra_fill(call);
        return &call->message;
    }

    return NULL;
}


int
call_is_complete(const dialect_call_t *call)
{
    size_t  i;

    for (i = 0; i < CALL_MAX_CHOICES / 64; i++) {
        if (call->begun[i] & ~call->finished[i]) {
            return 0;
        }
    }

    return call->nfinished > 0 && call->nfinished >= call->nchoices;
}


dialect_do_t
call_fail(dialect_call_t *call, int grpc_status, const char *text, ...)
{
    char     why[DIALECT_WHY_BYTES], *p;
    size_t   len;
    va_list  args;

    va_start(args, text);
    vsnprintf(why, sizeof(why), text, args);
    va_end(args);

    for (len = strlen(why); !llmgw_utf8_is_valid(why, len); ) {
        why[--len] = '\0';
    }

    for (p = why; *p != '\0'; p++) {
        *p = (unsigned char) *p < 0x20 ? ' ' : *p;
    }

    free(call->why);
    call->why = strdup(why);
    call->grpc_status = grpc_status;

    return DIALECT_FAILED;
}


dialect_do_t
call_malformed(dialect_call_t *call, const char *what)
{
    message_begin(call);

    return call_fail(call, LLMGW_GRPC_UNAVAILABLE, "the engine sent %s", what);
}


int
dialect_call_denies_model(const dialect_call_t *call)
{
    return call->failure.denies_model;
}


int
dialect_call_status(const dialect_call_t *call)
{
    return call->grpc_status;
}


const char *
dialect_call_why(const dialect_call_t *call)
{
    return call->why != NULL ? call->why : "";
}
