
#include <endian.h>
#include <string.h>

#include "proto/utf8.h"
#include "replica/engine/dialect/value.h"


#define MAX_NUMBER_BYTES  20        /* of 2^64 */
#define EIGHT(c)          (0x0101010101010101ull * (c))


static const char *
skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }

    return p;
}


static int
is_hex(const char *p, const char *end)
{
    int  i;

    for (i = 0; i < 4; i++, p++) {
        if (p == end || ((*p < '0' || *p > '9') && (*p < 'a' || *p > 'f')
                         && (*p < 'A' || *p > 'F')))
        {
            return 0;
        }
    }

    return 1;
}


/*
 * A byte of `flags` has its high bit if that byte is not plain; those behind
 * the first such byte may have it in vain.
 */
static uint64_t
flags_of(uint64_t w)
{
    uint64_t  quote, slash;

    quote = w ^ EIGHT('"');
    slash = w ^ EIGHT('\\');

    return (((quote - EIGHT(1)) & ~quote) | ((slash - EIGHT(1)) & ~slash)
            | (w - EIGHT(0x20))) & ~w & EIGHT(0x80);
}


/* To the first byte that is not plain in a string: eight at a time. */
static const char *
skip_plain(const char *p, const char *end)
{
    uint64_t  w, flags;

    for ( /* void */ ; end - p >= 8; p += 8) {
        memcpy(&w, p, 8);
        flags = flags_of(le64toh(w));

        if (flags != 0) {
            return p + __builtin_ctzll(flags) / 8;
        }
    }

    while (p < end && *p != '"' && *p != '\\'
           && (unsigned char) *p >= 0x20)
    {
        p++;
    }

    return p;
}


/* These check_ functions return behind what they checked, or NULL. */
static const char *
check_string(const char *p, const char *end)
{
    for (p = skip_plain(p + 1, end); p < end; p = skip_plain(p + 1, end)) {
        if (*p == '"') {
            return p + 1;
        }

        if (*p != '\\') {
            return NULL;
        }

        if (++p == end || *p == '\0' || strchr("\"\\/bfnrtu", *p) == NULL) {
            return NULL;
        }

        if (*p == 'u' && !is_hex(p + 1, end)) {
            return NULL;
        }
    }

    return NULL;
}


static const char *
check_digits(const char *p, const char *end)
{
    const char  *first;

    first = p;

    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }

    return p == first ? NULL : p;
}


static const char *
check_number(const char *p, const char *end)
{
    p += *p == '-';

    if (p < end && *p == '0') {
        p++;

    } else if ((p = check_digits(p, end)) == NULL) {
        return NULL;
    }

    if (p < end && *p == '.') {
        p = check_digits(p + 1, end);

        if (p == NULL) {
            return NULL;
        }
    }

    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < end && (*p == '+' || *p == '-');
        p = check_digits(p, end);
    }

    return p;
}


static const char *
check_scalar(const char *p, const char *end)
{
    size_t             i, len;

    static const char *const  words[] = { "true", "false", "null" };

    if (*p == '"') {
        return check_string(p, end);
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        len = strlen(words[i]);

        if ((size_t) (end - p) >= len && memcmp(p, words[i], len) == 0) {
            return p + len;
        }
    }

    return check_number(p, end);
}


/* A member's key and colon. */
static const char *
check_key(const char *p, const char *end)
{
    if (p == end || *p != '"' || (p = check_string(p, end)) == NULL) {
        return NULL;
    }

    p = skip_space(p, end);

    return p < end && *p == ':' ? skip_space(p + 1, end) : NULL;
}


/*
 * Behind a value: closes what ends here, and goes to the next value.  NULL:
 * wrong.  With *depth 0 the text's value is complete.
 */
static const char *
check_behind(const char *p, const char *end, const char *open, int *depth)
{
    while (*depth > 0) {
        p = skip_space(p, end);

        if (p == end) {
            return NULL;
        }

        if (*p == ',') {
            p = skip_space(p + 1, end);
            return open[*depth - 1] == '{' ? check_key(p, end) : p;
        }

        if (*p != (open[*depth - 1] == '{' ? '}' : ']')) {
            return NULL;
        }

        p++;
        (*depth)--;
    }

    return p;
}


