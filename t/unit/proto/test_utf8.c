
/* RFC 3629, section 4, on both sides of each limit. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "proto/utf8.h"


static int
valid(const char *text)
{
    return llmgw_utf8_is_valid(text, strlen(text));
}


static void
text_is_valid(void **state)
{
    assert_true(llmgw_utf8_is_valid("", 0));
    assert_true(llmgw_utf8_is_valid("a\0b", 3));
    assert_true(valid("plain text of more than eight bytes"));
    assert_true(valid("Gr\xc3\xbc\xc3\x9f Gott, \xe4\xbd\xa0\xe5\xa5\xbd"));
    assert_true(valid("\xf0\x9f\x98\x80 at the front, and \xf0\x9f\x98\x80"));
}


static void
edges_are_valid(void **state)
{
    assert_true(valid("\x7f"));
    assert_true(valid("\xc2\x80"));
    assert_true(valid("\xdf\xbf"));
    assert_true(valid("\xe0\xa0\x80"));
    assert_true(valid("\xed\x9f\xbf"));
    assert_true(valid("\xee\x80\x80"));
    assert_true(valid("\xef\xbf\xbf"));
    assert_true(valid("\xf0\x90\x80\x80"));
    assert_true(valid("\xf4\x8f\xbf\xbf"));
}


static void
beyond_the_edges_is_not(void **state)
{
    assert_false(valid("\x80"));
    assert_false(valid("\xbf"));
    assert_false(valid("\xc0\x80"));            /* overlong */
    assert_false(valid("\xc1\xbf"));
    assert_false(valid("\xe0\x9f\xbf"));
    assert_false(valid("\xf0\x8f\xbf\xbf"));
    assert_false(valid("\xed\xa0\x80"));        /* surrogates */
    assert_false(valid("\xed\xbf\xbf"));
    assert_false(valid("\xf4\x90\x80\x80"));    /* above U+10FFFF */
    assert_false(valid("\xf5\x80\x80\x80"));
    assert_false(valid("\xff"));
}


static void
cut_or_broken_is_not(void **state)
{
    assert_false(valid("\xc3"));
    assert_false(valid("\xe4\xbd"));
    assert_false(valid("\xf0\x9f\x98"));
    assert_false(valid("\xc3" "a"));
    assert_false(valid("\xe4\xbd" "a"));
    assert_false(valid("\xf0\x9f\x98" "a"));
    assert_false(valid("eight bytes, then \x80"));
    assert_false(valid("1234567\x80 at the eighth"));
}


static size_t
shown(const char *text)
{
    return llmgw_utf8_shown(text, strlen(text));
}


/* Bytes are checked eight or four at a time, where there are enough. */
static void
each_byte_of_each_length_is_judged(void **state)
{
    char    text[24];
    size_t  at, len;

    for (len = 1; len <= sizeof(text); len++) {
        memset(text, 'a', sizeof(text));
        assert_true(llmgw_utf8_is_valid(text, len));

        for (at = 0; at < len; at++) {
            text[at] = (char) 0x80;
            assert_false(llmgw_utf8_is_valid(text, len));
            text[at] = 'a';
        }
    }
}


static void
characters_are_shown_whole(void **state)
{
    assert_int_equal(shown(" "), 1);
    assert_int_equal(shown("~"), 1);
    assert_int_equal(shown("\xc2\xa0"), 2);
    assert_int_equal(shown("\xc3\x9b" "a"), 2);    /* 9b is no C1 here */
    assert_int_equal(shown("\xe4\xbd\xa0"), 3);
    assert_int_equal(shown("\xf0\x9f\x98\x80"), 4);
}


static void
control_characters_and_bytes_that_are_none_are_not_shown(void **state)
{
    assert_int_equal(shown(""), 0);
    assert_int_equal(llmgw_utf8_shown("\0", 1), 0);
    assert_int_equal(shown("\n"), 0);
    assert_int_equal(shown("\x1f"), 0);
    assert_int_equal(shown("\x7f"), 0);
    assert_int_equal(shown("\xc2\x80"), 0);
    assert_int_equal(shown("\xc2\x9b"), 0);
    assert_int_equal(shown("\xc2\x9f"), 0);
    assert_int_equal(shown("\x80"), 0);
    assert_int_equal(shown("\x9b"), 0);
    assert_int_equal(shown("\xc2"), 0);
    assert_int_equal(shown("\xe4\xbd"), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(text_is_valid),
        cmocka_unit_test(edges_are_valid),
        cmocka_unit_test(beyond_the_edges_is_not),
        cmocka_unit_test(cut_or_broken_is_not),
        cmocka_unit_test(each_byte_of_each_length_is_judged),
        cmocka_unit_test(characters_are_shown_whole),
        cmocka_unit_test(
            control_characters_and_bytes_that_are_none_are_not_shown),
    };

    return cmocka_run_group_tests_name("utf8", tests, NULL, NULL);
}
