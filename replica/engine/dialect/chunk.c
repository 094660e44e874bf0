
/*
 * Chunks of OpenAI's kind: one event becomes one message.
 *
 * The engine's object is copied member by member.  id, created and model are
 * ours; the role is only in a choice's first chunk; what we requested and the
 * client did not is left out.  A chunk in which nothing is left for the client
 * is not sent.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


/* What one chunk held. */
typedef struct {
    int      is_wrong;
    int      has_data;      /* something for the client to read */
    int      is_aborted;
    int      has_choices;
    size_t   nchoices;
} chunk_t;

/* The members of a choice that are read. */
typedef struct {
    llmgw_json_t  index;
    llmgw_json_t  delta;
    llmgw_json_t  text;
    llmgw_json_t  logprobs;
    llmgw_json_t  finish_reason;
} choice_t;


static void
chunk_key(buf_t *data, size_t begin, llmgw_json_t key)
{
    buf_text(data, data->len == begin ? "" : ",");
    buf_value(data, key);
    buf_text(data, ":");
}


static void
chunk_value(dialect_call_t *call, llmgw_json_t value)
{
    if (value.begin == call->again.text.begin) {
        call->again.chunk_text = call->data.len;
    }

    buf_value(&call->data, value);
}


static int
chunk_has_begun(const dialect_call_t *call, uint32_t index)
{
    return call->begun[index / 64] >> (index % 64) & 1;
}


static void
chunk_never_resume(dialect_call_t *call)
{
    if (!call->has_reasoned && !call->has_called) {
        call->resume_by = LLMGATEWAY__RESUME_BY__RESUME_NEVER;
    }
}


/* Reads one member of a delta; 1: it has content. */
static int
chunk_delta_member(dialect_call_t *call, chunk_t *chunk, llmgw_json_t key,
    llmgw_json_t value)
{
    if (llmgw_json_is(key, "role") || llmgw_json_is_empty(value)) {
        return 0;
    }

    if (llmgw_json_is(key, "content")) {
        chunk->is_wrong |= value.kind != LLMGW_JSON_STRING;
        buf_unescape(&call->token, value);
        again_text(call, value);

    } else if (llmgw_json_is(key, "tool_calls")
               || llmgw_json_is(key, "function_call"))
    {
        chunk_never_resume(call);
        call->has_called = 1;

    } else if (llmgw_json_is(key, "reasoning_content")
               || llmgw_json_is(key, "reasoning"))
    {
        chunk_never_resume(call);
        call->has_reasoned = 1;
    }

    return 1;
}


/* Writes a delta without its role, and finds whether it has content. */
static int
chunk_delta_read(dialect_call_t *call, chunk_t *chunk, llmgw_json_t delta)
{
    int                 says;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    says = 0;

    if (!llmgw_json_is_null(delta) && delta.kind != LLMGW_JSON_OBJECT) {
        chunk->is_wrong = 1;
    }

    for (items = llmgw_json_members(delta); llmgw_json_next(&items, &item); ) {
        says |= chunk_delta_member(call, chunk, item.key, item.value);
    }

    return says;
}


static void
chunk_delta_write(dialect_call_t *call, uint32_t index, llmgw_json_t delta)
{
    buf_t              *data;
    size_t              begin;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    data = &call->data;
    buf_text(data, "{");
    begin = data->len;

    if (!chunk_has_begun(call, index)) {
        buf_text(data, "\"role\":\"assistant\"");
        call->again.is_odd = 1;
    }

    for (items = llmgw_json_members(delta); llmgw_json_next(&items, &item); ) {
        if (!llmgw_json_is(item.key, "role")) {
            chunk_key(data, begin, item.key);
            chunk_value(call, item.value);
        }
    }

    buf_text(data, "}");
}


/* Reads the members of a choice that we requested for ourselves. */
static int
chunk_choice_ours(dialect_call_t *call, chunk_t *chunk, llmgw_json_t key,
    llmgw_json_t value)
{
    uint32_t  count;
    uint64_t  hash;

    if (llmgw_json_is(key, "token_ids")) {
        if (call->want & LLMGATEWAY__WANT__WANT_IDS) {
            message_ids(call, value, &chunk->is_wrong);
        }

        again_ids(call, value);

        return !call->keeps_ids;
    }

    if (llmgw_json_is(key, "prompt_token_ids")) {
        if (!llmgw_json_is_null(value)) {
            if (message_hash_ids(value, &count, &hash) == 0) {
                message_prompt(call, count, hash);
            } else {
                chunk->is_wrong = 1;
            }
        }

        return !call->keeps_ids;
    }

    return 0;
}


