
/*
 * Answers in one piece: as the engine wrote it, or from its stream.
 *
 * What came as a stream is written here as the engine would have written it:
 * contents, thoughts and the arguments of tool calls are joined, the other
 * members of a tool call are those that came first.  Two kinds of whole answer
 * are requested as a stream: plain ones of any engine, so that they may be
 * resumed, which need this file only if the model begins with a thought or a
 * tool call (chunk.c); and nearly all of llama.cpp, whose server notices only
 * after a second that the client of a whole answer has left, and computes in
 * the meantime in one of its few slots.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


#define WHOLE_MAX_CALLS  128    /* tools called by one choice */


typedef struct {
    buf_t  id;                  /* as JSON */
    buf_t  name;
    buf_t  arguments;           /* text, as are the next ones below */
} whole_call_t;

typedef struct {
    buf_t          content;
    buf_t          thoughts;
    buf_t          reason;      /* as JSON */
    const char    *thoughts_key;
    whole_call_t  *calls;
    uint32_t       ncalls;
} whole_choice_t;

struct assembly_s {
    whole_choice_t  choices[CALL_MAX_CHOICES];
    uint32_t        n;
    size_t          bytes;
};


static void
whole_call_free(whole_call_t *call)
{
    buf_free(&call->id);
    buf_free(&call->name);
    buf_free(&call->arguments);
}


static void
whole_choice_free(whole_choice_t *choice)
{
    uint32_t  i;

    buf_free(&choice->content);
    buf_free(&choice->thoughts);
    buf_free(&choice->reason);

    for (i = 0; i < choice->ncalls; i++) {
        whole_call_free(&choice->calls[i]);
    }

    free(choice->calls);
}


void
whole_free(dialect_call_t *call)
{
    uint32_t  i;

    for (i = 0; call->assembly != NULL && i < call->assembly->n; i++) {
        whole_choice_free(&call->assembly->choices[i]);
    }

    free(call->assembly);
    call->assembly = NULL;
}


static whole_call_t *
whole_call_at(whole_choice_t *choice, llmgw_json_t index)
{
    uint64_t       i;
    whole_call_t  *grown;

    if (llmgw_json_uint(index, WHOLE_MAX_CALLS - 1, &i) != 0) {
        return NULL;
    }

    if (i >= choice->ncalls) {
        grown = realloc(choice->calls, (i + 1) * sizeof(whole_call_t));

        if (grown == NULL) {
            return NULL;
        }

        memset(grown + choice->ncalls, 0,
               (i + 1 - choice->ncalls) * sizeof(whole_call_t));
        choice->calls = grown;
        choice->ncalls = (uint32_t) i + 1;
    }

    return &choice->calls[i];
}


static void
whole_first(buf_t *to, llmgw_json_t value)
{
    if (to->len == 0 && !llmgw_json_is_empty(value)) {
        buf_value(to, value);
    }
}


static int
whole_calls(whole_choice_t *choice, llmgw_json_t calls)
{
    llmgw_json_t        function;
    whole_call_t       *call;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_elements(calls);

    while (llmgw_json_next(&items, &item)) {
        call = whole_call_at(choice, llmgw_json_member(item.value, "index"));

        if (call == NULL) {
            return -1;
        }

        function = llmgw_json_member(item.value, "function");
        whole_first(&call->id, llmgw_json_member(item.value, "id"));
        whole_first(&call->name, llmgw_json_member(function, "name"));
        buf_unescape(&call->arguments,
                     llmgw_json_member(function, "arguments"));
    }

    return 0;
}


static void
whole_thoughts(whole_choice_t *choice, llmgw_json_t delta)
{
    size_t        i;
    llmgw_json_t  value;

    static const char *const  keys[] = { "reasoning_content", "reasoning" };

    for (i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        value = llmgw_json_member(delta, keys[i]);

        if (!llmgw_json_is_empty(value)) {
            choice->thoughts_key = keys[i];
            buf_unescape(&choice->thoughts, value);
            return;
        }
    }
}


