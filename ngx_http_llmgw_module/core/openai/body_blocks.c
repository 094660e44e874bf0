
#include <string.h>

#include "core/openai/body_blocks.h"
#include "core/openai/value.h"
#include "core/prefix/blocks.h"


/* Texts enter in pieces, with their escapes resolved. */
#define PIECE_BYTES  1024

#define FRAME   "\xff"
#define OTHERS  "\xfe"


/* A member of an object that is looked at by itself. */
typedef struct {
    const char    *key;
    llmgw_json_t   value;
} blocks_field_t;


static void blocks_messages(llmgw_blocks_t *blocks, llmgw_json_t messages);
static void blocks_message(llmgw_blocks_t *blocks, llmgw_json_items_t *items,
    llmgw_json_t message);
static uint64_t blocks_others(llmgw_json_items_t *items, llmgw_json_t object,
    blocks_field_t *fields, size_t n);
static blocks_field_t *blocks_field(blocks_field_t *fields, size_t n,
    llmgw_json_t key);
static void blocks_frame(llmgw_blocks_t *blocks, const char *role);
static void blocks_content(llmgw_blocks_t *blocks, llmgw_json_t content);
static void blocks_part(llmgw_blocks_t *blocks, llmgw_json_items_t *items,
    llmgw_json_t part, int is_first);
static void blocks_prompt(llmgw_blocks_t *blocks, llmgw_json_t prompt);
static void blocks_hash(llmgw_blocks_t *blocks, uint64_t hash);
static void blocks_string(llmgw_blocks_t *blocks, llmgw_json_t string);
static void blocks_text(llmgw_blocks_t *blocks, const char *text);


uint32_t
llmgw_openai_blocks(const llmgw_openai_body_t *body, uint32_t bytes,
    uint64_t *hashes, uint32_t max)
{
    llmgw_json_t    prompt;
    llmgw_blocks_t  blocks;

    llmgw_blocks_init(&blocks, hashes, max, bytes, llmgw_openai_seed(body));

    if (body->system.end) {
        blocks_frame(&blocks, "system");
        blocks_content(&blocks, llmgw_openai_body_value(body, body->system));
    }

    prompt = llmgw_openai_prompt(body);

    if (llmgw_openai_has_objects(prompt)) {
        blocks_messages(&blocks, prompt);

    } else {
        blocks_frame(&blocks, "user");
        blocks_prompt(&blocks, prompt);
    }

    return blocks.n;
}


static void
blocks_messages(llmgw_blocks_t *blocks, llmgw_json_t messages)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_items(messages);

    while (!llmgw_blocks_are_full(blocks) && llmgw_json_enter(&items, &item)) {
        blocks_message(blocks, &items, item.value);
    }
}


static void
blocks_message(llmgw_blocks_t *blocks, llmgw_json_items_t *items,
    llmgw_json_t message)
{
    uint64_t        others;
    blocks_field_t  fields[] = {
        { .key = "role" }, { .key = "content" }, { .key = "cache_control" }
    };

    others = blocks_others(items, message, fields, 3);

    blocks_text(blocks, FRAME);
    blocks_string(blocks, fields[0].value);
    blocks_text(blocks, FRAME);

    if (others != 0) {
        blocks_hash(blocks, others);
    }

    blocks_content(blocks, fields[1].value);
}


/*
 * Reads all that is needed of an object, which may be long, in one walk;
 * `items` is then after it.  Fields get their values, other members are hashed;
 * null is the same as no value.  Returns the hash; 0: there are no others.
 */
