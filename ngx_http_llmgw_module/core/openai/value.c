
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/openai/value.h"


/* Strings with escapes are hashed in pieces. */
#define PIECE_BYTES  1024


/* A container that is open: the hash of what it has had so far. */
typedef struct {
    uint64_t      hash;
    uint64_t      key;              /* of the member whose value comes next */
    unsigned      is_object:1;
    unsigned      has_key:1;
} value_frame_t;


static void value_add(value_frame_t *frame, uint64_t hash);
static uint64_t value_scalar(const llmgw_json_t *token);


uint64_t
llmgw_openai_hash(llmgw_json_t value)
{
    size_t          depth;
    uint64_t        hash;
    value_frame_t   frames[LLMGW_JSON_MAX_DEPTH + 1];
    llmgw_json_t    token;
    const uint8_t  *p;

    p = value.begin;
    depth = 0;
    memset(&frames[0], 0, sizeof(value_frame_t));

    do {
        token = llmgw_json_token(&p, value.end);

        switch (token.kind) {

        case LLMGW_JSON_OBJECT:
        case LLMGW_JSON_ARRAY:
            if (depth == LLMGW_JSON_MAX_DEPTH) {
                return 0;                   /* nothing that was checked */
            }

            memset(&frames[++depth], 0, sizeof(value_frame_t));
            frames[depth].is_object = (token.kind == LLMGW_JSON_OBJECT);
            continue;

        case LLMGW_JSON_OBJECT_END:
        case LLMGW_JSON_ARRAY_END:
            if (depth == 0) {
                return 0;
            }

            hash = llmgw_openai_mix(frames[depth--].hash, token.kind);
            break;

        case LLMGW_JSON_END:
            return 0;

        default:
            hash = value_scalar(&token);
        }

        value_add(&frames[depth], hash);

    } while (depth > 0);

    return frames[0].hash;
}


/* Members are added up, so their order does not matter; elements' does. */
static void
value_add(value_frame_t *frame, uint64_t hash)
{
    if (!frame->is_object) {
        frame->hash = llmgw_openai_mix(frame->hash, hash);

    } else if (!frame->has_key) {
        frame->key = hash;
        frame->has_key = 1;

    } else {
        frame->hash += llmgw_openai_mix(frame->key, hash);
        frame->has_key = 0;
    }
}


static uint64_t
value_scalar(const llmgw_json_t *token)
{
    return token->kind == LLMGW_JSON_STRING
           ? llmgw_openai_hash_string(token)
           : XXH3_64bits_withSeed(token->begin, token->end - token->begin,
                                  token->kind);
}


uint64_t
llmgw_openai_hash_string(const llmgw_json_t *string)
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


uint64_t
llmgw_openai_mix(uint64_t a, uint64_t b)
{
    uint64_t  pair[2] = { a, b };

    return XXH3_64bits(pair, sizeof(pair));
}


uint64_t
llmgw_openai_mix_span(uint64_t hash, const llmgw_openai_body_t *body,
    llmgw_openai_span_t span)
{
    uint64_t  value;

    value = span.end ? llmgw_openai_hash(llmgw_openai_body_value(body, span))
                     : 0;

    return llmgw_openai_mix(hash, value);
}


uint64_t
llmgw_openai_seed(const llmgw_openai_body_t *body)
{
    uint64_t  hash;

    hash = XXH3_64bits(body->model, body->model_len);
    hash = llmgw_openai_mix_span(hash, body, body->cache_salt);
    hash = llmgw_openai_mix_span(hash, body, body->tools);

    return llmgw_openai_mix_span(hash, body, body->functions);
}


llmgw_json_t
llmgw_openai_prompt(const llmgw_openai_body_t *body)
{
    return llmgw_openai_body_value(body, body->messages.end ? body->messages
                                                            : body->prompt);
}


int
llmgw_openai_has_objects(llmgw_json_t prompt)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(prompt);

    return llmgw_json_enter(&items, &item)
           && item.value.kind == LLMGW_JSON_OBJECT;
}
