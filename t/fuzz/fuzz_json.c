
/*
 * Any text: the check and the walk of proto/json/ against jansson.
 *
 * Both accept the same texts, except where they differ by design:
 *
 *   - jansson holds numbers as doubles, and refuses one beyond their range;
 *   - jansson refuses NUL in a key, since its keys are C strings;
 *   - jansson passes over a NUL behind a number or a word;
 *   - ours refuses more than LLMGW_JSON_MAX_DEPTH levels, jansson more than
 *     2048;
 *   - half a surrogate pair is refused by jansson and by the strict check, and
 *     accepted by the lenient one.
 *
 * Scalars are values for both (JSON_DECODE_ANY), NUL may stand in strings
 * (JSON_ALLOW_NUL), and of a key that comes twice the last one counts.
 *
 * In a text that both accept, the walk finds the values that jansson holds.
 *
 * The scan completes each object and array that the check accepts, unless a
 * number is too long for it, and reports the same wherever the text is cut.
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "proto/json/check.h"
#include "proto/json/scan.h"
#include "proto/json/text.h"


#define PIECE_BYTES  64


int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);


/* The text as jansson reads it; NULL if it is refused, with *why set. */
static json_t *
load(const uint8_t *text, size_t len, enum json_error_code *why)
{
    json_t        *json;
    json_error_t   error;

    json = json_loadb((const char *) text, len, JSON_ALLOW_NUL
                      | JSON_DECODE_INT_AS_REAL | JSON_DECODE_ANY, &error);
    *why = json ? json_error_unknown : json_error_code(&error);

    return json;
}


static void
compare_string(llmgw_json_t value, const char *text, size_t len)
{
    size_t          n;
    uint8_t         piece[PIECE_BYTES];
    const uint8_t  *from;

    for (from = NULL; (n = llmgw_json_text(&value, &from, piece,
                                           sizeof(piece))) > 0;
         text += n, len -= n)
    {
        assert(n <= len && memcmp(piece, text, n) == 0);
    }

    assert(len == 0);
}


static void
compare_number(llmgw_json_t value, double number)
{
    char      copy[64];
    size_t    len;
    uint64_t  n;

    len = llmgw_json_bytes(value);

    if (len >= sizeof(copy)) {
        return;
    }

    memcpy(copy, value.begin, len);
    copy[len] = '\0';
    assert(strtod(copy, NULL) == number);

    if (llmgw_json_uint(value, UINT64_MAX, &n) == 0) {
        assert((double) n == number);
    }
}


static void compare(llmgw_json_t value, json_t *json);


static void
compare_items(llmgw_json_t value, json_t *json)
{
    size_t               n;
    json_t              *member;
    const char          *key;
    llmgw_json_item_t    item;
    llmgw_json_items_t   items;

    n = 0;

    for (items = llmgw_json_elements(value); llmgw_json_next(&items, &item);
         n++)
    {
        compare(item.value, json_array_get(json, n));
    }

    assert(n == json_array_size(json));

    json_object_foreach(json, key, member) {
        compare(llmgw_json_member(value, key), member);
    }

    for (items = llmgw_json_members(value); llmgw_json_next(&items, &item);
         n++) { /* void */ }

    assert(n >= json_array_size(json) + json_object_size(json));
    assert(llmgw_json_is_empty(value) == (n == 0));
}


static void
compare(llmgw_json_t value, json_t *json)
{
    assert(json != NULL);

    switch (value.kind) {

    case LLMGW_JSON_OBJECT:
    case LLMGW_JSON_ARRAY:
        assert(json_typeof(json) == (value.kind == LLMGW_JSON_OBJECT
                                     ? JSON_OBJECT : JSON_ARRAY));
        compare_items(value, json);
        break;

    case LLMGW_JSON_STRING:
        assert(json_is_string(json));
        compare_string(value, json_string_value(json),
                       json_string_length(json));
        break;

    case LLMGW_JSON_NUMBER:
        assert(json_is_real(json));
        compare_number(value, json_real_value(json));
        break;

    case LLMGW_JSON_TRUE:
        assert(json_is_true(json));
        break;

    case LLMGW_JSON_FALSE:
        assert(json_is_false(json));
        break;

    default:
        assert(value.kind == LLMGW_JSON_NULL && json_is_null(json));
    }
}


static void
on_value(void *arg, const char *path, llmgw_json_t value)
{
    uint64_t      *sum = arg;
    llmgw_json_t   same;

    assert(strlen(path) < LLMGW_JSON_SCAN_PATH);
    *sum = *sum * 31 + strlen(path) + llmgw_json_bytes(value);

    /* cut strings may end within a character or an escape */

    assert(value.kind == LLMGW_JSON_STRING
           || value.kind == LLMGW_JSON_NUMBER
           || llmgw_json_check(value.begin, llmgw_json_bytes(value), &same)
              == 0);
}


static int
scan(const uint8_t *text, size_t len, size_t cut, uint64_t *sum)
{
    llmgw_json_scan_t  s;

    *sum = 0;
    llmgw_json_scan_init(&s, on_value, sum);
    (void) llmgw_json_scan(&s, text, cut);

    return llmgw_json_scan(&s, text + cut, len - cut);
}


static int
has_long_number(const uint8_t *text, size_t len)
{
    size_t  i, n;

    for (i = 0, n = 0; i < len && n < LLMGW_JSON_SCAN_TEXT; i++) {
        n = strchr("+-.0123456789eE", text[i]) && text[i] ? n + 1 : 0;
    }

    return n == LLMGW_JSON_SCAN_TEXT;
}


static void
scan_says_the_same(const uint8_t *text, size_t len, int is_json)
{
    int       rc;
    uint64_t  sum, same;

    rc = scan(text, len, 0, &sum);
    assert(rc == scan(text, len, len * 5 / 7, &same) && sum == same);
    assert(rc == 1 || !is_json || has_long_number(text, len));
}


/* jansson refused it for a reason other than its own limits. */
static int
is_refused(enum json_error_code why)
{
    return why != json_error_numeric_overflow
           && why != json_error_null_byte_in_key;
}


int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    int                    rc, strict;
    json_t                *json;
    uint8_t               *text;
    llmgw_json_t           value, same;
    llmgw_json_error_t     error;
    enum json_error_code   why;

    text = malloc(len + (len == 0));        /* so that its end is guarded */
    assert(text != NULL);
    memcpy(text, data, len);

    json = load(text, len, &why);
    rc = llmgw_json_check(text, len, &value);
    strict = llmgw_json_check_strict(text, len, &same, &error);

    if (strict == 0) {
        assert(rc == 0 && value.begin == same.begin && value.end == same.end);
        assert(json != NULL || !is_refused(why));

    } else {
        assert(error.at <= len && error.reason[0] != '\0');
        assert(rc != 0 || strcmp(error.reason, "half a surrogate pair") == 0);
        assert(json == NULL || strncmp(error.reason, "nested", 6) == 0
               || memchr(text, '\0', len));
    }

    if (strict == 0 && json != NULL) {
        compare(value, json);
    }

    scan_says_the_same(text, len, rc == 0 && (value.kind == LLMGW_JSON_OBJECT
                                              || value.kind
                                                 == LLMGW_JSON_ARRAY));

    json_decref(json);
    free(text);

    return 0;
}
