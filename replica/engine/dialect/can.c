
/*
 * How a request can be served.
 *
 * To resume by ids, or to get ids for a chat whose stream shows none, the
 * prompt is rendered and requested as a completion.  A completion runs no
 * parser and knows fewer keys, so each key of the body has to be one that a
 * completion has too, or that means nothing there.  To resume by text, the
 * delivered text is given to the engine as the beginning of the answer.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


enum {
    NONE = KEY_UNKNOWN,
    KEEP = KEY_KEEP,
    DROP = KEY_DROP,
    RENDER = KEY_RENDER
};

/* The keys that a rendered request may have; a request with any other is not
   rendered. */
static const struct {
    const char     *name;
    unsigned char   rules[KEYS_COLUMNS];
} can_keys[] = {
    /*                                   vllm    sglang  llamacpp */
    { "add_generation_prompt",         { RENDER, NONE,   DROP   } },
    { "add_special_tokens",            { RENDER, NONE,   NONE   } },
    { "allowed_token_ids",             { KEEP,   NONE,   NONE   } },
    { "bad_words",                     { KEEP,   NONE,   NONE   } },
    { "best_of",                       { DROP,   DROP,   DROP   } },
    { "cache_prompt",                  { NONE,   NONE,   KEEP   } },
    { "cache_salt",                    { KEEP,   KEEP,   NONE   } },
    { "chat_template",                 { RENDER, NONE,   NONE   } },
    { "chat_template_kwargs",          { RENDER, RENDER, DROP   } },
    { "continue_final_message",        { RENDER, RENDER, NONE   } },
    { "custom_params",                 { NONE,   KEEP,   NONE   } },
    { "dry_allowed_length",            { NONE,   NONE,   KEEP   } },
    { "dry_base",                      { NONE,   NONE,   KEEP   } },
    { "dry_multiplier",                { NONE,   NONE,   KEEP   } },
    { "dry_penalty_last_n",            { NONE,   NONE,   KEEP   } },
    { "dynatemp_exponent",             { NONE,   NONE,   KEEP   } },
    { "dynatemp_range",                { NONE,   NONE,   KEEP   } },
    { "echo",                          { DROP,   DROP,   DROP   } },
    { "extra_key",                     { NONE,   KEEP,   NONE   } },
    { "frequency_penalty",             { KEEP,   KEEP,   KEEP   } },
    { "ignore_eos",                    { KEEP,   KEEP,   KEEP   } },
    { "include_reasoning",             { DROP,   NONE,   NONE   } },
    { "include_stop_str_in_output",    { DROP,   NONE,   NONE   } },
    { "length_penalty",                { KEEP,   NONE,   NONE   } },
    { "logit_bias",                    { KEEP,   KEEP,   KEEP   } },
    { "logprobs",                      { DROP,   DROP,   DROP   } },
    { "lora_path",                     { NONE,   KEEP,   NONE   } },
    { "max_completion_tokens",         { DROP,   DROP,   DROP   } },
    { "max_tokens",                    { DROP,   DROP,   DROP   } },
    { "messages",                      { RENDER, RENDER, DROP   } },
    { "metadata",                      { DROP,   DROP,   DROP   } },
    { "min_p",                         { KEEP,   KEEP,   KEEP   } },
    { "min_tokens",                    { DROP,   DROP,   NONE   } },
    { "model",                         { DROP,   DROP,   DROP   } },
    { "n",                             { DROP,   DROP,   DROP   } },
    { "no_stop_trim",                  { NONE,   DROP,   NONE   } },
    { "parallel_tool_calls",           { DROP,   DROP,   DROP   } },
    { "presence_penalty",              { KEEP,   KEEP,   KEEP   } },
    { "priority",                      { KEEP,   KEEP,   NONE   } },
    { "prompt",                        { RENDER, RENDER, DROP   } },
    { "prompt_cache_key",              { DROP,   DROP,   DROP   } },
    { "reasoning_effort",              { DROP,   RENDER, NONE   } },
    { "repeat_last_n",                 { NONE,   NONE,   KEEP   } },
    { "repeat_penalty",                { NONE,   NONE,   KEEP   } },
    { "repetition_penalty",            { KEEP,   KEEP,   NONE   } },
    { "response_format",               { DROP,   DROP,   DROP   } },
    { "return_token_ids",              { DROP,   DROP,   NONE   } },
    { "safety_identifier",             { DROP,   DROP,   DROP   } },
    { "samplers",                      { NONE,   NONE,   KEEP   } },
    { "seed",                          { KEEP,   KEEP,   KEEP   } },
    { "separate_reasoning",            { NONE,   DROP,   NONE   } },
    { "service_tier",                  { DROP,   DROP,   DROP   } },
    { "skip_special_tokens",           { KEEP,   KEEP,   NONE   } },
    { "spaces_between_special_tokens", { KEEP,   NONE,   NONE   } },
    { "stop",                          { DROP,   DROP,   DROP   } },
    { "stop_token_ids",                { KEEP,   KEEP,   NONE   } },
    { "store",                         { DROP,   DROP,   DROP   } },
    { "stream",                        { DROP,   DROP,   DROP   } },
    { "stream_options",                { DROP,   DROP,   DROP   } },
    { "stream_reasoning",              { NONE,   DROP,   NONE   } },
    { "temperature",                   { KEEP,   KEEP,   KEEP   } },
    { "tool_choice",                   { DROP,   RENDER, DROP   } },
    { "tools",                         { RENDER, RENDER, DROP   } },
    { "top_k",                         { KEEP,   KEEP,   KEEP   } },
    { "top_logprobs",                  { DROP,   DROP,   DROP   } },
    { "top_n_sigma",                   { NONE,   NONE,   KEEP   } },
    { "top_p",                         { KEEP,   KEEP,   KEEP   } },
    { "typical_p",                     { NONE,   NONE,   KEEP   } },
    { "user",                          { KEEP,   KEEP,   DROP   } },
    { "xtc_probability",               { NONE,   NONE,   KEEP   } },
    { "xtc_threshold",                 { NONE,   NONE,   KEEP   } }
};


