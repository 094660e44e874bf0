
#include <stdio.h>

#include "core/openai/known_inner.h"


/* A path in an error: "messages[4294967295].role" and the like. */
#define PATH_BYTES   64


static int known_message(known_t *known, llmgw_json_items_t *messages,
    llmgw_json_t message, uint32_t i);
static int known_integer(known_t *known, const char *name, uint32_t min,
    uint32_t max, uint32_t *number);
static int known_missing(known_t *known, const char *path);
static int known_value_error(known_t *known, const char *path,
    const char *what);


int
known_model(known_t *known)
{
    size_t                i, len;
    llmgw_json_t          value;
    const uint8_t        *from;
    llmgw_openai_body_t  *body;

    body = known->body;
    value = known_value(known, "model");

    if (value.kind == LLMGW_JSON_END) {
        return body->api == LLMGW_OPENAI_ANY_API
               ? 0 : known_missing(known, "model");
    }

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
known_messages(known_t *known)
{
    uint32_t            i;
    llmgw_json_t        value;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    value = known_value(known, "messages");

    if (value.kind == LLMGW_JSON_END) {
        return (1u << known->body->api) & (CHAT | MESSAGES)
               ? known_missing(known, "messages") : 0;
    }

    items = llmgw_json_items(value);

    for (i = 0; llmgw_json_enter(&items, &item); i++) {
        if (known_message(known, &items, item.value, i) != 0) {
            return -1;
        }
    }

    return i > 0 ? 0 : known_value_error(known, "messages",
                                         "it must not be empty");
}


/* Checks an object with a role.  The engine judges the rest. */
static int
known_message(known_t *known, llmgw_json_items_t *messages,
    llmgw_json_t message, uint32_t i)
{
    char                path[PATH_BYTES];
    llmgw_json_t        role = { 0 };
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(message);

    while (llmgw_json_next(&items, &item)) {
        if (llmgw_json_is(item.key, "role")) {
            role = item.value;
        }
    }

    messages->p = items.p;

    if (message.kind != LLMGW_JSON_OBJECT) {
        (void) snprintf(path, sizeof(path), "messages[%u]", i);
        return known_type_error(known, path, OBJECT, message);
    }

    if (role.kind == LLMGW_JSON_STRING) {
        return 0;
    }

    (void) snprintf(path, sizeof(path), "messages[%u].role", i);

    return role.kind == LLMGW_JSON_END
           ? known_missing(known, path)
           : known_type_error(known, path, STRING, role);
}


/*
 * Checks a prompt: a string, several, token ids, or several arrays of these.  A
 * mixture of strings and ids, which llama.cpp reads, is one prompt.
 */
int
known_prompt(known_t *known)
{
    int                   is_completion;
    uint32_t              n, ids;
    const char           *name;
    llmgw_json_t          value;
    llmgw_json_item_t     item;
    llmgw_json_items_t    items;
    llmgw_openai_body_t  *body;

    body = known->body;
    is_completion = body->api == LLMGATEWAY__API__API_COMPLETIONS;

    if (!is_completion && body->api != LLMGATEWAY__API__API_EMBEDDINGS) {
        return 0;
    }

    name = is_completion ? "prompt" : "input";
    value = known_value(known, name);

    if (value.kind == LLMGW_JSON_END) {
        value = known_value(known, is_completion ? "prompt_embeds"
                                                 : "messages");
        return value.kind != LLMGW_JSON_END ? 0 : known_missing(known, name);
    }

    if (value.kind != LLMGW_JSON_ARRAY) {
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
        return known_value_error(known, name, "it must not be empty");
    }

    body->prompts = ids ? 1 : n;

    return 0;
}


int
known_stream(known_t *known)
{
    llmgw_json_t  usage;

    usage = llmgw_json_member(known_value(known, "stream_options"),
                              "include_usage");

    if (!llmgw_json_is_null(usage) && ((1u << usage.kind) & BOOL) == 0) {
        return known_type_error(known, "stream_options.include_usage", BOOL,
                                usage);
    }

    known->body->stream = known_value(known, "stream").kind == LLMGW_JSON_TRUE;
    known->body->include_usage = usage.kind == LLMGW_JSON_TRUE;

    return 0;
}


/*
 * Reads how many choices are wanted, and of what length.  0 tokens, to read
 * only the prompt's logprobs, is allowed with echo.
 */
int
known_numbers(known_t *known)
{
    char                  what[PATH_BYTES];
    uint32_t              least;
    llmgw_openai_body_t  *body;

    body = known->body;
    least = (body->features & F(ECHO)) ? 0 : 1;

    /* each overrides those above */

    if (known_integer(known, "n", 1, LLMGW_OPENAI_MAX_CHOICES, &body->n) != 0
        || known_integer(known, "max_output_tokens", least, INT32_MAX,
                         &body->max_tokens) != 0
        || known_integer(known, "max_tokens", least, INT32_MAX,
                         &body->max_tokens) != 0
        || known_integer(known, "max_completion_tokens", 1, INT32_MAX,
                         &body->max_tokens) != 0)
    {
        return -1;
    }

    if (body->n > 1 || body->prompts > 1) {
        body->features |= F(CHOICES);
    }

    /* an answer of another API has no choices */

    if (body->api == LLMGATEWAY__API__API_COMPLETIONS
        && (uint64_t) body->n * body->prompts > LLMGW_OPENAI_MAX_CHOICES)
    {
        (void) snprintf(what, sizeof(what),
                        "prompts times n must be at most %u",
                        LLMGW_OPENAI_MAX_CHOICES);
        return known_value_error(known, "prompt", what);
    }

    return 0;
}


/* Leaves *number unchanged if there is no such member. */
static int
known_integer(known_t *known, const char *name, uint32_t min, uint32_t max,
    uint32_t *number)
{
    int             is_negative;
    char            what[PATH_BYTES];
    uint64_t        n;
    llmgw_json_t    value;
    const uint8_t  *p;

    value = llmgw_json_integral(known_value(known, name));

    if (value.kind == LLMGW_JSON_END) {
        return 0;
    }

    p = value.begin;
    is_negative = (*p == '-');

    for (p += is_negative, n = 0; p < value.end && *p >= '0' && *p <= '9'; p++)
    {
        n = n > max ? n : n * 10 + (*p - '0');
    }

    if (p < value.end) {
        return known_type_error(known, name, INTEGER, value);
    }

    if (n < min || (is_negative && n > 0) || n > max) {
        (void) snprintf(what, sizeof(what), "it must be %s %u",
                        is_negative || n < min ? "at least" : "at most",
                        is_negative || n < min ? min : max);
        return known_value_error(known, name, what);
    }

    *number = (uint32_t) n;

    return 0;
}


static int
known_missing(known_t *known, const char *path)
{
    llmgw_openai_error_set(known->error, 400, "missing_required_parameter",
                           path, "Missing required parameter: '%s'.", path);
    return -1;
}


int
known_type_error(known_t *known, const char *path, unsigned types,
    llmgw_json_t value)
{
    int                 len;
    char                expected[PATH_BYTES] = "an integer";
    unsigned            kind;
    const char         *got;

    static const char  *names[] = {
        [LLMGW_JSON_OBJECT] = "an object",
        [LLMGW_JSON_ARRAY] = "an array",
        [LLMGW_JSON_STRING] = "a string",
        [LLMGW_JSON_NUMBER] = "a number",
        [LLMGW_JSON_TRUE] = "a boolean",
        [LLMGW_JSON_NULL] = "null",
    };

    types &= ~(1u << LLMGW_JSON_FALSE);

    for (len = 0, kind = LLMGW_JSON_NULL; kind > LLMGW_JSON_END; kind--) {
        if (types & (1u << kind)) {
            len += snprintf(expected + len, sizeof(expected) - (size_t) len,
                            "%s%s", len ? " or " : "", names[kind]);
        }
    }

    got = value.kind == LLMGW_JSON_FALSE ? names[LLMGW_JSON_TRUE]
          : types == INTEGER ? "a decimal number" : names[value.kind];

    llmgw_openai_error_set(known->error, 400, "invalid_type", path,
                           "Invalid type for '%s': expected %s, but got %s"
                           " instead.", path, expected, got);
    return -1;
}


static int
known_value_error(known_t *known, const char *path, const char *what)
{
    llmgw_openai_error_set(known->error, 400, "invalid_value", path,
                           "Invalid value for '%s': %s.", path, what);
    return -1;
}
