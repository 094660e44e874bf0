
/*
 * Random texts, most of them nearly JSON: jansson gives the same answer.
 * t/fuzz/fuzz_json.c searches for longer.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <jansson.h>

#include "proto/json/check.h"


#define TEXTS       200000
#define TEXT_BYTES  512
#define MAX_DEPTH   6


typedef struct {
    char      bytes[TEXT_BYTES];
    size_t    len;
    uint64_t  random;
} text_t;


static uint32_t
choose(text_t *t, uint32_t n)
{
    t->random = t->random * 6364136223846793005ull + 1442695040888963407ull;

    return (uint32_t) (t->random >> 33) % n;
}


static void
add(text_t *t, const char *bytes)
{
    size_t  len;

    len = strlen(bytes);

    if (len <= TEXT_BYTES - 1 - t->len) {
        memcpy(t->bytes + t->len, bytes, len);
        t->len += len;
    }
}


static void
add_scalar(text_t *t)
{
    static const char *const  scalars[] = {
        "0", "-1", "12.50", "1e400", "-0.1E+7", "true", "false", "null",
        "\"\"", "\"a\"", "\"\\u00e9\\n\\\\\\/\"", "\"\xc3\xa9\"",
        "123456789012345678901234567890", "\"a longer string, of 16 or more\""
    };

    add(t, scalars[choose(t, sizeof(scalars) / sizeof(scalars[0]))]);
}


static void
add_value(text_t *t, unsigned depth)
{
    uint32_t  i, n, is_object;

    if (depth == MAX_DEPTH || choose(t, 3) == 0) {
        add_scalar(t);
        return;
    }

    is_object = choose(t, 2);
    n = choose(t, 4);
    add(t, is_object ? "{" : "[");

    for (i = 0; i < n; i++) {
        add(t, i > 0 ? choose(t, 4) == 0 ? " ,\n" : "," : "");
        add(t, is_object ? choose(t, 4) == 0 ? "\"k\" : " : "\"key\":" : "");
        add_value(t, depth + 1);
    }

    add(t, is_object ? "}" : "]");
}


/* Replaces, removes or inserts up to three bytes. */
static void
spoil(text_t *t)
{
    size_t    at;
    uint32_t  n;

    static const char  bytes[] = "{}[]\",:\\ \n\t\v\f\r\x01\x7f/*#01-+.eEutrn";

    for (n = choose(t, 4); n > 0 && t->len > 1; n--) {
        at = choose(t, (uint32_t) t->len);

        switch (choose(t, 4)) {
        case 0:
            memmove(t->bytes + at, t->bytes + at + 1, t->len - at - 1);
            t->len--;
            break;

        case 1:
            t->len = at > 0 ? at : 1;
            break;

        default:
            t->bytes[at] = bytes[choose(t, sizeof(bytes))];
        }
    }
}


/* Returns -1 if jansson stopped at a number that it cannot hold. */
static int
jansson_takes(const text_t *t)
{
    json_t        *json;
    json_error_t   error;

    json = json_loadb(t->bytes, t->len, JSON_DECODE_ANY | JSON_ALLOW_NUL
                      | JSON_DECODE_INT_AS_REAL, &error);

    if (json == NULL) {
        return json_error_code(&error) == json_error_numeric_overflow ? -1 : 0;
    }

    json_decref(json);

    return 1;
}


static void
jansson_gives_the_same_answer(void **state)
{
    int                  is_json, is_taken;
    text_t               t;
    unsigned             i, taken;
    llmgw_json_t         value;
    llmgw_json_error_t   error;

    taken = 0;
    t.random = 1;

    for (i = 0; i < TEXTS; i++) {
        t.len = 0;
        add_value(&t, 0);
        spoil(&t);

        is_json = llmgw_json_check_strict(t.bytes, t.len, &value, &error) == 0;
        is_taken = jansson_takes(&t);

        /* jansson skips a NUL after a value */

        if (is_taken >= 0 && is_json != is_taken
            && (is_json || memchr(t.bytes, '\0', t.len) == NULL))
        {
            fail_msg("%s: %.*s", is_json ? "accepted" : "refused",
                     (int) t.len, t.bytes);
        }

        taken += is_json;
    }

    assert_in_range(taken, TEXTS / 10, TEXTS - TEXTS / 10);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(jansson_gives_the_same_answer)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
