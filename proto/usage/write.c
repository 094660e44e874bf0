
/* Writes usage records.  record.h has the format. */

#include <stdio.h>
#include <string.h>

#include "proto/json/write.h"
#include "proto/date.h"
#include "proto/usage/record.h"
#include "proto/usage/usage_inner.h"
#include "proto/utf8.h"


#define BIRTH_TIME_CHARS  12

/*
 * Most bytes of a text: quotes and backslashes alone are escaped, each as two
 * bytes.
 */
#define TEXT_MAX(bytes)  (2 * ((bytes) - 1))

/* Most bytes of member names, punctuation and numbers together. */
#define FRAME_MAX  640

_Static_assert(FRAME_MAX + TEXT_MAX(sizeof(llmgw_usage_source_t))
               + TEXT_MAX(LLMGW_KEY_NAME_BYTES + LLMGW_USAGE_TENANT_BYTES
                          + LLMGW_USAGE_CLASS_BYTES
                          + 2 * LLMGW_USAGE_MODEL_BYTES
                          + 2 * LLMGW_USAGE_REPLICAS_BYTES
                          + LLMGW_USAGE_OUTCOME_BYTES
                          + LLMGW_USAGE_REQUEST_BYTES)
               <= LLMGW_USAGE_LINE_BYTES, "a record may not fit its line");


void
llmgw_usage_birth(char birth[LLMGW_USAGE_BIRTH_BYTES], uint64_t unix_ms,
    const uint8_t chance[LLMGW_USAGE_CHANCE_BYTES], const char *above)
{
    char                last[BIRTH_TIME_CHARS + 1];
    size_t              i;
    unsigned long long  made;

    snprintf(last, sizeof(last), "%.*s", BIRTH_TIME_CHARS, above);

    if (sscanf(last, "%llx", &made) == 1 && unix_ms <= made) {
        unix_ms = made + 1;
    }

    snprintf(birth, LLMGW_USAGE_BIRTH_BYTES, "%012llx",
             (unsigned long long) unix_ms & 0xffffffffffffull);

    for (i = 0; i < LLMGW_USAGE_CHANCE_BYTES; i++) {
        snprintf(birth + BIRTH_TIME_CHARS + 2 * i, 3, "%02x", chance[i]);
    }
}


void
llmgw_usage_text(char *field, size_t size, const void *text, size_t len)
{
    const uint8_t  *bytes = text;

    if (len >= size) {
        len = size - 1;

        while (len > 0 && (bytes[len] & 0xc0) == 0x80) {
            len--;                      /* do not cut within a character */
        }
    }

    if (len > 0) {
        memcpy(field, text, len);
    }

    field[len] = '\0';
}


int
llmgw_usage_name_is_valid(const void *name, size_t len)
{
    size_t       n;
    const char  *at = name;

    if (len == 0 || len >= LLMGW_KEY_NAME_BYTES) {
        return 0;
    }

    for ( /* void */ ; len > 0; at += n, len -= n) {
        n = llmgw_utf8_shown(at, len);

        if (n == 0) {
            return 0;
        }
    }

    return 1;
}


void
llmgw_usage_replica(llmgw_usage_t *usage, const char *id, size_t len)
{
    size_t       used;
    const char  *last;

    used = strlen(usage->replicas);
    last = strrchr(usage->replicas, ' ');
    last = last ? last + 1 : usage->replicas;

    if (len == 0 || used + 1 + len >= sizeof(usage->replicas)
        || (strlen(last) == len && memcmp(last, id, len) == 0))
    {
        return;
    }

    /*
     * another process may read the text when this one has died at any point, so
     * it has a NUL at each moment
     */

    memcpy(usage->replicas + used + (used > 0), id, len);
    usage->replicas[used + (used > 0) + len] = '\0';

    if (used > 0) {
        usage->replicas[used] = ' ';
    }
}


const char *
llmgw_settled_by_name(llmgw_settled_by_t settled_by)
{
    switch (settled_by) {
    case LLMGW_SETTLED_BY_ENGINE:
        return "engine";
    case LLMGW_SETTLED_BY_COUNT:
        return "count";
    default:
        return "worker_died";
    }
}


