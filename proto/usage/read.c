
/* Reads usage records.  record.h has the format. */

#include <string.h>

#include "proto/json/check.h"
#include "proto/json/text.h"
#include "proto/date.h"
#include "proto/usage/record.h"
#include "proto/utf8.h"


typedef enum {
    READ_TEXT = 0,
    READ_NUMBER,
    READ_TIME,
    READ_SECONDS,
    READ_REPLICAS,
    READ_SETTLED_BY
} read_kind_t;

typedef struct {
    llmgw_usage_source_t  source;
    llmgw_usage_t         usage;
} read_t;

typedef struct {
    const char   *name;
    read_kind_t   kind;
    size_t        offset;               /* of the field in read_t */
    size_t        size;                 /* of the field, for a text */
} read_member_t;

#define read_text_member(name, field)                                         \
    { name, READ_TEXT, offsetof(read_t, field), sizeof(((read_t *) 0)->field) }
#define read_member(name, kind, field)                                        \
    { name, kind, offsetof(read_t, field), 0 }

static const read_member_t  read_members[] = {
    read_member("time", READ_TIME, usage.ended_ms),
    read_text_member("gateway", source.gateway),
    read_text_member("birth", source.birth),
    read_member("n", READ_NUMBER, usage.n),
    read_text_member("request_id", usage.request_id),
    read_text_member("key", usage.key),
    read_text_member("tenant", usage.tenant),
    read_text_member("class", usage.slo_class),
    read_text_member("model", usage.model),
    read_text_member("served_model", usage.served),
    read_member("replicas", READ_REPLICAS, usage.replicas),
    read_member("prompt_tokens", READ_NUMBER, usage.prompt),
    read_member("completion_tokens", READ_NUMBER, usage.completion),
    read_member("cached_tokens", READ_NUMBER, usage.cached),
    read_member("reasoning_tokens", READ_NUMBER, usage.reasoning),
    read_member("wasted_tokens", READ_NUMBER, usage.wasted),
    read_text_member("outcome", usage.outcome),
    read_member("seconds", READ_SECONDS, usage.took_ms),
    read_member("settled_by", READ_SETTLED_BY, usage.settled_by)
};

#define READ_MEMBERS  (sizeof(read_members) / sizeof(read_members[0]))
#define READ_ALL      ((1u << READ_MEMBERS) - 1)


/*
 * Copies a text.  0; -1: it is no string, too long, or has control characters.
 */
static int
read_text(llmgw_json_t value, char *to, size_t size)
{
    char            text[LLMGW_USAGE_REPLICAS_BYTES + LLMGW_JSON_TEXT_ROOM];
    size_t          len, at, n;
    const uint8_t  *from = NULL;

    if (value.kind != LLMGW_JSON_STRING) {
        return -1;
    }

    len = llmgw_json_text(&value, &from, text, sizeof(text));

    if (len >= size) {
        return -1;
    }

    for (at = 0; at < len; at += n) {
        n = llmgw_utf8_shown(text + at, len - at);

        if (n == 0) {
            return -1;
        }
    }

    memcpy(to, text, len);
    to[len] = '\0';

    return 0;
}


static int
read_time(llmgw_json_t value, uint64_t *unix_ms)
{
    char  text[LLMGW_DATE_BYTES];

    return read_text(value, text, sizeof(text)) != 0
           ? -1 : llmgw_date_read(text, strlen(text), unix_ms);
}


/*
 * Reads a number of seconds in the form in which it is written: digits, a
 * point, and three digits.
 */
static int
read_seconds(llmgw_json_t value, uint64_t *ms)
{
    uint64_t        seconds;
    llmgw_json_t    whole = value;
    const uint8_t  *end = value.end;

    if (value.kind != LLMGW_JSON_NUMBER || llmgw_json_bytes(value) < 5
        || end[-4] != '.')
    {
        return -1;
    }

    whole.end = end - 4;

    if (llmgw_json_uint(whole, LLMGW_USAGE_NUMBER_MAX / 1000, &seconds) != 0
        || end[-3] < '0' || end[-3] > '9' || end[-2] < '0' || end[-2] > '9'
        || end[-1] < '0' || end[-1] > '9')
    {
        return -1;
    }

    *ms = seconds * 1000 + (uint64_t) (end[-3] - '0') * 100
          + (uint64_t) (end[-2] - '0') * 10 + (uint64_t) (end[-1] - '0');

    return 0;
}


