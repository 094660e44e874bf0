
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/openai/affinity_key.h"
#include "core/openai/value.h"


/* Strings with escapes are hashed in pieces. */
#define PIECE_BYTES  1024

/* Bytes of a file that are hashed: more than its header, and little work. */
#define FILE_BYTES   65536


/* The beginning of a text that comes in pieces. */
typedef struct {
    XXH3_state_t  state;
    size_t        left;             /* bytes of text that still enter the key */
} key_text_t;


static uint64_t key_asked(const llmgw_openai_body_t *body,
    llmgw_openai_by_t by);
static uint64_t key_file(const llmgw_openai_body_t *body);
static uint64_t key_messages(llmgw_json_t messages, uint64_t key,
    key_text_t *text);
static llmgw_json_t key_message(llmgw_json_items_t *messages,
    llmgw_json_t message, llmgw_json_t *role, llmgw_json_t *content);
static void key_content(key_text_t *text, llmgw_json_t content);
static void key_prompt(key_text_t *text, llmgw_json_t prompt);
static void key_text_string(key_text_t *text, const llmgw_json_t *string);
static void key_text_bytes(key_text_t *text, const void *bytes, size_t len);


uint64_t
llmgw_openai_affinity_key(const llmgw_openai_body_t *body, size_t prefix,
    llmgw_openai_by_t by)
{
    uint64_t      key;
    key_text_t    text;
    llmgw_json_t  prompt;

    key = key_asked(body, by);

    if (key) {
        return key;
    }

    if (body->file.end) {
        return key_file(body);
    }

    XXH3_INITSTATE(&text.state);
    (void) XXH3_64bits_reset(&text.state);
    text.left = prefix;

    key = llmgw_openai_mix_span(llmgw_openai_seed(body), body, body->system);
    prompt = llmgw_openai_prompt(body);

    if (llmgw_openai_has_objects(prompt)) {
        key = key_messages(prompt, key, &text);

    } else {
        key_prompt(&text, prompt);
    }

    return llmgw_openai_mix(key, XXH3_64bits_digest(&text.state));
}


/* The key that the client asks for; 0: none. */
static uint64_t
key_asked(const llmgw_openai_body_t *body, llmgw_openai_by_t by)
{
    llmgw_json_t  value;

    if (by == LLMGW_OPENAI_BY_PROMPT) {
        return 0;
    }

    value = llmgw_openai_body_value(body, by == LLMGW_OPENAI_BY_USER
                                          ? body->user : body->cache_key);

    return value.kind == LLMGW_JSON_STRING && value.end - value.begin > 2
           ? llmgw_openai_hash_string(&value) : 0;
}


static uint64_t
key_file(const llmgw_openai_body_t *body)
{
    size_t  len;

    len = body->file.end - body->file.begin;

    return llmgw_openai_mix(llmgw_openai_seed(body),
                            XXH3_64bits_withSeed(body->bytes + body->file.begin,
                                                 len < FILE_BYTES ? len
                                                                  : FILE_BYTES,
                                                 len));
}


/*
 * Enters system and developer messages as a whole, up to the first user
 * message, which goes into the text.  Without a user message, the first of the
 * other messages enters as a whole, too.
 */
static uint64_t
key_messages(llmgw_json_t messages, uint64_t key, key_text_t *text)
{
    llmgw_json_t        message, role, content, other;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    other.kind = LLMGW_JSON_END;
    items = llmgw_json_items(messages);

    while (llmgw_json_enter(&items, &item)) {
        message = key_message(&items, item.value, &role, &content);

        if (llmgw_json_is(role, "user")) {
            key_content(text, content);
            return key;
        }

        if (llmgw_json_is(role, "system")
            || llmgw_json_is(role, "developer"))
        {
            key = llmgw_openai_mix(key, llmgw_openai_hash(message));

        } else if (other.kind == LLMGW_JSON_END) {
            other = message;
        }
    }

    return other.kind == LLMGW_JSON_END
           ? key
           : llmgw_openai_mix(key, llmgw_openai_hash(other));
}


/* Reads all that the key needs of a message, which may be long, in one walk. */
static llmgw_json_t
key_message(llmgw_json_items_t *messages, llmgw_json_t message,
    llmgw_json_t *role, llmgw_json_t *content)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(message);

    *role = llmgw_json_at(message.end, message.end);
    *content = *role;

    if (message.kind == LLMGW_JSON_OBJECT || message.kind == LLMGW_JSON_ARRAY)
    {
        while (llmgw_json_next(&items, &item)) {
            if (llmgw_json_is(item.key, "role")) {
                *role = item.value;

            } else if (llmgw_json_is(item.key, "content")) {
                *content = item.value;
            }
        }

        messages->p = items.p;
        message.end = items.p;
    }

    return message;
}


/* Adds a string, or parts; parts with text count like a string. */
static void
key_content(key_text_t *text, llmgw_json_t content)
{
    uint64_t            hash;
    llmgw_json_t        part;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    key_text_string(text, &content);

    if (content.kind != LLMGW_JSON_ARRAY) {
        return;
    }

    items = llmgw_json_items(content);

    while (text->left > 0 && llmgw_json_next(&items, &item)) {
        part = llmgw_json_member(item.value, "text");

        if (part.kind == LLMGW_JSON_STRING) {
            key_text_string(text, &part);

        } else {
            hash = llmgw_openai_hash(item.value);
            key_text_bytes(text, &hash, sizeof(hash));
        }
    }
}


/* Adds strings and token ids, however deep they are in arrays. */
static void
key_prompt(key_text_t *text, llmgw_json_t prompt)
{
    llmgw_json_t    token;
    const uint8_t  *p;

    for (p = prompt.begin; text->left > 0; ) {
        token = llmgw_json_token(&p, prompt.end);

        if (token.kind == LLMGW_JSON_END) {
            return;
        }

        if (token.kind == LLMGW_JSON_STRING) {
            key_text_string(text, &token);

        } else if (token.kind == LLMGW_JSON_NUMBER) {
            key_text_bytes(text, token.begin, token.end - token.begin);
            key_text_bytes(text, ",", 1);
        }
    }
}


static void
key_text_string(key_text_t *text, const llmgw_json_t *string)
{
    size_t          n;
    uint8_t         piece[PIECE_BYTES];
    const uint8_t  *from;

    if (string->kind != LLMGW_JSON_STRING) {
        return;
    }

    for (from = NULL; text->left > 0
                      && (n = llmgw_json_text(string, &from, piece,
                                              sizeof(piece))) > 0; )
    {
        key_text_bytes(text, piece, n);
    }
}


static void
key_text_bytes(key_text_t *text, const void *bytes, size_t len)
{
    len = len < text->left ? len : text->left;
    text->left -= len;

    (void) XXH3_64bits_update(&text->state, bytes, len);
}
