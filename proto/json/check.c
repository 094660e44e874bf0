
#include "proto/json/check.h"
#include "proto/json/json_inner.h"
#include "proto/json/text.h"
#include "proto/utf8.h"


#define STRINGIFY(n)   #n
#define NUMERAL(n)     STRINGIFY(n)


typedef struct {
    const uint8_t  *end;
    int             is_strict;
    const uint8_t  *at;             /* position of the error */
    const char     *reason;
} check_t;


/* Sets the error: at the end of the text it is always "unexpected end". */
static const uint8_t *
check_fail(check_t *c, const uint8_t *at, const char *reason)
{
    c->at = at;
    c->reason = at == c->end ? "unexpected end" : reason;

    return NULL;
}


static const uint8_t *
check_space(const check_t *c, const uint8_t *p)
{
    while (p < c->end
           && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
    {
        p++;
    }

    return p;
}


/* These check_ functions return the end of the checked part, or NULL. */
static const uint8_t *
check_escape(check_t *c, const uint8_t *p)
{
    size_t    n;
    uint32_t  character;

    if (c->end - p < 2) {
        return check_fail(c, c->end, NULL);
    }

    if (p[1] == 'u' && json_unit(p, c->end) >= 0) {
        n = c->is_strict ? llmgw_json_unicode(p, c->end, &character)
                         : JSON_UNIT_BYTES;

        return n ? p + n : check_fail(c, p, "half a surrogate pair");
    }

    if (memchr("\"\\/bfnrt", p[1], 8) == NULL) {
        return check_fail(c, p, "invalid escape in a string");
    }

    return p + 2;
}


static const uint8_t *
check_string(check_t *c, const uint8_t *p)
{
    p = json_special(p + 1, c->end);

    while (p < c->end && *p != '"') {

        if (*p != '\\') {
            return check_fail(c, p, "control character in a string");
        }

        p = check_escape(c, p);

        if (p == NULL) {
            return NULL;
        }

        p = json_special(p, c->end);
    }

    return p < c->end ? p + 1 : check_fail(c, p, NULL);
}


static const uint8_t *
check_digits(check_t *c, const uint8_t *p)
{
    const uint8_t  *first;

    first = p;

    while (p < c->end && *p >= '0' && *p <= '9') {
        p++;
    }

    return p > first ? p : check_fail(c, p, "expected a digit");
}


static const uint8_t *
check_number(check_t *c, const uint8_t *p)
{
    p += *p == '-';

    if (p < c->end && *p == '0') {
        p++;

    } else if ((p = check_digits(c, p)) == NULL) {
        return NULL;
    }

    if (p < c->end && *p == '.') {
        p = check_digits(c, p + 1);

        if (p == NULL) {
            return NULL;
        }
    }

    if (p < c->end && (*p == 'e' || *p == 'E')) {
        p++;
        p += p < c->end && (*p == '+' || *p == '-');
        p = check_digits(c, p);
    }

    return p;
}


static const uint8_t *
check_scalar(check_t *c, const uint8_t *p)
{
    size_t                    i, len;

    static const char *const  words[] = { "true", "false", "null" };

    if (*p == '"') {
        return check_string(c, p);
    }

    if (*p == '-' || (*p >= '0' && *p <= '9')) {
        return check_number(c, p);
    }

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        len = strlen(words[i]);

        if ((size_t) (c->end - p) >= len && memcmp(p, words[i], len) == 0) {
            return p + len;
        }
    }

    return check_fail(c, p, "expected a value");
}


/* Checks a member's key and the colon after it. */
static const uint8_t *
check_key(check_t *c, const uint8_t *p)
{
    if (p == c->end || *p != '"') {
        return check_fail(c, p, "expected a key in double quotes");
    }

    p = check_string(c, p);

    if (p == NULL) {
        return NULL;
    }

    p = check_space(c, p);

    if (p == c->end || *p != ':') {
        return check_fail(c, p, "expected ':' after a key");
    }

    return check_space(c, p + 1);
}


/*
 * Checks what comes after a value: closes the containers that end here, and
 * goes to the next value.  If *depth is 0 afterwards, the text's value is
 * complete.
 */
static const uint8_t *
check_behind(check_t *c, const uint8_t *p, const char *open, int *depth)
{
    int  is_object;

    while (*depth > 0) {
        p = check_space(c, p);
        is_object = open[*depth - 1] == '{';

        if (p < c->end && *p == ',') {
            p = check_space(c, p + 1);
            return is_object ? check_key(c, p) : p;
        }

        if (p == c->end || *p != (is_object ? '}' : ']')) {
            return check_fail(c, p, is_object ? "expected ',' or '}'"
                                              : "expected ',' or ']'");
        }

        p++;
        (*depth)--;
    }

    return p;
}


static const uint8_t *
check_value(check_t *c, const uint8_t *p)
{
    int   depth;
    char  open[LLMGW_JSON_MAX_DEPTH];

    depth = 0;

    do {
        if (p == c->end) {
            return check_fail(c, p, NULL);
        }

        if (*p == '{' || *p == '[') {
            if (depth == LLMGW_JSON_MAX_DEPTH) {
                return check_fail(c, p, "nested more than "
                                  NUMERAL(LLMGW_JSON_MAX_DEPTH)
                                  " levels deep");
            }

            open[depth++] = *p;
            p = check_space(c, p + 1);

            if (p == c->end || (*p != '}' && *p != ']')) {
                p = open[depth - 1] == '{' ? check_key(c, p) : p;
                continue;
            }

        } else {
            p = check_scalar(c, p);
        }

        if (p != NULL) {
            p = check_behind(c, p, open, &depth);
        }

    } while (p != NULL && depth > 0);

    return p;
}


/* An empty text may be NULL, and NULL must not get an offset. */
static const void *
check_begin(const void *text, size_t len)
{
    return len ? text : "";
}


static int
check_text(check_t *c, const void *text, size_t len, llmgw_json_t *value)
{
    size_t          valid;
    const uint8_t  *p = text, *behind;

    c->end = p + len;

    if (!llmgw_utf8_is_valid(text, len)) {
        valid = llmgw_utf8_prefix(text, len);
        (void) check_fail(c, p + valid, "invalid UTF-8");
        return -1;
    }

    p = check_space(c, p);
    behind = check_value(c, p);

    if (behind == NULL) {
        return -1;
    }

    if (check_space(c, behind) != c->end) {
        (void) check_fail(c, check_space(c, behind),
                          "unexpected text after the value");
        return -1;
    }

    *value = llmgw_json_at(p, behind);

    return 0;
}


int
llmgw_json_check(const void *text, size_t len, llmgw_json_t *value)
{
    check_t  c;

    c.is_strict = 0;

    return check_text(&c, check_begin(text, len), len, value);
}


int
llmgw_json_check_strict(const void *text, size_t len, llmgw_json_t *value,
    llmgw_json_error_t *error)
{
    check_t  c;

    c.is_strict = 1;
    text = check_begin(text, len);

    if (check_text(&c, text, len, value) == 0) {
        return 0;
    }

    error->reason = c.reason;
    error->at = (size_t) (c.at - (const uint8_t *) text);

    return -1;
}


int
llmgw_json_check_string(const void *begin, const void *end,
    llmgw_json_t *string)
{
    check_t         c;
    const uint8_t  *p = begin, *behind;

    c.end = end;
    c.is_strict = 0;
    behind = p < c.end && *p == '"' ? check_string(&c, p) : NULL;

    if (behind == NULL || !llmgw_utf8_is_valid(p, (size_t) (behind - p))) {
        return -1;
    }

    *string = llmgw_json_at(p, behind);

    return 0;
}
