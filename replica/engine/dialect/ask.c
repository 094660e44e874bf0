
/*
 * The bodies of HTTP requests.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define ASK_MAX_EDITS  12


/* A body that is being written: what is dropped or replaced, and memory for
   it. */
typedef struct {
    edit_t  edits[ASK_MAX_EDITS];
    size_t  n;
    buf_t   left;           /* max_tokens */
    buf_t   least;          /* min_tokens */
    buf_t   begun;          /* messages or prompt, with the beginning of the
                               answer */
    buf_t   priority;
} ask_t;


static void
ask_edit(ask_t *ask, const char *name, llmgw_json_t value)
{
    ask->edits[ask->n].name = name;
    ask->edits[ask->n++].value = value;
}


static llmgw_json_t
ask_value(const buf_t *buf)
{
    return llmgw_json_at(buf->data, buf->data + buf->len);
}


static llmgw_json_t
ask_find(const dialect_call_t *call, const char *name)
{
    llmgw_json_t  none = { 0 };

    return call->request->openai == NULL ? none
           : edit_find(call->request->openai, name);
}


static llmgw_json_t
ask_model(dialect_call_t *call)
{
    const char                       *name;
    const Llmgateway__OpenaiRequest  *openai;

    openai = call->request->openai;

    name = openai != NULL ? openai->engine_model
           : call->facts->nmodels > 0 ? call->facts->models : "";

    if (*name == '\0') {
        return ask_find(call, "model");
    }

    call->engine_model.len = 0;
    buf_string(&call->engine_model, name, strlen(name));

    return ask_value(&call->engine_model);
}


static void
ask_edit_model(dialect_call_t *call, ask_t *ask)
{
    if (*call->request->openai->engine_model != '\0') {
        ask_edit(ask, "model", ask_model(call));
    }
}


dialect_do_t
ask_ready(dialect_call_t *call)
{
    if (call->body.failed || call->engine_model.failed) {
        return call_fail(call, LLMGW_GRPC_INVALID_ARGUMENT,
                         "the request is no UTF-8, or there is no memory");
    }

    return DIALECT_ASK;
}


/*
 * The request's priority in the engine's order.  0, or -1: none is sent, since
 * the engine does not schedule by priority, or has no such key under this path.
 */
static int
ask_priority(const dialect_call_t *call, int32_t *priority)
{
    int                          sign;
    const Llmgateway__Priority  *wanted;

    wanted = call->request->priority;
    sign = call->dialect->ops->priority != 0 ? call->dialect->ops->priority
                                             : call->facts->priority;

    if (wanted == NULL || !wanted->has_value_case || sign == 0
        || (!call->is_infer && call->api != LLMGATEWAY__API__API_CHAT
            && call->api != LLMGATEWAY__API__API_COMPLETIONS
            && call->api != LLMGATEWAY__API__API_RESPONSES))
    {
        return -1;
    }

    *priority = sign * wanted->value;

    return 0;
}


/* Replaces the client's own priority. */
static void
ask_edit_priority(dialect_call_t *call, ask_t *ask)
{
    int32_t       priority;
    llmgw_json_t  value = { 0 };

    if (call->request->priority == NULL) {
        return;
    }

    if (ask_priority(call, &priority) == 0) {
        buf_number(&ask->priority, priority);
        value = ask->priority.failed ? value : ask_value(&ask->priority);
    }

    ask_edit(ask, "priority", value);
}


static dialect_do_t
ask_edited(dialect_call_t *call, ask_t *ask)
{
    ask_edit_priority(call, ask);
    ask->edits[ask->n].name = NULL;

    if (edit_body(call->request->openai, ask->edits, &call->body) != 0) {
        call->body.failed = 1;
    }

    call->body.failed |= ask->left.failed | ask->least.failed
                         | ask->begun.failed | ask->priority.failed;
    call->request = NULL;
    buf_free(&ask->left);
    buf_free(&ask->least);
    buf_free(&ask->begun);
    buf_free(&ask->priority);

    return ask_ready(call);
}


static dialect_do_t
ask_unchanged(dialect_call_t *call, step_t step)
{
    ask_t        ask = { .n = 0 };
    const char  *path;

    path = ask_path(call);

    if (path == NULL) {
        return call_fail(call, LLMGW_GRPC_UNIMPLEMENTED,
                         "the adapter does not know this API");
    }

    call_step(call, step, path);
    ask_edit_model(call, &ask);

    return ask_edited(call, &ask);
}


dialect_do_t
ask_pass(dialect_call_t *call)
{
    return ask_unchanged(call, STEP_PASS);
}


dialect_do_t
ask_whole(dialect_call_t *call)
{
    return ask_unchanged(call, STEP_WHOLE);
}


int64_t
ask_tokens_left(const dialect_call_t *call)
{
    int64_t                             limit;
    const Llmgateway__GenerateRequest  *request;

    request = call->request;

    if (request->openai == NULL) {
        limit = request->max_tokens;

    } else if (request->openai->max_tokens > 0) {
        limit = request->openai->max_tokens;

    } else {
        limit = call->api == LLMGATEWAY__API__API_COMPLETIONS
                ? call->dialect->ops->completion_tokens : 0;
    }

    if (limit <= 0) {
        return -1;
    }

    return limit > call->base_tokens ? limit - call->base_tokens : 0;
}