static uint64_t
blocks_others(llmgw_json_items_t *items, llmgw_json_t object,
    blocks_field_t *fields, size_t n)
{
    uint64_t            hash;
    blocks_field_t     *field;
    llmgw_json_item_t   item;
    llmgw_json_items_t  members;

    hash = 0;
    members = llmgw_json_items(object);

    if (object.kind != LLMGW_JSON_OBJECT && object.kind != LLMGW_JSON_ARRAY) {
        return llmgw_openai_hash(object);       /* neither a message nor a
                                                   part */
    }

    while (llmgw_json_next(&members, &item)) {
        field = blocks_field(fields, n, item.key);

        if (field != NULL) {
            field->value = item.value;

        } else if (item.key.kind != LLMGW_JSON_STRING) {
            hash = llmgw_openai_mix(hash, llmgw_openai_hash(item.value));

        } else if (!llmgw_json_is_null(item.value)) {
            hash += llmgw_openai_mix(llmgw_openai_hash_string(&item.key),
                                     llmgw_openai_hash(item.value));
        }
    }

    items->p = members.p;

    return hash;
}


/* NULL: not one of them. */
static blocks_field_t *
blocks_field(blocks_field_t *fields, size_t n, llmgw_json_t key)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (llmgw_json_is(key, fields[i].key)) {
            return &fields[i];
        }
    }

    return NULL;
}


static void
blocks_frame(llmgw_blocks_t *blocks, const char *role)
{
    blocks_text(blocks, FRAME);
    blocks_text(blocks, role);
    blocks_text(blocks, FRAME);
}


/* Adds a string, or parts; parts with text count like a string. */
static void
blocks_content(llmgw_blocks_t *blocks, llmgw_json_t content)
{
    int                 is_first;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    blocks_string(blocks, content);

    items = llmgw_json_elements(content);

    for (is_first = 1;
         !llmgw_blocks_are_full(blocks) && llmgw_json_enter(&items, &item);
         is_first = 0)
    {
        blocks_part(blocks, &items, item.value, is_first);
    }
}


static void
blocks_part(llmgw_blocks_t *blocks, llmgw_json_items_t *items,
    llmgw_json_t part, int is_first)
{
    uint64_t        others;
    blocks_field_t  fields[] = {
        { .key = "text" }, { .key = "cache_control" }
    };

    others = blocks_others(items, part, fields, 2);

    if (!is_first) {
        blocks_text(blocks, "\n");
    }

    if (fields[0].value.kind == LLMGW_JSON_STRING) {
        blocks_string(blocks, fields[0].value);

    } else {
        blocks_hash(blocks, others);
    }
}


/* Adds strings and token ids, however deep they are in arrays. */
static void
blocks_prompt(llmgw_blocks_t *blocks, llmgw_json_t prompt)
{
    llmgw_json_t    token;
    const uint8_t  *p;

    for (p = prompt.begin; !llmgw_blocks_are_full(blocks); ) {
        token = llmgw_json_token(&p, prompt.end);

        if (token.kind == LLMGW_JSON_END) {
            return;
        }

        blocks_string(blocks, token);

        if (token.kind == LLMGW_JSON_NUMBER) {
            llmgw_blocks_add(blocks, token.begin, llmgw_json_bytes(token));
            blocks_text(blocks, ",");
        }
    }
}


static void
blocks_hash(llmgw_blocks_t *blocks, uint64_t hash)
{
    blocks_text(blocks, OTHERS);
    llmgw_blocks_add(blocks, &hash, sizeof(hash));
}


/* Adds a string's text; of any other value nothing. */
static void
blocks_string(llmgw_blocks_t *blocks, llmgw_json_t string)
{
    size_t          n;
    uint8_t         piece[PIECE_BYTES];
    const uint8_t  *from;

    if (string.kind != LLMGW_JSON_STRING) {
        return;
    }

    for (from = NULL; !llmgw_blocks_are_full(blocks)
                      && (n = llmgw_json_text(&string, &from, piece,
                                              sizeof(piece))) > 0; )
    {
        llmgw_blocks_add(blocks, piece, n);
    }
}


static void
blocks_text(llmgw_blocks_t *blocks, const char *text)
{
    llmgw_blocks_add(blocks, text, strlen(text));
}
