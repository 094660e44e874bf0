
/* What a walk finds in JSON. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "proto/json/check.h"
#include "proto/json/json_inner.h"
#include "proto/json/text.h"


static llmgw_json_t
parse(const char *text)
{
    int           rc;
    llmgw_json_t  value = { 0 };

    rc = llmgw_json_check(text, strlen(text), &value);
    assert_int_equal(rc, 0);

    return value;
}


static void
members_and_elements_are_found(void **state)
{
    size_t              i;
    uint64_t            n, sum;
    llmgw_json_t        object, c, none, list;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    object = parse(" { \"a\" : 1 , \"b\":[ 10 , 20,30 ],\"\\u0061\":2,"
                   "\"c\":{\"b\":\"}]\\\"\"} } ");

    assert_int_equal(llmgw_json_uint(llmgw_json_member(object, "a"), 9, &n),
                     0);
    assert_int_equal(n, 2);

    none = llmgw_json_member(object, "none");
    assert_int_equal(none.kind, LLMGW_JSON_END);
    assert_int_equal(llmgw_json_member(none, "a").kind, LLMGW_JSON_END);
    assert_int_equal(llmgw_json_first(none).kind, LLMGW_JSON_END);

    c = llmgw_json_member(object, "c");
    assert_true(llmgw_json_is(llmgw_json_member(c, "b"), "}]\""));
    assert_int_equal(c.end[-1], '}');

    list = llmgw_json_member(object, "b");
    items = llmgw_json_elements(list);

    for (sum = 0; llmgw_json_next(&items, &item); sum += n) {
        assert_int_equal(item.key.kind, LLMGW_JSON_END);
        assert_int_equal(llmgw_json_uint(item.value, 30, &n), 0);
    }

    assert_int_equal(sum, 60);
    assert_ptr_equal(items.p, list.end);
    assert_int_equal(llmgw_json_uint(llmgw_json_first(list), 30, &n), 0);
    assert_int_equal(n, 10);

    items = llmgw_json_members(object);

    for (i = 0; llmgw_json_next(&items, &item); i++) {
        assert_int_equal(item.key.kind, LLMGW_JSON_STRING);
    }

    assert_int_equal(i, 4);

    items = llmgw_json_elements(object);
    assert_false(llmgw_json_next(&items, &item));
    items = llmgw_json_members(list);
    assert_false(llmgw_json_next(&items, &item));
}


static void
strings_are_compared_by_their_text(void **state)
{
    assert_true(llmgw_json_is(parse("\"role\""), "role"));
    assert_true(llmgw_json_is(parse("\"\\u0072ole\""), "role"));
    assert_true(llmgw_json_is(parse("\"rol\\u0065\""), "role"));
    assert_true(llmgw_json_is(parse("\"\""), ""));
    assert_false(llmgw_json_is(parse("\"roles\""), "role"));
    assert_false(llmgw_json_is(parse("\"rol\""), "role"));
    assert_false(llmgw_json_is(parse("\"rol\\u0065s\""), "role"));
    assert_false(llmgw_json_is(parse("\"x\""), ""));
    assert_false(llmgw_json_is(parse("1"), "1"));
    assert_false(llmgw_json_is(llmgw_json_of(""), ""));
}


static void
nothing_is_said_by_what_is_empty(void **state)
{
    size_t                    i;

    static const char *const  empty[] = {
        "null", "\"\"", "{}", "[]", "{ }", "[\n]", ""
    };
    static const char *const  full[] = {
        "0", "false", "true", "\" \"", "{\"\":null}", "[null]", "[[]]"
    };

    for (i = 0; i < sizeof(empty) / sizeof(empty[0]); i++) {
        assert_true(llmgw_json_is_empty(llmgw_json_of(empty[i])));
    }

    for (i = 0; i < sizeof(full) / sizeof(full[0]); i++) {
        assert_false(llmgw_json_is_empty(llmgw_json_of(full[i])));
    }
}


/* Texts cut off at any byte: a walk ends, and no read goes beyond the end. */
static void
a_walk_of_no_json_ends(void **state)
{
    char               *copy;
    size_t              i;
    llmgw_json_t        value;
    llmgw_json_item_t   item;
    llmgw_json_items_t  items;

    static const char    whole[] =
        "{\"a\":[1,{\"b\":\"x\\u00e9\\\"\"}],\"b\":{\"c\":[[]]},\"d\":tru";

    for (i = 1; i < sizeof(whole); i++) {
        copy = malloc(i);
        assert_non_null(copy);
        memcpy(copy, whole, i);
        value = llmgw_json_at(copy, copy + i);
        items = llmgw_json_items(value);

        while (llmgw_json_next(&items, &item)) {
            assert_true(item.value.end <= value.end);
            assert_true(items.p <= value.end);
        }

        (void) llmgw_json_member(value, "d");
        free(copy);
    }
}