/* The rest of min_tokens; -1: it was not asked for. */
static int
ask_least(const dialect_call_t *call, int64_t *least)
{
    uint64_t      number;
    llmgw_json_t  value;

    value = llmgw_json_integral(ask_find(call, "min_tokens"));

    if (llmgw_json_uint(value, CALL_MAX_TOKENS, &number) != 0) {
        return -1;
    }

    *least = (int64_t) number > call->base_tokens
             ? (int64_t) number - call->base_tokens : 0;

    return 0;
}


/* Limits that count what was delivered before. */
static void
ask_edit_limits(dialect_call_t *call, ask_t *ask)
{
    int64_t      left, least;
    const char  *name;

    left = ask_tokens_left(call);

    if (left >= 0) {
        name = llmgw_json_is_null(ask_find(call, "max_completion_tokens"))
               ? "max_tokens" : "max_completion_tokens";
        buf_number(&ask->left, left);
        ask_edit(ask, name, ask_value(&ask->left));
    }

    if (ask_least(call, &least) == 0) {
        buf_number(&ask->least, least);
        ask_edit(ask, "min_tokens", ask_value(&ask->least));
    }
}


/* Appends to a string whose last quote is still missing. */
static void
ask_append(buf_t *to, const ProtobufCBinaryData *text)
{
    size_t  at;

    at = to->len;
    buf_string(to, text->data, text->len);

    if (!to->failed) {
        memmove(to->data + at, to->data + at + 1, to->len - at - 1);
        to->len--;
    }
}


/* The delivered text becomes the beginning of the answer. */
static void
ask_edit_text(dialect_call_t *call, ask_t *ask)
{
    const char                 *name;
    llmgw_json_t                value, none = { 0 };
    const ProtobufCBinaryData  *text;

    text = &call->request->delivered->text;
    name = call->api == LLMGATEWAY__API__API_CHAT ? "messages" : "prompt";
    value = ask_find(call, name);

    value.end--;            /* of the list, or of the string */
    buf_value(&ask->begun, value);

    if (call->api == LLMGATEWAY__API__API_CHAT) {
        buf_text(&ask->begun, ",{\"role\":\"assistant\",\"content\":");
        buf_string(&ask->begun, text->data, text->len);
        buf_text(&ask->begun, "}]");

        if (call->dialect->ops->continues) {
            ask_edit(ask, "continue_final_message", llmgw_json_of("true"));
            ask_edit(ask, "add_generation_prompt", llmgw_json_of("false"));
        }

    } else {
        ask_append(&ask->begun, text);
    }

    ask_edit(ask, name, ask->begun.failed ? none : ask_value(&ask->begun));
}


static void
ask_members(const dialect_call_t *call, key_rule_t rule, buf_t *body)
{
    size_t                            i;
    const char                       *key;
    const Llmgateway__OpenaiRequest  *openai;

    openai = call->request->openai;

    for (i = 0; openai != NULL && i < openai->n_members; i++) {
        key = openai->members[i]->key;

        if (call->request->priority != NULL && strcmp(key, "priority") == 0) {
            continue;
        }

        if (can_key(call->dialect->ops->keys, key) == rule) {
            buf_add(body, openai->body.data + openai->members[i]->begin,
                    openai->members[i]->end - openai->members[i]->begin);
            buf_text(body, ",");
        }
    }
}


/* A body's begin: the model, which no table of keys lists. */
static void
ask_begin(dialect_call_t *call, step_t step, const char *path)
{
    llmgw_json_t  model;

    call_step(call, step, path);
    model = ask_model(call);
    buf_text(&call->body, "{");

    if (model.kind != LLMGW_JSON_END) {
        buf_text(&call->body, "\"model\":");
        buf_value(&call->body, model);
        buf_text(&call->body, ",");
    }
}


/* The ids that the client has, with commas. */
static void
ask_ids(const dialect_call_t *call, buf_t *body)
{
    size_t  i;

    for (i = 0; i < call->nkept; i++) {
        buf_text(body, i == 0 && body->data[body->len - 1] == '[' ? "" : ",");
        buf_number(body, call->given[i]);
    }
}


dialect_do_t
ask_detokenize(dialect_call_t *call)
{
    ask_begin(call, STEP_DETOKENIZE, call->dialect->ops->detokenize_path);
    buf_text(&call->body, "\"tokens\":[");
    ask_ids(call, &call->body);
    buf_text(&call->body, "]}");

    return ask_ready(call);
}


dialect_do_t
ask_pieces(dialect_call_t *call)
{
    call_step(call, STEP_PIECES, call->dialect->ops->tokenize_path);
    buf_text(&call->body, "{\"content\":");
    piece_write(call, &call->body);
    buf_text(&call->body, ",\"add_special\":false,\"parse_special\":false}");

    return ask_ready(call);
}