key_rule_t
can_key(keys_column_t column, const char *name)
{
    size_t  i;

    if (column == KEYS_NONE) {
        return KEY_UNKNOWN;
    }

    for (i = 0; i < sizeof(can_keys) / sizeof(can_keys[0]); i++) {
        if (strcmp(can_keys[i].name, name) == 0) {
            return can_keys[i].rules[column - 1];
        }
    }

    return KEY_UNKNOWN;
}


/* What neither ids nor text can resume. */
static const char *
can_neither(const dialect_call_t *call)
{
    size_t                i;
    const dialect_ops_t  *ops;

    static const struct {
        uint32_t     feature;
        const char  *why;
    } never[] = {
        { LLMGATEWAY__FEATURE__FEATURE_FORMAT, "a format of the answer" },
        { LLMGATEWAY__FEATURE__FEATURE_LOGPROBS, "log probabilities" },
        { LLMGATEWAY__FEATURE__FEATURE_CHOICES, "several choices" },
        { LLMGATEWAY__FEATURE__FEATURE_ECHO, "echo or suffix" }
    };

    ops = call->dialect->ops;

    for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
        if (call->features & never[i].feature) {
            return never[i].why;
        }
    }

    if ((call->features & LLMGATEWAY__FEATURE__FEATURE_PENALTY)
        && !ops->counts_prompt)
    {
        return "a penalty that counts what was generated";
    }

    if ((call->features & LLMGATEWAY__FEATURE__FEATURE_MIN_TOKENS)
        && !ops->has_min_tokens)
    {
        return "min_tokens";
    }

    return NULL;
}


/* A content is a string, or a list of parts with text. */
static int
can_content(llmgw_json_t content)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_elements(content);

    while (llmgw_json_next(&items, &item)) {
        if (!llmgw_json_is(llmgw_json_member(item.value, "type"), "text")) {
            return 0;
        }
    }

    return 1;
}


/*
 * Finds whether all contents are text, since images and the like are not in the
 * ids, and the last message, which has to be the client's.  0, or -1: there are
 * no messages.
 */
static int
can_messages(const dialect_call_t *call, int *has_text_only, llmgw_json_t *last)
{
    llmgw_json_t        messages;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    *has_text_only = 1;
    messages = edit_find(call->request->openai, "messages");

    if (messages.kind != LLMGW_JSON_ARRAY
        || llmgw_json_check(messages.begin, llmgw_json_bytes(messages),
                            &messages) != 0)
    {
        return -1;
    }

    last->kind = LLMGW_JSON_END;

    items = llmgw_json_elements(messages);

    while (llmgw_json_next(&items, &item)) {
        *last = item.value;
        *has_text_only &= can_content(llmgw_json_member(item.value, "content"));
    }

    return last->kind == LLMGW_JSON_END ? -1 : 0;
}