static void
chunk_finish(dialect_call_t *call, chunk_t *chunk, uint32_t index,
    llmgw_json_t reason)
{
    if (llmgw_json_is_null(reason)) {
        return;
    }

    if (llmgw_json_is(reason, "abort") || llmgw_json_is(reason, "error")) {
        chunk->is_aborted = 1;
        return;
    }

    chunk->is_wrong |= message_finish(call, index, reason) != 0;
}


static void
chunk_choice_write(dialect_call_t *call, chunk_t *chunk, uint32_t index,
    llmgw_json_t choice)
{
    buf_t              *data;
    size_t              begin;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    data = &call->data;
    buf_text(data, chunk->nchoices == 1 ? "{" : ",{");
    begin = data->len;

    for (items = llmgw_json_members(choice); llmgw_json_next(&items, &item); ) {
        if (chunk_choice_ours(call, chunk, item.key, item.value)) {
            continue;
        }

        chunk_key(data, begin, item.key);

        if (llmgw_json_is(item.key, "delta")) {
            chunk_delta_write(call, index, item.value);

        } else {
            chunk_value(call, item.value);
            extra_choice(call, index, item.key, item.value);
        }
    }

    buf_text(data, "}");
}


/*
 * The gateway makes a whole answer of texts alone, without thoughts or tool
 * calls.  If one comes before the first text, the whole answer can still be
 * made here.
 */
static int
chunk_out(dialect_call_t *call)
{
    if (call->out != OUT_TEXT || !(call->has_reasoned || call->has_called)) {
        return 0;
    }

    if (call->is_stream || call->has_text || call->is_rendered) {
        return -1;
    }

    call->out = OUT_WHOLE;

    return 0;
}


static void
chunk_choice_read(llmgw_json_t choice, choice_t *read)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    memset(read, 0, sizeof(choice_t));

    for (items = llmgw_json_members(choice); llmgw_json_next(&items, &item); ) {
        if (llmgw_json_is(item.key, "index")) {
            read->index = item.value;

        } else if (llmgw_json_is(item.key, "delta")) {
            read->delta = item.value;

        } else if (llmgw_json_is(item.key, "text")) {
            read->text = item.value;

        } else if (llmgw_json_is(item.key, "logprobs")) {
            read->logprobs = item.value;

        } else if (llmgw_json_is(item.key, "finish_reason")) {
            read->finish_reason = item.value;
        }
    }
}


static void
chunk_choice(dialect_call_t *call, chunk_t *chunk, llmgw_json_t choice)
{
    int       says;
    size_t    ended;
    choice_t  read;
    uint64_t  index;

    chunk_choice_read(choice, &read);

    if (llmgw_json_uint(read.index, CALL_MAX_CHOICES - 1, &index) != 0) {
        chunk->is_wrong = 1;
        return;
    }

    chunk->nchoices++;
    says = chunk_delta_read(call, chunk, read.delta);

    if (!llmgw_json_is_empty(read.text)) {
        chunk->is_wrong |= read.text.kind != LLMGW_JSON_STRING;
        buf_unescape(&call->token, read.text);
        again_text(call, read.text);
        says = 1;
    }

    chunk->is_wrong |= chunk_out(call) != 0;
    says |= !llmgw_json_is_empty(read.logprobs);
    ended = call->message.n_finish;
    chunk_finish(call, chunk, (uint32_t) index, read.finish_reason);
    says |= call->message.n_finish > ended;

    if (says && call->out == OUT_WHOLE) {
        chunk->is_wrong |= whole_delta(call, (uint32_t) index, choice) != 0;
    }

    chunk_choice_write(call, chunk, (uint32_t) index, choice);
    chunk->has_data |= says;

    if (says) {
        call->begun[index / 64] |= (uint64_t) 1 << (index % 64);
    }
}


static void
chunk_choices(dialect_call_t *call, chunk_t *chunk, llmgw_json_t choices)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    chunk->is_wrong |= chunk->has_choices || choices.kind != LLMGW_JSON_ARRAY;
    chunk->has_choices = 1;
    buf_text(&call->data, "[");

    items = llmgw_json_elements(choices);

    while (llmgw_json_next(&items, &item)) {
        chunk_choice(call, chunk, item.value);
    }

    buf_text(&call->data, "]");
}


static uint32_t
chunk_count(llmgw_json_t object, const char *name)
{
    uint64_t      n;
    llmgw_json_t  value;

    value = llmgw_json_member(object, name);

    return llmgw_json_uint(value, CALL_MAX_TOKENS, &n) == 0 ? (uint32_t) n : 0;
}


