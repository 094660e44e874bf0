
#include <string.h>

#include "core/openai/prompt_text.h"


#define SYSTEM  "system"
#define CUE     "assistant:"

/* a token is about as long */
#define ID_BYTES  4

/*
 * A message is no longer as text than as JSON, with its brackets, quotes and
 * keys; `system` may add one more.  llmgw_json_text() needs some room at the
 * end.
 */
#define EXTRA_BYTES  (sizeof(SYSTEM ": \n" CUE) + LLMGW_JSON_TEXT_ROOM)


typedef struct {
    char  *p;
    char  *end;
} text_t;


static llmgw_json_t text_prompt(const llmgw_openai_body_t *body);
static void text_messages(text_t *text, llmgw_json_t messages);
static void text_message(text_t *text, llmgw_json_t content);
static void text_content(text_t *text, llmgw_json_t content);
static void text_string(text_t *text, llmgw_json_t string);
static void text_put(text_t *text, const char *bytes);
static size_t text_bytes_item(llmgw_json_t value);
static size_t text_bytes_content(llmgw_json_t content);
static size_t text_bytes_string(llmgw_json_t string);


size_t
llmgw_openai_text_room(const llmgw_openai_body_t *body)
{
    llmgw_json_t  prompt, system;

    prompt = text_prompt(body);
    system = llmgw_openai_body_value(body, body->system);

    return prompt.kind == LLMGW_JSON_END
           ? 0 : (prompt.end - prompt.begin) + (system.end - system.begin)
                 + EXTRA_BYTES;
}


char *
llmgw_openai_text(const llmgw_openai_body_t *body, size_t *len)
{
    char         *start;
    size_t        bytes;
    text_t        text;
    llmgw_json_t  prompt, system;

    bytes = llmgw_openai_text_room(body);

    if (bytes == 0) {
        return NULL;
    }

    prompt = text_prompt(body);
    system = llmgw_openai_body_value(body, body->system);

    start = body->memory->resize(body->memory->data, NULL, bytes);

    if (start == NULL) {
        return NULL;
    }

    text.p = start;
    text.end = start + bytes;

    if (system.kind != LLMGW_JSON_END) {
        text_put(&text, SYSTEM);
        text_message(&text, system);
    }

    text_string(&text, prompt);

    if (prompt.kind == LLMGW_JSON_ARRAY) {
        text_messages(&text, prompt);
    }

    *len = text.p - start;

    return start;
}


/* An array of messages, or one string; END: the body has neither. */
static llmgw_json_t
text_prompt(const llmgw_openai_body_t *body)
{
    llmgw_json_t        prompt;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    prompt = llmgw_openai_body_value(body, body->messages.end ? body->messages
                                                              : body->prompt);
    items = llmgw_json_items(prompt);

    if (prompt.kind != LLMGW_JSON_ARRAY
        || !llmgw_json_next(&items, &item)
        || item.value.kind == LLMGW_JSON_OBJECT)
    {
        return prompt;
    }

    return item.value.kind == LLMGW_JSON_STRING
           ? item.value : llmgw_json_at(prompt.end, prompt.end);
}


static void
text_messages(text_t *text, llmgw_json_t messages)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(messages);

    while (llmgw_json_next(&items, &item)) {
        if (item.value.kind == LLMGW_JSON_OBJECT) {
            text_string(text, llmgw_json_member(item.value, "role"));
            text_message(text, llmgw_json_member(item.value, "content"));
        }
    }

    text_put(text, CUE);
}


/* Adds a message's content after its role. */
static void
text_message(text_t *text, llmgw_json_t content)
{
    text_put(text, ": ");
    text_content(text, content);
    text_put(text, "\n");
}


/* Parts are separated by newlines. */
static void
text_content(text_t *text, llmgw_json_t content)
{
    char               *begin;
    llmgw_json_t        part;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    begin = text->p;
    text_string(text, content);

    for (items = llmgw_json_items(content); llmgw_json_next(&items, &item); ) {
        part = llmgw_json_member(item.value, "text");

        if (part.kind == LLMGW_JSON_STRING) {

            if (text->p > begin) {
                text_put(text, "\n");
            }

            text_string(text, part);
        }
    }
}


static void
text_string(text_t *text, llmgw_json_t string)
{
    size_t          n;
    const uint8_t  *from;

    if (string.kind != LLMGW_JSON_STRING) {
        return;
    }

    for (from = NULL; (n = llmgw_json_text(&string, &from, text->p,
                                           text->end - text->p)) > 0; )
    {
        text->p += n;
    }
}


static void
text_put(text_t *text, const char *bytes)
{
    size_t  len = strlen(bytes);

    if (len <= (size_t) (text->end - text->p)) {
        memcpy(text->p, bytes, len);
        text->p += len;
    }
}


size_t
llmgw_openai_text_bytes(const llmgw_openai_body_t *body)
{
    size_t              bytes;
    llmgw_json_t        prompt;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    prompt = llmgw_openai_body_value(body, body->messages.end ? body->messages
                                                              : body->prompt);
    bytes = text_bytes_content(llmgw_openai_body_value(body, body->system))
            + text_bytes_string(prompt);

    items = llmgw_json_elements(prompt);

    while (llmgw_json_next(&items, &item)) {
        bytes += text_bytes_item(item.value);
    }

    return bytes ? bytes : body->len;
}


/* Bytes of a message, of one prompt of several, or of an id. */
static size_t
text_bytes_item(llmgw_json_t value)
{
    size_t              bytes;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    switch (value.kind) {

    case LLMGW_JSON_OBJECT:
        return text_bytes_content(llmgw_json_member(value, "content"));

    case LLMGW_JSON_ARRAY:
        bytes = 0;

        for (items = llmgw_json_items(value); llmgw_json_next(&items, &item); )
        {
            bytes += ID_BYTES;
        }

        return bytes;

    case LLMGW_JSON_NUMBER:
        return ID_BYTES;

    default:
        return text_bytes_string(value);
    }
}


static size_t
text_bytes_content(llmgw_json_t content)
{
    size_t              bytes;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    bytes = text_bytes_string(content);
    items = llmgw_json_elements(content);

    while (llmgw_json_next(&items, &item)) {
        bytes += text_bytes_string(llmgw_json_member(item.value, "text"));
    }

    return bytes;
}


/* Bytes between the string's quotes. */
static size_t
text_bytes_string(llmgw_json_t string)
{
    return string.kind == LLMGW_JSON_STRING ? llmgw_json_bytes(string) - 2 : 0;
}
