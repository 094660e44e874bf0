
#include <stdio.h>
#include <string.h>

#include "core/openai/known_inner.h"


/* A path in an error: "messages[4294967295].role" and the like. */
#define PATH_BYTES   64


static int known_message(known_t *known, llmgw_json_items_t *messages,
    llmgw_json_t message, uint32_t i);
static int known_integer(known_t *known, llmgw_json_t value, uint32_t min,
    uint32_t max, uint32_t *number);


/* best_of: not an answer's choices, but as many are generated. */
int
known_choices(known_t *known, llmgw_json_t value)
{
    uint32_t  n;

    if (known_integer(known, value, 1, LLMGW_OPENAI_MAX_CHOICES, &n) != 0) {
        return -1;
    }

    if (n > 1) {
        known->body->features |= F(CHOICES);
    }

    return 0;
}


int
known_embeds(known_t *known, llmgw_json_t value)
{
    known->has_embeds = 1;
    known->body->features |= F(IDS_PROMPT);

    return 0;
}


/* response_format: {"type": "text"} asks for nothing. */
int
known_format(known_t *known, llmgw_json_t value)
{
    llmgw_json_t  type;

    type = llmgw_json_member(value, "type");

    if (!llmgw_json_is(type, "text")) {
        known->body->features |= F(FORMAT);
    }

    return 0;
}


int
known_function_call(known_t *known, llmgw_json_t value)
{
    known->no_functions = llmgw_json_is(value, "none");

    return 0;
}


int
known_max_completion(known_t *known, llmgw_json_t value)
{
    return known_integer(known, value, 1, INT32_MAX,
                         &known->max_completion_tokens);
}


/* 0, to read the prompt's logprobs alone, is for those who ask for its echo. */
int
known_max_tokens(known_t *known, llmgw_json_t value)
{
    return known_integer(known, value,
                         (known->body->features & F(ECHO)) ? 0 : 1,
                         INT32_MAX, &known->body->max_tokens);
}


int
known_messages(known_t *known, llmgw_json_t value)
{
    uint32_t            i;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(value);

    for (i = 0; llmgw_json_enter(&items, &item); i++) {
        if (known_message(known, &items, item.value, i) != 0) {
            return -1;
        }
    }

    return i > 0 ? 0 : known_value_error(known, "messages",
                                         "it must not be empty");
}


/* An object with a role.  The rest is for the engine to judge. */
static int
known_message(known_t *known, llmgw_json_items_t *messages,
    llmgw_json_t message, uint32_t i)
{
    char                path[PATH_BYTES];
    llmgw_json_t        role;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(message);
    role = llmgw_json_at(items.end, items.end);

    while (llmgw_json_next(&items, &item)) {
        if (llmgw_json_is(item.key, "role")) {
            role = item.value;
        }
    }

    messages->p = items.p;

    if (message.kind == LLMGW_JSON_OBJECT && role.kind == LLMGW_JSON_STRING) {
        return 0;
    }

    if (message.kind != LLMGW_JSON_OBJECT) {
        (void) snprintf(path, sizeof(path), "messages[%u]", i);
        return known_type_error(known, path, OBJECT, message);
    }

    (void) snprintf(path, sizeof(path), "messages[%u].role", i);

    return role.kind == LLMGW_JSON_END
           ? known_missing(known, path)
           : known_type_error(known, path, STRING, role);
}


int
known_model(known_t *known, llmgw_json_t value)
{
    size_t                i, len;
    const uint8_t        *from;
    llmgw_openai_body_t  *body;

    body = known->body;
    from = NULL;
    len = llmgw_json_text(&value, &from, body->model,
                          LLMGW_OPENAI_MAX_MODEL);

    if (len == 0) {
        return known_value_error(known, "model", "it must not be empty");
    }

    if (from != value.end - 1) {
        return known_value_error(known, "model", "it is too long");
    }

    for (i = 0; i < len; i++) {
        if ((unsigned char) body->model[i] < ' ' || body->model[i] == 0x7f) {
            return known_value_error(known, "model",
                                     "it contains a control character");
        }
    }

    body->model[len] = '\0';
    body->model_len = len;

    return 0;
}


int
known_n(known_t *known, llmgw_json_t value)
{
    if (known_integer(known, value, 1, LLMGW_OPENAI_MAX_CHOICES,
                      &known->body->n)
        != 0)
    {
        return -1;
    }

    if (known->body->n > 1) {
        known->body->features |= F(CHOICES);
    }

    return 0;
}


/*
 * A string, several, token ids, or several arrays of these.  A mixture of
 * strings and ids, which llama.cpp reads, is one prompt.
 */