dialect_do_t
ask_render(dialect_call_t *call)
{
    ask_t                 ask = { .n = 0 };
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;

    if (ops->renders_text) {
        call_step(call, STEP_RENDER, ops->render_path);
        ask_edit_model(call, &ask);
        ask.edits[ask.n].name = NULL;
        call->body.failed = edit_body(call->request->openai, ask.edits,
                                      &call->body) != 0;
        return ask_ready(call);
    }

    ask_begin(call, STEP_RENDER, ops->render_path);
    ask_members(call, KEY_RENDER, &call->body);

    if (call->is_infer) {
        buf_text(&call->body, "\"prompt\":");
        buf_string(&call->body, call->request->prompt.data,
                   call->request->prompt.len);

    } else if (!call->body.failed) {
        call->body.len--;       /* the comma after the last member */
    }

    buf_text(&call->body, "}");

    return ask_ready(call);
}


/* The rendered prompt, and what was generated after it. */
static void
ask_write_prompt(dialect_call_t *call)
{
    int  is_text;

    is_text = call->prompt.data[0] == '"';
    buf_text(&call->body, "\"prompt\":");
    buf_text(&call->body, is_text && call->nkept == 0 ? "" : "[");
    buf_add(&call->body, call->prompt.data, call->prompt.len);
    ask_ids(call, &call->body);
    buf_text(&call->body, is_text && call->nkept == 0 ? "," : "],");
}


/* OpenAI's keys of a completion. */
static dialect_do_t
ask_write_openai(dialect_call_t *call)
{
    int64_t               left, least;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;
    left = ask_tokens_left(call);

    if (left < 0) {
        /* A completion without a limit ends early, so it gets the limit that a
           chat has. */
        if (call->context == 0) {
            return call_fail(call, LLMGW_GRPC_FAILED_PRECONDITION,
                             "the engine does not say how long its context"
                             " is, and the request has no max_tokens");
        }

        left = (int64_t) call->context - call->prompt_tokens
               - (int64_t) call->nkept - ops->context_margin;
        left = left < 1 ? 1 : left;
    }

    buf_text(&call->body, "\"max_tokens\":");
    buf_number(&call->body, left);

    if (ask_least(call, &least) == 0) {
        buf_text(&call->body, ",\"min_tokens\":");
        buf_number(&call->body, least);
    }

    buf_text(&call->body, ",\"stream\":true,\"stream_options\":"
                          "{\"include_usage\":true}");

    if (ops->has_ids && (call->want & LLMGATEWAY__WANT__WANT_IDS)) {
        buf_text(&call->body, ",\"return_token_ids\":true");
    }

    return DIALECT_ASK;
}


dialect_do_t
ask_rendered(dialect_call_t *call)
{
    int32_t               priority;
    dialect_do_t          next;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;
    ask_begin(call, STEP_GENERATE,
              call->is_rendered ? ops->completion_path : "/v1/completions");
    ask_members(call, KEY_KEEP, &call->body);

    if (ask_priority(call, &priority) == 0) {
        buf_text(&call->body, "\"priority\":");
        buf_number(&call->body, priority);
        buf_text(&call->body, ",");
    }

    ask_write_prompt(call);

    next = DIALECT_ASK;

    if (call->is_rendered && ops->generate != NULL) {
        ops->generate(call, &call->body);

    } else {
        next = ask_write_openai(call);
    }

    buf_text(&call->body, "}");
    buf_free(&call->prompt);
    call->request = NULL;

    return next == DIALECT_ASK ? ask_ready(call) : next;
}


/* Infer's prompt, with the delivered text. */
static dialect_do_t
ask_prompt(dialect_call_t *call)
{
    const Llmgateway__GenerateRequest  *request;

    request = call->request;
    buf_string(&call->prompt, request->prompt.data, request->prompt.len);

    if (call->goes_on && !call->prompt.failed) {
        call->prompt.len--;
        ask_append(&call->prompt, &request->delivered->text);
    }

    if (call->prompt.failed) {
        call->body.failed = 1;
        return ask_ready(call);
    }

    return ask_rendered(call);
}


dialect_do_t
ask_direct(dialect_call_t *call)
{
    int                   gives_ids;
    ask_t                 ask = { .n = 0 };
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;

    if (call->is_infer) {
        return ask_prompt(call);
    }

    call_step(call, STEP_GENERATE, ask_path(call));
    ask_edit_model(call, &ask);
    ask_edit(&ask, "stream", llmgw_json_of("true"));

    if (!call->include_usage) {
        ask_edit(&ask, "stream_options",
                 llmgw_json_of("{\"include_usage\":true}"));
    }

    gives_ids = call->api == LLMGATEWAY__API__API_CHAT ? ops->has_chat_ids
                                                       : ops->has_ids;

    if (gives_ids && (call->want & LLMGATEWAY__WANT__WANT_IDS)) {
        ask_edit(&ask, "return_token_ids", llmgw_json_of("true"));
    }

    if (call->goes_on) {
        ask_edit_limits(call, &ask);
        ask_edit_text(call, &ask);
    }

    return ask_edited(call, &ask);
}