int
whole_delta(dialect_call_t *call, uint32_t index, llmgw_json_t choice)
{
    assembly_t      *all;
    llmgw_json_t     delta;
    whole_choice_t  *to;

    if (call->assembly == NULL) {
        call->assembly = calloc(1, sizeof(assembly_t));

        if (call->assembly == NULL) {
            return -1;
        }
    }

    all = call->assembly;
    to = &all->choices[index];
    all->n = index >= all->n ? index + 1 : all->n;
    all->bytes += llmgw_json_bytes(choice);

    if (all->bytes > DIALECT_WHOLE_BYTES) {
        return -1;
    }

    delta = llmgw_json_member(choice, "delta");
    buf_unescape(&to->content, llmgw_json_member(choice, "text"));
    buf_unescape(&to->content, llmgw_json_member(delta, "content"));
    whole_thoughts(to, delta);
    whole_first(&to->reason, llmgw_json_member(choice, "finish_reason"));

    return whole_calls(to, llmgw_json_member(delta, "tool_calls"));
}


static void
whole_write_calls(buf_t *to, const whole_choice_t *choice)
{
    uint32_t             i;
    const whole_call_t  *call;

    if (choice->ncalls == 0) {
        return;
    }

    buf_text(to, ",\"tool_calls\":[");

    for (i = 0; i < choice->ncalls; i++) {
        call = &choice->calls[i];
        buf_text(to, i == 0 ? "{\"id\":" : ",{\"id\":");
        buf_add(to, call->id.len > 0 ? call->id.data : "\"\"",
                call->id.len > 0 ? call->id.len : 2);
        buf_text(to, ",\"type\":\"function\",\"function\":{\"name\":");
        buf_add(to, call->name.len > 0 ? call->name.data : "\"\"",
                call->name.len > 0 ? call->name.len : 2);
        buf_text(to, ",\"arguments\":");
        buf_string(to, call->arguments.data, call->arguments.len);
        buf_text(to, "}}");
    }

    buf_text(to, "]");
}


static void
whole_write_message(buf_t *to, const whole_choice_t *choice)
{
    buf_text(to, ",\"message\":{\"role\":\"assistant\",\"content\":");

    if (choice->content.len == 0 && choice->ncalls > 0) {
        buf_text(to, "null");

    } else {
        buf_string(to, choice->content.data, choice->content.len);
    }

    if (choice->thoughts.len > 0) {
        buf_text(to, ",\"");
        buf_text(to, choice->thoughts_key);
        buf_text(to, "\":");
        buf_string(to, choice->thoughts.data, choice->thoughts.len);
    }

    whole_write_calls(to, choice);
    buf_text(to, "}");
}


static void
whole_write_choice(dialect_call_t *call, buf_t *to, uint32_t index)
{
    const whole_choice_t  *choice;

    choice = &call->assembly->choices[index];
    buf_text(to, index == 0 ? "{\"index\":" : ",{\"index\":");
    buf_number(to, index);

    if (call->api == LLMGATEWAY__API__API_CHAT) {
        whole_write_message(to, choice);

    } else {
        buf_text(to, ",\"text\":");
        buf_string(to, choice->content.data, choice->content.len);
    }

    extra_write_choice(call, index, to);
    buf_text(to, ",\"finish_reason\":");
    buf_add(to, choice->reason.data, choice->reason.len);
    buf_text(to, "}");
}