int
known_prompt(known_t *known, llmgw_json_t value)
{
    uint32_t              n, ids;
    llmgw_json_item_t     item;
    llmgw_json_items_t    items;
    llmgw_openai_body_t  *body;

    body = known->body;

    if (value.kind != LLMGW_JSON_ARRAY || body->api == LLMGW_OPENAI_ANY_API
        || body->api == LLMGATEWAY__API__API_RESPONSES)
    {
        return 0;
    }

    items = llmgw_json_items(value);
    ids = 0;

    for (n = 0; llmgw_json_next(&items, &item); n++) {
        ids += (item.value.kind == LLMGW_JSON_NUMBER);

        if (item.value.kind == LLMGW_JSON_ARRAY
            || item.value.kind == LLMGW_JSON_NUMBER)
        {
            body->features |= F(IDS_PROMPT);
        }
    }

    if (n == 0) {
        return known_value_error(known, body->api
                                 == LLMGATEWAY__API__API_COMPLETIONS
                                 ? "prompt" : "input", "it must not be empty");
    }

    body->prompts = ids ? 1 : n;

    if (body->prompts > 1) {
        body->features |= F(CHOICES);
    }

    return 0;
}


int
known_stream(known_t *known, llmgw_json_t value)
{
    known->body->stream = (value.kind == LLMGW_JSON_TRUE);

    return 0;
}


int
known_stream_options(known_t *known, llmgw_json_t value)
{
    llmgw_json_t  usage;

    usage = llmgw_json_member(value, "include_usage");

    if (usage.kind != LLMGW_JSON_END && usage.kind != LLMGW_JSON_NULL
        && ((1u << usage.kind) & BOOL) == 0)
    {
        return known_type_error(known, "stream_options.include_usage", BOOL,
                                usage);
    }

    known->body->include_usage = (usage.kind == LLMGW_JSON_TRUE);

    return 0;
}


int
known_tool_choice(known_t *known, llmgw_json_t value)
{
    known->no_tools = llmgw_json_is(value, "none");

    return 0;
}


/* A fraction of zeros is none: some clients have only one kind of number. */
static int
known_integer(known_t *known, llmgw_json_t value, uint32_t min, uint32_t max,
    uint32_t *number)
{
    int             is_negative;
    char            what[PATH_BYTES];
    uint64_t        n;
    const uint8_t  *p;

    p = value.begin;
    is_negative = (*p == '-');

    for (p += is_negative, n = 0; p < value.end && *p >= '0' && *p <= '9'; p++)
    {
        n = n > max ? n : n * 10 + (*p - '0');
    }

    if (p < value.end && *p == '.') {
        for (p++; p < value.end && *p == '0'; p++) { /* void */ }
    }

    if (p < value.end) {
        return known_type_error(known, known->member->key, 0, value);
    }

    if (n < min || (is_negative && n > 0) || n > max) {
        (void) snprintf(what, sizeof(what), "it must be %s %u",
                        is_negative || n < min ? "at least" : "at most",
                        is_negative || n < min ? min : max);
        return known_value_error(known, known->member->key, what);
    }

    *number = (uint32_t) n;

    return 0;
}


int
known_missing(known_t *known, const char *path)
{
    llmgw_openai_error_set(known->error, 400, LLMGW_OPENAI_INVALID_REQUEST,
                           "missing_required_parameter", path,
                           "Missing required parameter: '%s'.", path);
    return -1;
}


/* types == 0: an integer. */
int
known_type_error(known_t *known, const char *path, unsigned types,
    llmgw_json_t value)
{
    const char         *expected;
    static const char  *got[] = {
        [LLMGW_JSON_OBJECT] = "an object",
        [LLMGW_JSON_ARRAY] = "an array",
        [LLMGW_JSON_STRING] = "a string",
        [LLMGW_JSON_NUMBER] = "a decimal number",
        [LLMGW_JSON_TRUE] = "a boolean",
        [LLMGW_JSON_FALSE] = "a boolean",
        [LLMGW_JSON_NULL] = "null",
    };

    switch (types) {
    case 0:
        expected = "an integer";
        break;
    case STRING:
        expected = "a string";
        break;
    case NUMBER:
        expected = "a number";
        break;
    case BOOL:
        expected = "a boolean";
        break;
    case ARRAY:
        expected = "an array";
        break;
    case OBJECT:
        expected = "an object";
        break;
    case STRING | ARRAY:
        expected = "a string or an array";
        break;
    case STRING | OBJECT:
        expected = "a string or an object";
        break;
    default:
        expected = "a boolean or a number";
    }

    llmgw_openai_error_set(known->error, 400, LLMGW_OPENAI_INVALID_REQUEST,
                           "invalid_type", path,
                           "Invalid type for '%s': expected %s, but got %s"
                           " instead.", path, expected,
                           value.kind == LLMGW_JSON_NUMBER && types != 0
                           ? "a number" : got[value.kind]);
    return -1;
}


int
known_value_error(known_t *known, const char *path, const char *what)
{
    llmgw_openai_error_set(known->error, 400, LLMGW_OPENAI_INVALID_REQUEST,
                           "invalid_value", path,
                           "Invalid value for '%s': %s.", path, what);
    return -1;
}