static const char *
can_chat_ids(const dialect_call_t *call)
{
    int                   has_text_only;
    llmgw_json_t          last;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;

    if (ops->render_path == NULL) {
        return "this engine gives no ids";
    }

    if (!ops->has_chat_ids && !call->facts->chat_is_text) {
        return "a chat of this engine is more than its prompt's completion";
    }

    if (call->features & LLMGATEWAY__FEATURE__FEATURE_TOOLS) {
        return "tools";
    }

    if (can_messages(call, &has_text_only, &last) != 0 || !has_text_only) {
        return "messages that are not only text";
    }

    return NULL;
}


static const char *
can_prompt_ids(const dialect_call_t *call)
{
    llmgw_json_t  prompt;

    if (call->dialect->ops->completion_path == NULL) {
        return "this engine gives no ids";
    }

    prompt = edit_find(call->request->openai, "prompt");

    return prompt.kind == LLMGW_JSON_STRING
           || (call->features & LLMGATEWAY__FEATURE__FEATURE_IDS_PROMPT)
           ? NULL : "a list of prompts";
}


const char *
can_ids(dialect_call_t *call)
{
    size_t                           i;
    const char                      *why;
    const Llmgateway__OpenaiRequest  *openai;

    openai = call->request->openai;

    if (openai == NULL) {
        return call->dialect->ops->completion_path == NULL
               ? "this engine gives no ids" : NULL;
    }

    why = can_neither(call);

    if (why != NULL) {
        return why;
    }

    if (call->features & LLMGATEWAY__FEATURE__FEATURE_STOP) {
        return "stop strings";      /* text always lags behind ids */
    }

    why = call->api == LLMGATEWAY__API__API_CHAT ? can_chat_ids(call)
                                                 : can_prompt_ids(call);

    for (i = 0; i < openai->n_members && why == NULL; i++) {
        if (can_key(call->dialect->ops->keys, openai->members[i]->key)
            == KEY_UNKNOWN)
        {
            why = "a key that a completion may not know";
        }
    }

    return why;
}


static const char *
can_chat_text(const dialect_call_t *call)
{
    int                   has_text_only;
    llmgw_json_t          last;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;

    /* Whether any other server can, only its operator knows (llmgw_resume
       text). */
    if (!ops->continues && !ops->prefills
        && !(call->want & LLMGATEWAY__WANT__WANT_TEXT))
    {
        return "this engine may not go on with a message";
    }

    if (can_messages(call, &has_text_only, &last) != 0) {
        return "messages that are no list";
    }

    if (llmgw_json_is(llmgw_json_member(last, "role"), "assistant")) {
        return "a last message of the assistant's";
    }

    return NULL;
}


const char *
can_text(dialect_call_t *call)
{
    const char                       *why;
    const Llmgateway__OpenaiRequest  *openai;

    openai = call->request->openai;

    if (openai == NULL) {
        return NULL;
    }

    why = can_neither(call);

    if (why != NULL) {
        return why;
    }

    if ((call->features & LLMGATEWAY__FEATURE__FEATURE_STOP)
        && !call->dialect->ops->holds_stops)
    {
        return "stop strings";
    }

    if (call->api == LLMGATEWAY__API__API_CHAT) {
        return can_chat_text(call);
    }

    return edit_find(openai, "prompt").kind == LLMGW_JSON_STRING
           ? NULL : "a prompt that is no text";
}


int
can_assemble(const dialect_call_t *call)
{
    static const uint32_t  lossy = LLMGATEWAY__FEATURE__FEATURE_TOOLS
                                   | LLMGATEWAY__FEATURE__FEATURE_FORMAT
                                   | LLMGATEWAY__FEATURE__FEATURE_LOGPROBS
                                   | LLMGATEWAY__FEATURE__FEATURE_CHOICES
                                   | LLMGATEWAY__FEATURE__FEATURE_UNKNOWN
                                   | LLMGATEWAY__FEATURE__FEATURE_ECHO;

    return (call->features & lossy) == 0;
}