static const char *
check_value(const char *p, const char *end)
{
    int   depth;
    char  open[VALUE_MAX_DEPTH];

    depth = 0;

    for ( ;; ) {
        if (p == NULL || p == end) {
            return NULL;
        }

        if (*p == '{' || *p == '[') {
            if (depth == VALUE_MAX_DEPTH) {
                return NULL;
            }

            open[depth++] = *p;
            p = skip_space(p + 1, end);

            if (p == end || (*p != '}' && *p != ']')) {
                p = open[depth - 1] == '{' ? check_key(p, end) : p;
                continue;
            }

        } else {
            p = check_scalar(p, end);
        }

        if (p != NULL) {
            p = check_behind(p, end, open, &depth);
        }

        if (depth == 0) {
            return p;
        }
    }
}


const char *
value_string_end(const char *p, const char *end)
{
    const char  *behind;

    behind = p < end && *p == '"' ? check_string(p, end) : NULL;

    return behind != NULL && llmgw_utf8_is_valid(p, (size_t) (behind - p))
           ? behind : NULL;
}


int
value_check(const char *text, size_t len, value_t *value)
{
    const char  *p, *end, *behind;

    if (len == 0 || !llmgw_utf8_is_valid(text, len)) {
        return -1;
    }

    end = text + len;
    p = skip_space(text, end);

    behind = check_value(p, end);

    if (behind == NULL || skip_space(behind, end) != end) {
        return -1;
    }

    value->p = p;
    value->end = behind;

    return 0;
}


/* Of checked text. */
static const char *
skip_string(const char *p, const char *end)
{
    for (p = skip_plain(p + 1, end); *p != '"'; ) {
        p = skip_plain(p + 2, end);
    }

    return p + 1;
}


/* Of checked text: to behind a value. */
static const char *
skip_value(const char *p, const char *end)
{
    int  depth;

    depth = 0;

    do {
        if (*p == '"') {
            p = skip_string(p, end);

        } else if (*p == '{' || *p == '[') {
            depth++;
            p++;

        } else if (*p == '}' || *p == ']') {
            depth--;
            p++;

        } else if (depth > 0) {
            p++;

        } else {
            while (p < end && *p > ' ' && *p != ',' && *p != ']' && *p != '}')
            {
                p++;
            }
        }
    } while (depth > 0);

    return p;
}


int
value_is_object(value_t value)
{
    return value.p != NULL && *value.p == '{';
}


int
value_is_array(value_t value)
{
    return value.p != NULL && *value.p == '[';
}


int
value_is_string(value_t value)
{
    return value.p != NULL && *value.p == '"';
}


int
value_is_null(value_t value)
{
    return value.p == NULL || *value.p == 'n';
}


int
value_is_true(value_t value)
{
    return value.p != NULL && *value.p == 't';
}


int
value_is_empty(value_t value)
{
    if (value_is_null(value)) {
        return 1;
    }

    return (*value.p == '"' || *value.p == '{' || *value.p == '[')
           && skip_space(value.p + 1, value.end) == value.end - 1;
}


/* To the next element's begin; NULL: there is none. */
static const char *
next(value_t container, const value_t *at)
{
    const char  *p;

    if (at->p == NULL) {
        p = skip_space(container.p + 1, container.end);
        return p == container.end - 1 ? NULL : p;
    }

    p = skip_space(at->end, container.end);

    return *p == ',' ? skip_space(p + 1, container.end) : NULL;
}


int
value_item(value_t container, value_t *at, value_t *value)
{
    const char  *p;

    p = value_is_array(container) ? next(container, at) : NULL;

    if (p == NULL) {
        return 0;
    }

    value->p = p;
    value->end = skip_value(p, container.end);
    *at = *value;

    return 1;
}


int
value_member(value_t container, value_t *at, value_t *key, value_t *value)
{
    const char  *p;

    p = value_is_object(container) ? next(container, at) : NULL;

    if (p == NULL) {
        return 0;
    }

    key->p = p;
    key->end = skip_string(p, container.end);
    p = skip_space(key->end, container.end);
    p = skip_space(p + 1, container.end);

    value->p = p;
    value->end = skip_value(p, container.end);
    *at = *value;

    return 1;
}


value_t
value_find(value_t object, const char *name)
{
    value_t  at = { NULL, NULL }, found = { NULL, NULL }, key, value;

    while (value_member(object, &at, &key, &value)) {
        if (value_is(key, name)) {
            found = value;
        }
    }

    return found;
}


int
value_uint(value_t value, uint64_t max, uint64_t *number)
{
    uint64_t     n;
    const char  *p;

    if (value.p == NULL || value.end - value.p > MAX_NUMBER_BYTES) {
        return -1;
    }

    n = 0;

    for (p = value.p; p < value.end; p++) {
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
