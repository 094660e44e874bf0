
#include "t/unit/replica/engine/dialect/played.h"


static int
is_json(const char *text)
{
    char     *copy;
    int       rc;
    size_t    len;
    value_t   value;

    len = strlen(text);
    copy = malloc(len == 0 ? 1 : len);
    assert_non_null(copy);
    memcpy(copy, text, len);
    rc = value_check(copy, len, &value);
    free(copy);

    return rc == 0;
}


static void
json_is_told_from_other_text(void **state)
{
    size_t                    i;

    static const char *const  good[] = {
        "{}", "[]", " 1 ", "-0.5e+10", "0", "true", "null", "\"\"",
        "\"\\u00e9\\n\\\"\"", "[1,2,[3,{\"a\":[]}]]", "{\"a\":1,\"a\":2}",
        "{ \"a\" : [ ] , \"b\" : \"12345678901234567890\" }", "1e400",
        "\"\\ud83d\"", "\"abcdefgh\\\\ijklmnop\""
    };
    static const char *const  bad[] = {
        "", " ", "{", "}", "[", "[1", "[1,", "[1,]", "[,1]", "{\"a\"}",
        "{\"a\":}", "{\"a\":1,}", "{a:1}", "{1:2}", "[1 2]", "[1]]", "01",
        "-", "1.", ".5", "1e", "+1", "tru", "nulll", "\"", "\"a", "\"\\\"",
        "\"\\x\"", "\"\\u12g4\"", "\"\\u123", "\"\\", "\"a\nb\"", "{\"a\" 1}",
        "[\"a\":1]", "{]", "[}", "\"\xff\"", "\"\xc3\"", "\"\xed\xa0\x80\"",
        "1 2", "NaN", "'a'", "\"aaaaaaaa\tbbbbbbbb\""
    };

    for (i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        assert_true(is_json(good[i]));
    }

    for (i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        if (is_json(bad[i])) {
            fail_msg("taken for JSON: %s", bad[i]);
        }
    }
}


static void
every_cut_of_json_is_bad(void **state)
{
    size_t                i;
    char                  text[200];

    static const char     whole[] =
        "{\"a\":[1,-2.5e3,true,null,\"x\\u00e9\\\"y\"],\"b\":{\"c\":{}}}";

    for (i = 0; i < sizeof(whole) - 1; i++) {
        memcpy(text, whole, i);
        text[i] = '\0';
        assert_false(is_json(text));
    }
}


static void
depth_has_a_limit(void **state)
{
    char    text[2 * (VALUE_MAX_DEPTH + 1) + 1];
    size_t  depth;

    for (depth = VALUE_MAX_DEPTH; depth <= VALUE_MAX_DEPTH + 1; depth++) {
        memset(text, '[', depth);
        memset(text + depth, ']', depth);
        text[2 * depth] = '\0';
        assert_int_equal(is_json(text), depth == VALUE_MAX_DEPTH);
    }
}


static void
members_and_items_are_found(void **state)
{
    value_t      at = { NULL, NULL }, object, key, value;
    uint64_t     n, sum;
    const char  *text = " { \"a\" : 1 , \"b\":[ 10 , 20,30 ],\"a\":2,"
                        "\"c\":{\"b\":\"}]\\\"\"} } ";

    assert_int_equal(value_check(text, strlen(text), &object), 0);
    assert_int_equal(value_uint(value_find(object, "a"), 9, &n), 0);
    assert_int_equal(n, 2);
    assert_null(value_find(object, "none").p);
    assert_null(value_find(value_find(object, "none"), "a").p);
    assert_true(value_is(value_find(value_find(object, "c"), "b"), "}]\\\""));

    for (sum = 0; value_item(value_find(object, "b"), &at, &value); sum += n) {
        assert_int_equal(value_uint(value, 30, &n), 0);
    }

    assert_int_equal(sum, 60);

    at.p = NULL;
    sum = 0;

    while (value_member(object, &at, &key, &value)) {
        sum++;
    }

    assert_int_equal(sum, 4);

    at.p = NULL;
    assert_false(value_item(object, &at, &value));
    assert_false(value_member(value_find(object, "b"), &at, &key, &value));
}


static void
numbers_have_limits(void **state)
{
    size_t    i;
    value_t   value;
    uint64_t  n;

    static const struct {
        const char  *text;
        uint64_t     max;
        int          rc;
    } cases[] = {
        { "4294967295", UINT32_MAX, 0 }, { "4294967296", UINT32_MAX, -1 },
        { "18446744073709551615", UINT64_MAX, 0 },
        { "18446744073709551616", UINT64_MAX, -1 },
        { "99999999999999999999999", UINT64_MAX, -1 },
        { "-1", 9, -1 }, { "1.0", 9, -1 }, { "1e3", 9999, -1 },
        { "\"1\"", 9, -1 }, { "null", 9, -1 }, { "0", 0, 0 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        value.p = cases[i].text;
        value.end = value.p + strlen(value.p);
        assert_int_equal(value_uint(value, cases[i].max, &n), cases[i].rc);
    }
}


static void
assert_text(const char *json, const char *text, size_t len)
{
    buf_t    buf = { NULL, 0, 0, 0 };
    value_t  value;

    assert_int_equal(value_check(json, strlen(json), &value), 0);
    value_string(value, &buf);
    assert_int_equal(buf.len, len);
    assert_memory_equal(len == 0 ? "" : buf.data, text, len);
    buf_free(&buf);
}


static void
strings_lose_their_escapes(void **state)
{
    assert_text("\"\"", "", 0);
    assert_text("\"plain\"", "plain", 5);
    assert_text("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    assert_text("\"a\\u0000b\"", "a\0b", 3);
    assert_text("\"\\u00e9\\u20ac\\ud83d\\ude00\"",
                "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9);
    assert_text("\"\\ud83d\"", "\xef\xbf\xbd", 3);
    assert_text("\"\\ude00x\"", "\xef\xbf\xbdx", 4);
    assert_text("\"\\ud83d\\u0041\"", "\xef\xbf\xbd" "A", 4);
}


static void
strings_get_their_escapes(void **state)
{
    char   all[0x80];
    buf_t  buf = { NULL, 0, 0, 0 };
    size_t  i;
    value_t  value;

    for (i = 0; i < sizeof(all); i++) {
        all[i] = (char) i;
    }

    buf_string(&buf, all, sizeof(all));
    assert_false(buf.failed);
    assert_int_equal(value_check(buf.data, buf.len, &value), 0);
    assert_text((buf_add(&buf, "", 1), buf.data), all, sizeof(all));
    buf_free(&buf);

    buf_string(&buf, "\xc3", 1);
    assert_true(buf.failed);
    buf_free(&buf);
}


static void
a_copy_is_cut_between_characters(void **state)
{
    char     to[6];
    value_t  value;

    assert_int_equal(value_check("\"abcd\xc3\xa9\"", 8, &value), 0);
    value_copy(value, to, sizeof(to));
    assert_string_equal(to, "abcd");

    value.p = NULL;
    value_copy(value, to, sizeof(to));
    assert_string_equal(to, "");
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(json_is_told_from_other_text),
        cmocka_unit_test(every_cut_of_json_is_bad),
        cmocka_unit_test(depth_has_a_limit),
        cmocka_unit_test(members_and_items_are_found),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(strings_lose_their_escapes),
        cmocka_unit_test(strings_get_their_escapes),
        cmocka_unit_test(a_copy_is_cut_between_characters)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