/* 1: the character is written as it is, as nearly all bytes of a record are. */
static int
usage_is_plain(char c)
{
    return c >= ' ' && c < 0x7f && c != '"' && c != '\\';
}


/*
 * A process that was killed while it wrote may have left no NUL, so `size`
 * bounds the text.
 */
char *
usage_escape(char *p, const char *text, size_t size)
{
    size_t       len;
    const char  *end;

    end = text + strnlen(text, size - 1);

    while (text < end) {

        if (usage_is_plain(*text)) {
            *p++ = *text++;
            continue;
        }

        len = llmgw_utf8_shown(text, (size_t) (end - text));

        if (len == 0) {
            *p++ = '?';
            text++;
            continue;
        }

        p = llmgw_json_escape(p, text, len);
        text += len;
    }

    return p;
}


/* A member: its name is a constant. */
#define write_text(p, name, text)                                             \
    write_text_value(llmgw_json_literal(p, "\"" name "\":\""), text,           \
                     sizeof(text))
#define write_number(p, name, number)                                         \
    write_number_value(llmgw_json_literal(p, "\"" name "\":"), number)


static char *
write_text_value(char *p, const char *text, size_t size)
{
    p = usage_escape(p, text, size);

    return llmgw_json_literal(p, "\",");
}


static char *
write_number_value(char *p, uint64_t number)
{
    p = llmgw_json_number(p, (int64_t) (number > LLMGW_USAGE_NUMBER_MAX
                                        ? LLMGW_USAGE_NUMBER_MAX : number));
    *p++ = ',';

    return p;
}


static char *
write_replicas(char *p, const char *replicas)
{
    size_t       i, len, end;
    const char  *from;

    p = llmgw_json_literal(p, "\"replicas\":[");
    end = strnlen(replicas, LLMGW_USAGE_REPLICAS_BYTES - 1);

    for (i = 0; i < end; i += len + 1) {
        from = replicas + i;
        len = 0;

        while (i + len < end && from[len] != ' ') {
            len++;
        }

        p = llmgw_json_raw(p, i > 0 ? ",\"" : "\"", 1 + (i > 0));
        p = usage_escape(p, from, len + 1);
        *p++ = '"';
    }

    return llmgw_json_literal(p, "],");
}


size_t
llmgw_usage_write(char line[LLMGW_USAGE_LINE_BYTES],
    const llmgw_usage_source_t *source, const llmgw_usage_t *usage)
{
    char        *p, date[LLMGW_DATE_BYTES];
    uint64_t     ms;
    const char  *name;

    llmgw_date_write(date, usage->ended_ms);
    ms = usage->took_ms > LLMGW_USAGE_NUMBER_MAX ? LLMGW_USAGE_NUMBER_MAX
                                                 : usage->took_ms;

    p = line;
    *p++ = '{';
    p = write_text(p, "time", date);
    p = write_text(p, "gateway", source->gateway);
    p = write_text(p, "birth", source->birth);
    p = write_number(p, "n", usage->n);
    p = write_text(p, "request_id", usage->request_id);
    p = write_text(p, "key", usage->key);
    p = write_text(p, "tenant", usage->tenant);
    p = write_text(p, "class", usage->slo_class);
    p = write_text(p, "model", usage->model);
    p = write_text(p, "served_model", usage->served);
    p = write_replicas(p, usage->replicas);
    p = write_number(p, "prompt_tokens", usage->prompt);
    p = write_number(p, "completion_tokens", usage->completion);
    p = write_number(p, "cached_tokens", usage->cached);
    p = write_number(p, "reasoning_tokens", usage->reasoning);
    p = write_number(p, "wasted_tokens", usage->wasted);
    p = write_text(p, "outcome", usage->outcome);

    p = llmgw_json_literal(p, "\"seconds\":");
    p = llmgw_json_number(p, (int64_t) (ms / 1000));
    *p++ = '.';
    *p++ = (char) ('0' + ms / 100 % 10);
    *p++ = (char) ('0' + ms / 10 % 10);
    *p++ = (char) ('0' + ms % 10);
    p = llmgw_json_literal(p, ",\"settled_by\":\"");
    name = llmgw_settled_by_name(usage->settled_by);
    p = llmgw_json_raw(p, name, strlen(name));
    p = llmgw_json_literal(p, "\"}\n");

    return (size_t) (p - line);
}
