
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/openai/key.h"


/* Strings with escapes are hashed in pieces. */
#define PIECE_BYTES  1024


/* A container that is open: the hash of what was in it so far. */
typedef struct {
    uint64_t      hash;
    uint64_t      key;              /* of the member whose value comes next */
    unsigned      is_object:1;
    unsigned      has_key:1;
} key_frame_t;

/* The beginning of a text that comes in pieces. */
typedef struct {
    XXH3_state_t  state;
    size_t        left;             /* bytes that may still enter */
} key_text_t;


static uint64_t key_asked(const llmgw_openai_body_t *body,
    llmgw_openai_by_t by);
static uint64_t key_stem(const llmgw_openai_body_t *body);
static uint64_t key_span(const llmgw_openai_body_t *body,
    llmgw_openai_span_t span);
static uint64_t key_value(llmgw_json_t value);
static void key_add(key_frame_t *frame, uint64_t hash);
static uint64_t key_scalar(const llmgw_json_t *token);
static uint64_t key_string(const llmgw_json_t *string);
static uint64_t key_mix(uint64_t a, uint64_t b);
static uint64_t key_messages(llmgw_json_t messages, uint64_t key,
    key_text_t *text);
static llmgw_json_t key_message(llmgw_json_items_t *messages,
    llmgw_json_t message, llmgw_json_t *role, llmgw_json_t *content);
static void key_content(key_text_t *text, llmgw_json_t content);
static void key_prompt(key_text_t *text, llmgw_json_t prompt);
static void key_text_string(key_text_t *text, const llmgw_json_t *string);
static void key_text_bytes(key_text_t *text, const void *bytes, size_t len);
static int key_has_objects(llmgw_json_t array);


uint64_t
llmgw_openai_key(const llmgw_openai_body_t *body, size_t prefix,
    llmgw_openai_by_t by)
{
    uint64_t      key;
    key_text_t    text;
    llmgw_json_t  prompt;

    key = key_asked(body, by);

    if (key) {
        return key;
    }

    XXH3_INITSTATE(&text.state);
    (void) XXH3_64bits_reset(&text.state);
    text.left = prefix;

    key = key_stem(body);
    prompt = llmgw_openai_body_value(body, body->messages.end ? body->messages
                                                              : body->prompt);

    if (key_has_objects(prompt)) {
        key = key_messages(prompt, key, &text);

    } else {
        key_prompt(&text, prompt);
    }

    return key_mix(key, XXH3_64bits_digest(&text.state));
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
           ? key_string(&value) : 0;
}


/* What stands before all messages, whatever their place in the body. */
static uint64_t
key_stem(const llmgw_openai_body_t *body)
{
    uint64_t  key;

    key = XXH3_64bits(body->model, body->model_len);
    key = key_mix(key, key_span(body, body->cache_salt));
    key = key_mix(key, key_span(body, body->tools));
    key = key_mix(key, key_span(body, body->functions));

    return key_mix(key, key_span(body, body->system));
}


static uint64_t
key_span(const llmgw_openai_body_t *body, llmgw_openai_span_t span)
{
    return span.end ? key_value(llmgw_openai_body_value(body, span)) : 0;
}


static uint64_t
key_value(llmgw_json_t value)
{
    size_t          depth;
    uint64_t        hash;
    key_frame_t     frames[LLMGW_JSON_MAX_DEPTH + 1];
    llmgw_json_t    token;
    const uint8_t  *p;

    p = value.begin;
    depth = 0;
    memset(&frames[0], 0, sizeof(key_frame_t));

    do {
        token = llmgw_json_token(&p, value.end);

        switch (token.kind) {

        case LLMGW_JSON_OBJECT:
        case LLMGW_JSON_ARRAY:
            if (depth == LLMGW_JSON_MAX_DEPTH) {
                return 0;                   /* nothing that was judged */
            }

            memset(&frames[++depth], 0, sizeof(key_frame_t));
            frames[depth].is_object = (token.kind == LLMGW_JSON_OBJECT);
            continue;

        case LLMGW_JSON_OBJECT_END:
        case LLMGW_JSON_ARRAY_END:
            if (depth == 0) {
                return 0;
            }

            hash = key_mix(frames[depth--].hash, token.kind);
            break;

        case LLMGW_JSON_END:
            return 0;

        default:
            hash = key_scalar(&token);
        }

        key_add(&frames[depth], hash);

    } while (depth > 0);

    return frames[0].hash;
}


/* Members are added up, so their order does not matter; elements' does. */
static void
key_add(key_frame_t *frame, uint64_t hash)
{
    if (!frame->is_object) {
        frame->hash = key_mix(frame->hash, hash);

    } else if (!frame->has_key) {
        frame->key = hash;
        frame->has_key = 1;

    } else {
        frame->hash += key_mix(frame->key, hash);
        frame->has_key = 0;
    }
}


static uint64_t
key_scalar(const llmgw_json_t *token)
{
    return token->kind == LLMGW_JSON_STRING
           ? key_string(token)
           : XXH3_64bits_withSeed(token->begin, token->end - token->begin,
                                  token->kind);
}


static uint64_t
key_string(const llmgw_json_t *string)
{
    size_t          n;
    uint8_t         piece[PIECE_BYTES];
    XXH3_state_t    state;
    const uint8_t  *from, *text = string->begin + 1;

    n = string->end - text;
    n -= (n > 0);                           /* the closing quote */

    if (memchr(text, '\\', n) == NULL) {
        return XXH3_64bits_withSeed(text, n, LLMGW_JSON_STRING);
    }

    XXH3_INITSTATE(&state);
    (void) XXH3_64bits_reset_withSeed(&state, LLMGW_JSON_STRING);

    for (from = NULL; (n = llmgw_json_text(string, &from, piece,
                                           sizeof(piece))) > 0; )
    {
        (void) XXH3_64bits_update(&state, piece, n);
    }

    return XXH3_64bits_digest(&state);
}


static uint64_t
key_mix(uint64_t a, uint64_t b)
{
    uint64_t  pair[2] = { a, b };

    return XXH3_64bits(pair, sizeof(pair));
}


/*
 * System and developer messages as a whole up to the first user message, which
 * goes into the text.  Without a user message it is the first of the others.
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
            key = key_mix(key, key_value(message));

        } else if (other.kind == LLMGW_JSON_END) {
            other = message;
        }
    }

    return other.kind == LLMGW_JSON_END ? key
                                        : key_mix(key, key_value(other));
}


/* One walk for all that is asked of a message, which may be long. */
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


/* A string, or parts of which those with text are the same as a string. */
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
            hash = key_value(item.value);
            key_text_bytes(text, &hash, sizeof(hash));
        }
    }
}


/* Strings and token ids, however deep they are in arrays. */
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


/* Messages; or items of Responses. */
static int
key_has_objects(llmgw_json_t array)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(array);

    return llmgw_json_enter(&items, &item)
           && item.value.kind == LLMGW_JSON_OBJECT;
}
