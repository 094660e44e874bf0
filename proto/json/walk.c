
#include "proto/json/json_inner.h"
#include "proto/json/walk.h"


#define MAX_NUMBER_BYTES  20        /* digits of 2^64 */

/* Bytes below 64 that stand between tokens, as bits. */
#define BIT(c)       (1ull << (c))
#define BETWEEN      (BIT(' ') | BIT(',') | BIT(':') | BIT('\n') | BIT('\t')  \
                      | BIT('\r'))


static llmgw_json_kind_t json_kind(uint8_t first);
static const uint8_t *json_string_end(const uint8_t *p, const uint8_t *end);
static const uint8_t *json_word_end(const uint8_t *p, const uint8_t *end);
static const uint8_t *json_container_end(const uint8_t *p,
    const uint8_t *end);


static inline void
json_token(llmgw_json_t *token, const uint8_t **p, const uint8_t *end)
{
    const uint8_t  *at = *p;

    while (at < end && *at < 64 && (BETWEEN >> *at & 1)) {
        at++;
    }

    token->begin = at;

    if (at == end) {
        token->kind = LLMGW_JSON_END;
        token->end = end;
        *p = end;
        return;
    }

    token->kind = json_kind(*at++);

    switch (token->kind) {

    case LLMGW_JSON_STRING:
        at = json_string_end(at, end);
        break;

    case LLMGW_JSON_NUMBER:
    case LLMGW_JSON_TRUE:
    case LLMGW_JSON_FALSE:
    case LLMGW_JSON_NULL:
        at = json_word_end(at, end);
        break;

    default:
        break;
    }

    token->end = at;
    *p = at;
}


llmgw_json_t
llmgw_json_token(const uint8_t **p, const uint8_t *end)
{
    llmgw_json_t  token;

    json_token(&token, p, end);

    return token;
}


/* The kind of a value, by its first byte. */
static llmgw_json_kind_t
json_kind(uint8_t first)
{
    static const uint8_t  kinds[256] = {
        ['{'] = LLMGW_JSON_OBJECT,
        ['}'] = LLMGW_JSON_OBJECT_END,
        ['['] = LLMGW_JSON_ARRAY,
        [']'] = LLMGW_JSON_ARRAY_END,
        ['"'] = LLMGW_JSON_STRING,
        ['t'] = LLMGW_JSON_TRUE,
        ['f'] = LLMGW_JSON_FALSE,
        ['n'] = LLMGW_JSON_NULL
    };

    return kinds[first] ? kinds[first] : LLMGW_JSON_NUMBER;
}


/* Returns the place after the closing quote. */
static const uint8_t *
json_string_end(const uint8_t *p, const uint8_t *end)
{
    while ((p = json_special(p, end)) < end) {

        if (*p == '"') {
            return p + 1;
        }

        p += (*p == '\\' && end - p > 1) ? 2 : 1;
    }

    return end;
}


/* Returns the place after a number, true, false or null. */
static const uint8_t *
json_word_end(const uint8_t *p, const uint8_t *end)
{
    static const uint8_t  in_words[256] = {
        ['0' ... '9'] = 1, ['a' ... 'z'] = 1,
        ['.'] = 1, ['-'] = 1, ['+'] = 1, ['E'] = 1
    };

    while (p < end && in_words[*p]) {
        p++;
    }

    return p;
}


llmgw_json_t
llmgw_json_at(const void *begin, const void *end)
{
    llmgw_json_t  value;

    value.begin = begin;
    value.end = end;
    value.kind = value.begin < value.end ? json_kind(*value.begin)
                                         : LLMGW_JSON_END;
    return value;
}


llmgw_json_items_t
llmgw_json_items(llmgw_json_t value)
{
    llmgw_json_items_t  items;

    items.kind = value.kind;
    items.p = value.begin;
    items.end = value.begin;

    if (value.kind == LLMGW_JSON_OBJECT || value.kind == LLMGW_JSON_ARRAY) {
        items.p++;
        items.end = value.end;
    }

    return items;
}


llmgw_json_items_t
llmgw_json_elements(llmgw_json_t array)
{
    return llmgw_json_items(array.kind == LLMGW_JSON_ARRAY
                            ? array : llmgw_json_at(array.end, array.end));
}