static void
whole_write(dialect_call_t *call, buf_t *to)
{
    uint32_t      i;
    llmgw_json_t  none = { 0 };

    buf_text(to, "{\"id\":");
    buf_add(to, call->id.data, call->id.len);
    buf_text(to, call->api == LLMGATEWAY__API__API_CHAT
                 ? ",\"object\":\"chat.completion\",\"created\":"
                 : ",\"object\":\"text_completion\",\"created\":");
    buf_number(to, call->created);
    buf_text(to, ",\"model\":");
    buf_add(to, call->model.data, call->model.len);
    buf_text(to, ",\"choices\":[");

    for (i = 0; i < call->assembly->n; i++) {
        whole_write_choice(call, to, i);
    }

    buf_text(to, "]");

    if (call->usage.base.descriptor != NULL) {
        buf_text(to, ",\"usage\":");

        if (!extra_write_usage(call, to)) {
            message_usage_write(call, none, to);
        }
    }

    extra_write_answer(call, to);
    buf_text(to, "}");
}


/* Sends the answer in call->answer, and its usage. */
static dialect_do_t
whole_out(dialect_call_t *call, llmgw_json_t usage)
{
    if (call->answer.failed) {
        return call_fail(call, LLMGW_GRPC_UNAVAILABLE, "no memory");
    }

    call->raw_at = call->answer.data;
    call->raw_left = call->answer.len;

    message_begin(call);
    chunk_usage(call, usage);
    call->has_message = call->message.usage != NULL;
    call->has_final = 1;

    return DIALECT_DONE;
}


dialect_do_t
whole_end(dialect_call_t *call)
{
    llmgw_json_t       answer = { 0 };
    Llmgateway__Usage  usage;

    call->answer.len = 0;
    call->status = 200;
    strcpy(call->content_type, "application/json");
    usage = call->usage;
    whole_write(call, &call->answer);
    whole_free(call);

    if (whole_out(call, answer) == DIALECT_FAILED) {
        return DIALECT_FAILED;
    }

    if (usage.base.descriptor != NULL) {
        call->usage = usage;
        call->message.usage = &call->usage;
        call->has_message = 1;
    }

    return DIALECT_DONE;
}


static int
whole_is_aborted(llmgw_json_t answer)
{
    llmgw_json_t        reason;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_elements(llmgw_json_member(answer, "choices"));

    while (llmgw_json_next(&items, &item)) {
        reason = llmgw_json_member(item.value, "finish_reason");

        if (llmgw_json_is(reason, "abort") || llmgw_json_is(reason, "error")) {
            return 1;
        }
    }

    return 0;
}


/* The engine's answer with our id, created and model. */
dialect_do_t
whole_answer(dialect_call_t *call)
{
    buf_t               to = { NULL, 0, 0, 0 }, was;
    llmgw_json_t        answer, usage;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    if (llmgw_json_check(call->answer.data, call->answer.len, &answer) != 0
        || answer.kind != LLMGW_JSON_OBJECT)
    {
        return call_malformed(call, "an answer that is no JSON object");
    }

    if (fault_is_event(answer)) {
        return fault_event(call, answer);
    }

    if (whole_is_aborted(answer)) {
        return call_fail(call, LLMGW_GRPC_UNAVAILABLE,
                         "the engine gave the generation up");
    }

    buf_text(&to, "{\"id\":");
    buf_add(&to, call->id.data, call->id.len);
    buf_text(&to, ",\"created\":");
    buf_number(&to, call->created);
    buf_text(&to, ",\"model\":");
    buf_add(&to, call->model.data, call->model.len);

    for (items = llmgw_json_members(answer); llmgw_json_next(&items, &item); ) {
        if (!llmgw_json_is(item.key, "id")
            && !llmgw_json_is(item.key, "created")
            && !llmgw_json_is(item.key, "model"))
        {
            buf_text(&to, ",");
            buf_value(&to, item.key);
            buf_text(&to, ":");
            buf_value(&to, item.value);
        }
    }

    buf_text(&to, "}");

    was = call->answer;
    call->answer = to;
    usage = llmgw_json_member(answer, "usage");

    if (whole_out(call, usage) == DIALECT_FAILED) {
        buf_free(&was);
        return DIALECT_FAILED;
    }

    buf_free(&was);

    return DIALECT_DONE;
}
