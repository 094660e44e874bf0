
#include <string.h>

#include "core/openai/body.h"
#include "core/openai/known.h"
#include "proto/json/check.h"


/* Most bodies have fewer members. */
#define FIRST_MEMBERS  16


static int body_judge(const llmgw_openai_body_t *body,
    llmgw_openai_error_t *error);
static int body_members(llmgw_openai_body_t *body, llmgw_openai_error_t *error);
static int body_grow(llmgw_openai_body_t *body, llmgw_openai_error_t *error);
static int body_resize(llmgw_openai_body_t *body, size_t bytes,
    llmgw_openai_error_t *error);
static int body_keys(llmgw_openai_body_t *body, llmgw_openai_error_t *error);
static size_t body_key(llmgw_openai_body_t *body,
    const llmgw_openai_member_t *member, char *key);
static int body_wrong(llmgw_openai_error_t *error, const char *what);


void
llmgw_openai_body_begin(llmgw_openai_body_t *body, Llmgateway__Api api,
    const void *bytes, size_t len, const llmgw_openai_memory_t *memory)
{
    memset(body, 0, sizeof(*body));

    body->api = api;
    body->bytes = bytes;
    body->len = len;
    body->memory = memory;
    body->n = 1;
    body->prompts = 1;
}


int
llmgw_openai_body_read(llmgw_openai_body_t *body, Llmgateway__Api api,
    const void *bytes, size_t len, const llmgw_openai_memory_t *memory,
    llmgw_openai_error_t *error)
{
    llmgw_openai_body_begin(body, api, bytes, len, memory);

    if (body_judge(body, error) != 0) {
        return -1;
    }

    if (body_members(body, error) != 0
        || body_keys(body, error) != 0
        || llmgw_openai_known_read(body, error) != 0)
    {
        llmgw_openai_body_done(body);
        return -1;
    }

    return 0;
}


void
llmgw_openai_body_done(llmgw_openai_body_t *body)
{
    if (body->members) {
        (void) body->memory->resize(body->memory->data, body->members, 0);
        body->members = NULL;
        body->nmembers = 0;
        body->held = 0;
    }
}


llmgw_json_t
llmgw_openai_body_value(const llmgw_openai_body_t *body,
    llmgw_openai_span_t span)
{
    return llmgw_json_at(body->bytes + span.begin, body->bytes + span.end);
}


static int
body_judge(const llmgw_openai_body_t *body, llmgw_openai_error_t *error)
{
    llmgw_json_t        value;
    llmgw_json_error_t  wrong;

    if (body->len == 0) {
        return body_wrong(error, "The body is empty.");
    }

    if (body->len > LLMGW_OPENAI_MAX_BYTES) {
        llmgw_openai_error_set(error, 413, "request_too_large", NULL,
                               "The body is larger than %u bytes.",
                               LLMGW_OPENAI_MAX_BYTES);
        return -1;
    }

    if (body->api == LLMGW_OPENAI_ANY_API
        || llmgw_json_check_strict(body->bytes, body->len, &value, &wrong)
           == 0)
    {
        return 0;
    }

    llmgw_openai_error_set(error, 400, "invalid_json", NULL,
                           "Invalid JSON at byte %zu: %s.", wrong.at,
                           wrong.reason);
    return -1;
}


/* Notes where each member is; body_keys() adds the keys. */
static int
body_members(llmgw_openai_body_t *body, llmgw_openai_error_t *error)
{
    llmgw_json_t            top;
    const uint8_t          *p;
    llmgw_json_item_t       item;
    llmgw_json_items_t      items;
    llmgw_openai_member_t  *member;

    p = body->bytes;
    top = llmgw_json_token(&p, body->bytes + body->len);

    if (top.kind != LLMGW_JSON_OBJECT) {
        return body_wrong(error, "The body must be a JSON object.");
    }

    top.end = body->bytes + body->len;

    for (items = llmgw_json_items(top); llmgw_json_next(&items, &item);
         body->nmembers++)
    {
        if (body_grow(body, error) != 0) {
            return -1;
        }

        member = &body->members[body->nmembers];
        member->key = NULL;
        member->begin = (uint32_t) (item.key.begin - body->bytes);
        member->value = (uint32_t) (item.value.begin - body->bytes);
        member->end = (uint32_t) (item.value.end - body->bytes);
    }

    return 0;
}


/* Makes room for one member more, by doubling. */
static int
body_grow(llmgw_openai_body_t *body, llmgw_openai_error_t *error)
{
    size_t  n = body->nmembers;

    if (n == LLMGW_OPENAI_MAX_MEMBERS) {
        return body_wrong(error, "The body has too many keys.");
    }

    if (n == 0) {
        n = FIRST_MEMBERS;

    } else if (n < FIRST_MEMBERS || (n & (n - 1)) != 0) {
        return 0;

    } else {
        n *= 2;
    }

    return body_resize(body, n * sizeof(llmgw_openai_member_t), error);
}


static int
body_resize(llmgw_openai_body_t *body, size_t bytes,
    llmgw_openai_error_t *error)
{
    void  *p;

    p = body->memory->resize(body->memory->data, body->members, bytes);

    if (p == NULL) {
        llmgw_openai_error_set(error, 500, NULL, NULL,
                               "The gateway is out of memory.");
        return -1;
    }

    body->members = p;
    body->held = bytes;

    return 0;
}


/* Adds the keys after the members, in the same block. */
static int
body_keys(llmgw_openai_body_t *body, llmgw_openai_error_t *error)
{
    char    *key;
    size_t   i, len, bytes;

    bytes = body->nmembers * sizeof(llmgw_openai_member_t);

    for (i = 0; i < body->nmembers; i++) {
        bytes += body->members[i].value - body->members[i].begin;
    }

    if (body->nmembers == 0) {
        return 0;
    }

    if (body_resize(body, bytes, error) != 0) {
        return -1;
    }

    key = (char *) (body->members + body->nmembers);

    for (i = 0; i < body->nmembers; i++) {
        len = body_key(body, &body->members[i], key);

        if (memchr(key, '\0', len)) {
            return body_wrong(error, "A key of the body contains NUL.");
        }

        key[len] = '\0';
        body->members[i].key = key;
        key += len + 1;
    }

    return 0;
}


static size_t
body_key(llmgw_openai_body_t *body, const llmgw_openai_member_t *member,
    char *key)
{
    size_t          room;
    llmgw_json_t    token;
    const uint8_t  *p, *from;

    p = body->bytes + member->begin;
    token = llmgw_json_token(&p, body->bytes + member->value);
    room = member->value - member->begin;
    from = NULL;

    return llmgw_json_text(&token, &from, key, room);
}


static int
body_wrong(llmgw_openai_error_t *error, const char *what)
{
    llmgw_openai_error_set(error, 400, NULL, NULL, "%s", what);
    return -1;
}