llmgw_json_items_t
llmgw_json_members(llmgw_json_t object)
{
    return llmgw_json_items(object.kind == LLMGW_JSON_OBJECT
                            ? object : llmgw_json_at(object.end, object.end));
}


static inline int
json_enter(llmgw_json_items_t *items, llmgw_json_item_t *item)
{
    item->key.kind = LLMGW_JSON_END;

    if (items->kind == LLMGW_JSON_OBJECT) {
        json_token(&item->key, &items->p, items->end);

        if (item->key.kind != LLMGW_JSON_STRING) {
            return 0;
        }
    }

    json_token(&item->value, &items->p, items->end);

    return item->value.kind != LLMGW_JSON_END
           && item->value.kind != LLMGW_JSON_OBJECT_END
           && item->value.kind != LLMGW_JSON_ARRAY_END;
}


int
llmgw_json_enter(llmgw_json_items_t *items, llmgw_json_item_t *item)
{
    if (!json_enter(items, item)) {
        return 0;
    }

    if (item->value.kind == LLMGW_JSON_OBJECT
        || item->value.kind == LLMGW_JSON_ARRAY)
    {
        item->value.end = items->end;
    }

    return 1;
}


int
llmgw_json_next(llmgw_json_items_t *items, llmgw_json_item_t *item)
{
    if (!json_enter(items, item)) {
        return 0;
    }

    if (item->value.kind == LLMGW_JSON_OBJECT
        || item->value.kind == LLMGW_JSON_ARRAY)
    {
        items->p = json_container_end(items->p, items->end);
        item->value.end = items->p;
    }

    return 1;
}


/*
 * From the place after an opening bracket, finds the place after the closing
 * one.
 */
static const uint8_t *
json_container_end(const uint8_t *p, const uint8_t *end)
{
    size_t  depth;

    for (depth = 1; p < end && depth > 0; ) {

        switch (*p++) {

        case '"':
            p = json_string_end(p, end);
            break;

        case '{':
        case '[':
            depth++;
            break;

        case '}':
        case ']':
            depth--;
            break;

        default:
            break;
        }
    }

    return p;
}


llmgw_json_t
llmgw_json_member(llmgw_json_t object, const char *name)
{
    llmgw_json_t        value;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    value = llmgw_json_at(object.end, object.end);

    for (items = llmgw_json_members(object); llmgw_json_next(&items, &item); ) {
        if (llmgw_json_is(item.key, name)) {
            value = item.value;
        }
    }

    return value;
}


llmgw_json_t
llmgw_json_first(llmgw_json_t array)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    items = llmgw_json_elements(array);

    return llmgw_json_next(&items, &item)
           ? item.value : llmgw_json_at(array.end, array.end);
}


int
llmgw_json_is_empty(llmgw_json_t value)
{
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    switch (value.kind) {

    case LLMGW_JSON_END:
    case LLMGW_JSON_NULL:
        return 1;

    case LLMGW_JSON_STRING:
        return llmgw_json_bytes(value) == 2;

    case LLMGW_JSON_ARRAY:
    case LLMGW_JSON_OBJECT:
        items = llmgw_json_items(value);
        return !llmgw_json_enter(&items, &item);

    default:
        return 0;
    }
}


int
llmgw_json_uint(llmgw_json_t value, uint64_t max, uint64_t *number)
{
    uint64_t        n;
    const uint8_t  *p;

    if (value.kind != LLMGW_JSON_NUMBER
        || llmgw_json_bytes(value) > MAX_NUMBER_BYTES)
    {
        return -1;
    }

    for (n = 0, p = value.begin; p < value.end; p++) {
        if (*p < '0' || *p > '9' || n > max / 10) {
            return -1;
        }

        n = n * 10 + (uint64_t) (*p - '0');

        if (n > max || n < (uint64_t) (*p - '0')) {
            return -1;
        }
    }

    *number = n;

    return 0;
}


llmgw_json_t
llmgw_json_integral(llmgw_json_t value)
{
    const uint8_t  *p;

    if (value.kind == LLMGW_JSON_NUMBER) {
        for (p = value.end - 1; p > value.begin && *p == '0'; p--) {
            /* void */
        }

        value.end = *p == '.' ? p : value.end;
    }

    return value;
}