static void
numbers_have_limits(void **state)
{
    size_t        i;
    uint64_t      n;
    llmgw_json_t  value;

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
        value = llmgw_json_of(cases[i].text);
        assert_int_equal(llmgw_json_uint(value, cases[i].max, &n), cases[i].rc);
    }
}


static void
a_fraction_of_zeros_is_left_out(void **state)
{
    size_t        i, len;
    llmgw_json_t  value;

    static const struct {
        const char  *text;
        const char  *integral;
    } cases[] = {
        { "2.00", "2" }, { "-0.0", "-0" }, { "10.0", "10" }, { "0", "0" },
        { "100", "100" }, { "1.50", "1.50" }, { "1.0e0", "1.0e0" },
        { "1e00", "1e00" }, { "\".0\"", "\".0\"" }, { "null", "null" },
        { "", "" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        value = llmgw_json_integral(llmgw_json_of(cases[i].text));
        len = llmgw_json_bytes(value);
        assert_int_equal(len, strlen(cases[i].integral));
        assert_memory_equal(value.begin, cases[i].integral, len);
    }
}


/* Checks the text of a string that is read in pieces of at most
   `room` bytes. */
static void
assert_pieces(const char *json, const char *text, size_t len, size_t room)
{
    char            got[64];
    size_t          n, sum;
    llmgw_json_t    value;
    const uint8_t  *from;

    value = parse(json);

    for (from = NULL, sum = 0;
         (n = llmgw_json_text(&value, &from, got + sum, room)) > 0; )
    {
        assert_true(n <= room);
        sum += n;
    }

    assert_int_equal(sum, len);
    assert_memory_equal(got, text, len);
}


static void
assert_text(const char *json, const char *text, size_t len)
{
    size_t  room;

    for (room = LLMGW_JSON_TEXT_ROOM; room < 32; room++) {
        assert_pieces(json, text, len, room);
    }
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
a_copy_is_cut_between_characters(void **state)
{
    char          to[6];
    llmgw_json_t  value;

    value = parse("\"abcd\xc3\xa9\"");
    llmgw_json_copy(value, to, sizeof(to));
    assert_string_equal(to, "abcd");

    llmgw_json_copy(llmgw_json_of("12"), to, sizeof(to));
    assert_string_equal(to, "");
}


/* The byte that ends plain text is found at any place, since it is looked for
   in steps of 16 and 8 bytes, and byte by byte. */
static void
what_ends_a_plain_text_is_found(void **state)
{
    size_t    len, at, i;
    uint8_t  *text;

    static const uint8_t  bytes[] = {
        '"', '\\', 0, 0x1f, ' ', '!', '#', '[', ']', 0x7f, 0x80, 0xa2, 0xff
    };

    for (len = 1; len < 50; len++) {
        text = malloc(len);                 /* a sanitizer sees more */
        assert_non_null(text);

        for (at = 0; at < len; at++) {
            for (i = 0; i < sizeof(bytes); i++) {
                memset(text, 'x', len);
                text[at] = bytes[i];
                assert_int_equal(json_special(text, text + len) - text,
                                 i < 4 ? at : len);
            }
        }

        free(text);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(members_and_elements_are_found),
        cmocka_unit_test(strings_are_compared_by_their_text),
        cmocka_unit_test(nothing_is_said_by_what_is_empty),
        cmocka_unit_test(a_walk_of_no_json_ends),
        cmocka_unit_test(numbers_have_limits),
        cmocka_unit_test(a_fraction_of_zeros_is_left_out),
        cmocka_unit_test(strings_lose_their_escapes),
        cmocka_unit_test(a_copy_is_cut_between_characters),
        cmocka_unit_test(what_ends_a_plain_text_is_found)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