/* Adds a usage; choices with the same prompt count it once. */
static int
chunk_usage_add(dialect_call_t *call, Llmgateway__Usage *usage)
{
    Llmgateway__Usage  *sum;

    call->again.is_odd = 1;
    sum = &call->counted;
    sum->prompt_tokens += usage->prompt_tokens;
    sum->completion_tokens += usage->completion_tokens;
    sum->cached_tokens += usage->cached_tokens;
    sum->reasoning_tokens += usage->reasoning_tokens;

    if (++call->ncounted < call->nchoices) {
        return 0;
    }

    usage->prompt_tokens = sum->prompt_tokens / call->nalike;
    usage->completion_tokens = sum->completion_tokens;
    usage->cached_tokens = sum->cached_tokens / call->nalike;
    usage->reasoning_tokens = sum->reasoning_tokens;

    return 1;
}


int
chunk_usage(dialect_call_t *call, llmgw_json_t usage)
{
    llmgw_json_t       prompt, completion;
    Llmgateway__Usage  u = LLMGATEWAY__USAGE__INIT;

    if (usage.kind != LLMGW_JSON_OBJECT) {
        return 0;
    }

    prompt = llmgw_json_member(usage, "prompt_tokens_details");
    completion = llmgw_json_member(usage, "completion_tokens_details");

    if (completion.kind != LLMGW_JSON_OBJECT) {
        completion = usage;         /* SGLang has it there */
    }

    u.prompt_tokens = chunk_count(usage, "prompt_tokens");
    u.completion_tokens = chunk_count(usage, "completion_tokens");
    u.cached_tokens = chunk_count(prompt, "cached_tokens");
    u.reasoning_tokens = chunk_count(completion, "reasoning_tokens");

    if (call->dialect->ops->counts_choices && call->nchoices > 1
        && !chunk_usage_add(call, &u))
    {
        return 0;
    }

    message_usage(call, &u);

    return 1;
}


/* Writes the usage of the whole stream, if this is not its only engine, or its
   only usage. */
static void
chunk_usage_write(const dialect_call_t *call, llmgw_json_t usage, buf_t *to)
{
    if (usage.kind == LLMGW_JSON_OBJECT
        && (call->goes_on || call->ncounted > 0))
    {
        message_usage_write(call, usage, to);

    } else {
        buf_value(to, usage);
    }
}


/* 1: the member was written; 0: it is copied by the caller. */
static int
chunk_member(dialect_call_t *call, chunk_t *chunk, llmgw_json_t key,
    llmgw_json_t value)
{
    int     is_told;
    buf_t  *data, *kept;

    data = &call->data;

    if (llmgw_json_is(key, "choices")) {
        chunk_key(data, 1, key);
        chunk_choices(call, chunk, value);
        return 1;
    }

    if (llmgw_json_is(key, "usage")) {
        is_told = chunk_usage(call, value);

        if (call->include_usage
            && (is_told || value.kind == LLMGW_JSON_NULL))
        {
            chunk_key(data, 1, key);
            chunk_usage_write(call, value, data);
            chunk->has_data |= is_told;
        }

        kept = is_told ? extra_usage(call) : NULL;

        if (kept != NULL) {
            chunk_usage_write(call, value, kept);
        }

        return 1;
    }

    return llmgw_json_is(key, "id") || llmgw_json_is(key, "created")
           || llmgw_json_is(key, "model")
           || chunk_choice_ours(call, chunk, key, value);
}


static void
chunk_begin(dialect_call_t *call)
{
    buf_t  *data;

    data = &call->data;
    buf_text(data, "{");

    if (call->out == OUT_DATA) {
        buf_text(data, "\"id\":");
        buf_add(data, call->id.data, call->id.len);
        buf_text(data, ",\"created\":");
        buf_number(data, call->created);
        buf_text(data, ",\"model\":");
        buf_add(data, call->model.data, call->model.len);
    }
}


dialect_do_t
chunk_event(dialect_call_t *call, llmgw_json_t event)
{
    chunk_t             chunk = { 0 };
    dialect_do_t        next;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    again_begin(call);
    chunk_begin(call);

    for (items = llmgw_json_members(event); llmgw_json_next(&items, &item); ) {
        if (!chunk_member(call, &chunk, item.key, item.value)) {
            chunk_key(&call->data, 1, item.key);
            buf_value(&call->data, item.value);
            extra_answer(call, item.key, item.value);
        }
    }

    buf_text(&call->data, "}");

    if (chunk.is_aborted) {
        message_begin(call);
        return call_fail(call, LLMGW_GRPC_UNAVAILABLE,
                         "the engine gave the generation up");
    }

    if (chunk.is_wrong) {
        return call_malformed(call, "a chunk of another form than OpenAI's");
    }

    next = message_end(call, chunk.has_data);
    again_keep(call, event);

    return next;
}