static int
read_replicas(llmgw_json_t value, char *replicas)
{
    char                id[LLMGW_USAGE_REPLICAS_BYTES];
    size_t              len, used;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    if (value.kind != LLMGW_JSON_ARRAY) {
        return -1;
    }

    used = 0;
    replicas[0] = '\0';
    items = llmgw_json_items(value);

    while (llmgw_json_next(&items, &item)) {

        if (read_text(item.value, id, sizeof(id)) != 0) {
            return -1;
        }

        len = strlen(id);

        if (len == 0 || strchr(id, ' ') != NULL
            || used + (used > 0) + len >= LLMGW_USAGE_REPLICAS_BYTES)
        {
            return -1;
        }

        if (used > 0) {
            replicas[used++] = ' ';
        }

        memcpy(replicas + used, id, len + 1);
        used += len;
    }

    return 0;
}


static int
read_settled_by(llmgw_json_t value, llmgw_settled_by_t *settled_by)
{
    llmgw_settled_by_t  i;

    for (i = 0; i <= LLMGW_SETTLED_BY_WORKER_DIED; i++) {
        if (llmgw_json_is(value, llmgw_settled_by_name(i))) {
            *settled_by = i;
            return 0;
        }
    }

    return -1;
}


static int
read_value(const read_member_t *member, llmgw_json_t value, read_t *read)
{
    void  *field = (char *) read + member->offset;

    switch (member->kind) {
    case READ_TEXT:
        return read_text(value, field, member->size);
    case READ_NUMBER:
        return llmgw_json_uint(value, LLMGW_USAGE_NUMBER_MAX, field);
    case READ_TIME:
        return read_time(value, field);
    case READ_SECONDS:
        return read_seconds(value, field);
    case READ_REPLICAS:
        return read_replicas(value, field);
    default:
        return read_settled_by(value, field);
    }
}


/* Reads the members of a record.  NULL, or what is wrong. */
static const char *
read_object(llmgw_json_t object, read_t *read)
{
    uint32_t            seen;
    size_t              i;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    seen = 0;
    items = llmgw_json_members(object);

    while (llmgw_json_next(&items, &item)) {

        for (i = 0; i < READ_MEMBERS; i++) {
            if (llmgw_json_is(item.key, read_members[i].name)) {
                break;
            }
        }

        if (i == READ_MEMBERS) {
            continue;
        }

        if (seen & (1u << i)) {
            return "a member is given twice";
        }

        if (read_value(&read_members[i], item.value, read) != 0) {
            return "a member has no valid value";
        }

        seen |= 1u << i;
    }

    if (seen != READ_ALL) {
        return "a member is missing";
    }

    if (read->usage.n == 0
        || strspn(read->source.birth, "0123456789abcdef")
           != LLMGW_USAGE_BIRTH_BYTES - 1)
    {
        return "\"n\" or \"birth\" is not valid";
    }

    return NULL;
}


int
llmgw_usage_read(const char *line, size_t len, llmgw_usage_source_t *source,
    llmgw_usage_t *usage, const char **why)
{
    read_t              read;
    llmgw_json_t        object;
    llmgw_json_error_t  error;

    if (len >= LLMGW_USAGE_LINE_BYTES) {
        *why = "the line is too long";
        return -1;
    }

    if (llmgw_json_check_strict(line, len, &object, &error) != 0
        || object.kind != LLMGW_JSON_OBJECT)
    {
        *why = "it is no JSON object";
        return -1;
    }

    memset(&read, 0, sizeof(read));
    *why = read_object(object, &read);

    if (*why != NULL) {
        return -1;
    }

    *source = read.source;
    *usage = read.usage;

    return 0;
}
