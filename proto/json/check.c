
#include "proto/json/check.h"
#include "proto/json/json_inner.h"
#include "proto/utf8.h"


static const uint8_t *
check_space(const uint8_t *p, const uint8_t *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t')) {
        p++;
    }

    return p;
}


static int
check_is_hex(const uint8_t *p, const uint8_t *end)
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


/* These check_ functions return behind what they checked, or NULL. */
static const uint8_t *
check_string(const uint8_t *p, const uint8_t *end)
{
    for (p = json_special(p + 1, end); p < end; p = json_special(p + 1, end)) {
        if (*p == '"') {
            return p + 1;
        }

        if (*p != '\\') {
            return NULL;
        }

        if (++p == end || *p == '\0' || strchr("\"\\/bfnrtu", *p) == NULL) {
            return NULL;
        }

        if (*p == 'u' && !check_is_hex(p + 1, end)) {
            return NULL;
        }
    }

    return NULL;
}


static const uint8_t *
check_digits(const uint8_t *p, const uint8_t *end)
{
    const uint8_t  *first;

    first = p;

    while (p < end && *p >= '0' && *p <= '9') {
        p++;
    }

    return p == first ? NULL : p;
}


static const uint8_t *
check_number(const uint8_t *p, const uint8_t *end)
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


static const uint8_t *
check_scalar(const uint8_t *p, const uint8_t *end)
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
static const uint8_t *
check_key(const uint8_t *p, const uint8_t *end)
{
    if (p == end || *p != '"' || (p = check_string(p, end)) == NULL) {
        return NULL;
    }

    p = check_space(p, end);

    return p < end && *p == ':' ? check_space(p + 1, end) : NULL;
}


/*
 * Behind a value: closes what ends here, and goes to the next value.  NULL:
 * wrong.  With *depth 0 the text's value is complete.
 */
static const uint8_t *
check_behind(const uint8_t *p, const uint8_t *end, const char *open, int *depth)
{
    while (*depth > 0) {
        p = check_space(p, end);

        if (p == end) {
            return NULL;
        }

        if (*p == ',') {
            p = check_space(p + 1, end);
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


static const uint8_t *
check_value(const uint8_t *p, const uint8_t *end)
{
    int   depth;
    char  open[LLMGW_JSON_MAX_DEPTH];

    depth = 0;

    for ( ;; ) {
        if (p == NULL || p == end) {
            return NULL;
        }

        if (*p == '{' || *p == '[') {
            if (depth == LLMGW_JSON_MAX_DEPTH) {
                return NULL;
            }

            open[depth++] = *p;
            p = check_space(p + 1, end);

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


int
llmgw_json_check(const void *text, size_t len, llmgw_json_t *value)
{
    const uint8_t  *p, *end, *behind;

    if (len == 0 || !llmgw_utf8_is_valid(text, len)) {
        return -1;
    }

    p = text;
    end = p + len;
    p = check_space(p, end);
    behind = check_value(p, end);

    if (behind == NULL || check_space(behind, end) != end) {
        return -1;
    }

    *value = llmgw_json_at(p, behind);

    return 0;
}


int
llmgw_json_check_string(const void *begin, const void *end,
    llmgw_json_t *string)
{
    const uint8_t  *p = begin, *behind;

    behind = p < (const uint8_t *) end && *p == '"' ? check_string(p, end)
                                                    : NULL;

    if (behind == NULL || !llmgw_utf8_is_valid(p, (size_t) (behind - p))) {
        return -1;
    }

    *string = llmgw_json_at(p, behind);

    return 0;
}
