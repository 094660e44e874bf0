
/*
 * What can be had of a request.
 *
 * To go on by ids, or to have ids of a chat whose stream shows none, the
 * prompt is rendered and asked as a completion.  A completion runs no parser
 * and knows fewer keys, so each key of the body has to be one that either
 * goes on or means nothing there.  To go on by text, the text delivered is
 * given to the engine as the begin of the answer.
 */

#include <string.h>

#include "replica/engine/dialect/dialect_inner.h"


unsigned
can_key(const dialect_ops_t *ops, const char *name)
{
    const dialect_key_t  *key;

    for (key = ops->keys; key->name != NULL; key++) {
        if (strcmp(key->name, name) == 0) {
            return key->rules;
        }
    }

    return 0;
}


/* What neither way gives. */
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
can_content(value_t content)
{
    value_t  at = { NULL, NULL }, part;

    while (value_item(content, &at, &part)) {
        if (!value_is(value_find(part, "type"), "text")) {
            return 0;
        }
    }

    return 1;
}


/*
 * Images and the like are not in the ids; and the last message, which has to
 * be the client's.  absent: messages are none.
 */
static int
can_messages(const dialect_call_t *call, int *has_text_only, value_t *last)
{
    value_t  at = { NULL, NULL }, message, messages;

    *has_text_only = 1;
    messages = edit_find(call->request->openai, "messages");

    if (!value_is_array(messages)
        || value_check(messages.p, (size_t) (messages.end - messages.p),
                       &messages) != 0)
    {
        return -1;
    }

    last->p = NULL;

    while (value_item(messages, &at, &message)) {
        *last = message;
        *has_text_only &= can_content(value_find(message, "content"));
    }

    return last->p == NULL ? -1 : 0;
}


static const char *
can_chat_ids(const dialect_call_t *call)
{
    int                   has_text_only;
    value_t               last;
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
    value_t  prompt;

    if (call->dialect->ops->completion_path == NULL) {
        return "this engine gives no ids";
    }

    prompt = edit_find(call->request->openai, "prompt");

    return value_is_string(prompt)
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
        return "stop strings";      /* text lags behind ids all the time */
    }

    why = call->api == LLMGATEWAY__API__API_CHAT ? can_chat_ids(call)
                                                 : can_prompt_ids(call);

    for (i = 0; i < openai->n_members && why == NULL; i++) {
        if (can_key(call->dialect->ops, openai->members[i]->key) == 0) {
            why = "a key that a completion may not know";
        }
    }

    return why;
}


static const char *
can_chat_text(const dialect_call_t *call)
{
    int                   has_text_only;
    value_t               last;
    const dialect_ops_t  *ops;

    ops = call->dialect->ops;

    /* Of any other server only its operator knows (llmgw_resume text). */
    if (!ops->continues && !ops->prefills
        && !(call->want & LLMGATEWAY__WANT__WANT_TEXT))
    {
        return "this engine may not go on with a message";
    }

    if (can_messages(call, &has_text_only, &last) != 0) {
        return "messages that are no list";
    }

    if (value_is(value_find(last, "role"), "assistant")) {
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

    return value_is_string(edit_find(openai, "prompt"))
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
