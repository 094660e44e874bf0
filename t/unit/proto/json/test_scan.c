
/* Values by their paths, in a text that comes in pieces of any size. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/json/check.h"
#include "proto/json/scan.h"


typedef struct {
    llmgw_json_scan_t  scan;
    char               said[1024];      /* a line "path=value" for each value */
} scanned_t;


static void
on_value(void *arg, const char *path, llmgw_json_t value)
{
    size_t      len;
    scanned_t  *s = arg;

    len = strlen(s->said);
    snprintf(s->said + len, sizeof(s->said) - len, "%s=%.*s\n", path,
             (int) llmgw_json_bytes(value), (const char *) value.begin);
}


/* Feeds a copy of its own size, so that a sanitizer sees any read beyond it. */
static int
feed(scanned_t *s, const char *text, size_t len)
{
    int    rc;
    char  *copy;

    copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, text, len);
    rc = llmgw_json_scan(&s->scan, copy, len);
    free(copy);

    return rc;
}


static int
scan_cut(scanned_t *s, const char *text, size_t len, size_t cut)
{
    s->said[0] = '\0';
    llmgw_json_scan_init(&s->scan, on_value, s);
    feed(s, text, cut);

    return feed(s, text + cut, len - cut);
}


/* The result is the same if a text is cut at any byte, or comes
   byte by byte. */
static void
scanned(const char *text, int rc, const char *said)
{
    int        last;
    size_t     i, len;
    scanned_t  s;

    len = strlen(text);

    for (i = 0; i <= len; i++) {
        assert_int_equal(scan_cut(&s, text, len, i), rc);
        assert_string_equal(s.said, said);
    }

    s.said[0] = '\0';
    llmgw_json_scan_init(&s.scan, on_value, &s);

    for (i = 0, last = 0; i < len; i++) {
        last = feed(&s, text + i, 1);
    }

    assert_int_equal(last, rc);
    assert_string_equal(s.said, said);
}


static void
values_are_told_with_their_paths(void **state)
{
    scanned(" {\"a\" : 1 ,\"b\":{\"c\":\"x\\\"}\",\"d\":{\"e\":-2.5e3}},"
            "\"f\":null,\"g\":true,\"h\":false,\"\":0 }\n", 1,
            "a=1\nb.c=\"x\\\"}\"\nb.d.e=-2.5e3\nf=null\ng=true\nh=false\n"
            "=0\n");
    scanned("{}", 1, "");
    scanned("{\"a\":{},\"b\":[],\"c\":1}", 1, "c=1\n");
}


static void
what_stands_in_an_array_has_no_path(void **state)
{
    scanned("[{\"a\":1},2]", 1, "");
    scanned("{\"a\":[1,{\"b\":2},[{\"c\":3}]],\"d\":4}", 1, "d=4\n");
}


static void
keys_are_taken_as_they_are_written(void **state)
{
    scanned("{\"a.b\":1,\"a\\u0062\":2,\"a\":{\"b\":3},\"c\":4}", 1,
            "a.b=3\nc=4\n");
    scanned("{\"a\\\"b\":{\"c\":1},\"a\":2,\"a\":3}", 1, "a=2\na=3\n");
}


#define TEN  "0123456789"

static void
long_keys_and_deep_objects_have_no_path(void **state)
{
    scanned("{\"" TEN TEN TEN TEN TEN TEN "01\":1,"
            "\"" TEN TEN TEN TEN TEN TEN "012\":2}", 1,
            TEN TEN TEN TEN TEN TEN "01=1\n");

    /* A path of 127 bytes, and one of 128. */
    scanned("{\"" TEN TEN TEN TEN TEN TEN "01\":{"
            "\"" TEN TEN TEN TEN TEN TEN "01\":{\"a\":1,\"ab\":2}}}", 1,
            TEN TEN TEN TEN TEN TEN "01." TEN TEN TEN TEN TEN TEN "01.a=1\n");

    scanned("{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"a\":{\"b\":1,"
            "\"a\":{\"b\":2}}}}}}}},\"c\":3}", 1,
            "a.a.a.a.a.a.a.b=1\nc=3\n");
}


/* A string that is too long is cut; a number is an error, since a part of it
   would be another number. */
static void
long_strings_are_cut_and_long_numbers_are_wrong(void **state)
{
    scanned("{\"a\":\"" TEN TEN TEN TEN TEN TEN "01" TEN "\"}", 1,
            "a=\"" TEN TEN TEN TEN TEN TEN "01\"\n");
    scanned("{\"a\":1" TEN TEN TEN TEN TEN TEN "01}", 1,
            "a=1" TEN TEN TEN TEN TEN TEN "01\n");
    scanned("{\"a\":1" TEN TEN TEN TEN TEN TEN "012}", -1, "");
}


static void
behind_the_end_nothing_is_read(void **state)
{
    scanned("{\"a\":1}{\"b\":2}", 1, "a=1\n");
    scanned("{\"a\":1}]", 1, "a=1\n");
    scanned("{\"a\":x}{\"b\":2}", -1, "");
}


/* The strict check, too, refuses all these texts. */
static void
what_is_no_json_is_wrong_or_never_complete(void **state)
{
    int           rc;
    size_t        i, cut;
    scanned_t     s;
    llmgw_json_t  value;

    static const char *const  wrong[] = {
        "", " ", "{", "[", "{\"a\"", "{\"a\":", "{\"a\":1", "{\"a\":1,", "\"a",
        "}", "]", ",", ":", "{]", "[}", "{\"a\":1]", "[1}", "{,}", "[,]",
        "[1,]", "{\"a\":1,}", "{\"a\"}", "{\"a\",1}", "{\"a\":}", "{1:2}",
        "{a:1}", "[1 2]", "[1:2]", "[\"a\" \"b\"]", "{\"a\":1 \"b\":2}",
        "{\"a\"::1}", "[tru]", "[nulll]", "[truefalse]", "[+1]", "[.5]",
        "[\"\n\"]", "[\"\x1f\"]", "[DONE]", "[']", "<html>", "\xff", "[\xff]"
    };

    for (i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_not_equal(llmgw_json_check(wrong[i], strlen(wrong[i]),
                                              &value), 0);

        for (cut = 0; cut <= strlen(wrong[i]); cut++) {
            rc = scan_cut(&s, wrong[i], strlen(wrong[i]), cut);
            assert_int_not_equal(rc, 1);
        }
    }
}


static void
depth_has_a_limit(void **state)
{
    char       text[2 * LLMGW_JSON_MAX_DEPTH + 2];
    size_t     n;
    scanned_t  s;

    n = LLMGW_JSON_MAX_DEPTH;
    memset(text, '[', n);
    memset(text + n, ']', n);
    assert_int_equal(scan_cut(&s, text, 2 * n, 0), 1);

    text[n] = '[';
    memset(text + n + 1, ']', n + 1);
    assert_int_equal(scan_cut(&s, text, 2 * n + 2, 0), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(values_are_told_with_their_paths),
        cmocka_unit_test(what_stands_in_an_array_has_no_path),
        cmocka_unit_test(keys_are_taken_as_they_are_written),
        cmocka_unit_test(long_keys_and_deep_objects_have_no_path),
        cmocka_unit_test(long_strings_are_cut_and_long_numbers_are_wrong),
        cmocka_unit_test(behind_the_end_nothing_is_read),
        cmocka_unit_test(what_is_no_json_is_wrong_or_never_complete),
        cmocka_unit_test(depth_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
