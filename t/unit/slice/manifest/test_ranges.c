
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "slice/manifest/ranges.h"


static char  error[RANGES_ERROR_BYTES];


static void
test_equal_parts_cover_each_layer_once(void **state)
{
    size_t    i;
    uint32_t  layers, n, len, next;
    ranges_t  r;

    for (layers = 1; layers <= 70; layers++) {
        for (n = 1; n <= layers && n <= RANGES_MAX; n++) {
            assert_int_equal(ranges_even(&r, layers, n, error), 0);
            assert_int_equal(r.n, n);
            next = 0;

            for (i = 0; i < r.n; i++) {
                assert_int_equal(r.ranges[i].first, next);
                next = r.ranges[i].last + 1;
                len = next - r.ranges[i].first;
                assert_in_range(len, layers / n, (layers + n - 1) / n);
            }

            assert_int_equal(next, layers);
        }
    }

    assert_int_equal(ranges_even(&r, 70, 0, error), -1);
    assert_int_equal(ranges_even(&r, 70, RANGES_MAX + 1, error), -1);
    assert_string_equal(error, "65 slices of 70 layers: 1 to 64 are right");
    assert_int_equal(ranges_even(&r, 5, 6, error), -1);
    assert_string_equal(error, "6 slices of 5 layers: 1 to 5 are right");
}


static void
test_cuts_are_where_slices_begin(void **state)
{
    ranges_t  r;

    assert_int_equal(ranges_cuts(&r, 16, "4,8,15", error), 0);
    assert_int_equal(r.n, 4);
    assert_int_equal(r.ranges[0].last, 3);
    assert_int_equal(r.ranges[2].first, 8);
    assert_int_equal(r.ranges[2].last, 14);
    assert_int_equal(r.ranges[3].first, 15);
    assert_int_equal(r.ranges[3].last, 15);
}


static void
assert_gaps(const char *layers, uint32_t n, const char *expected)
{
    char      text[RANGES_GAPS_BYTES];
    ranges_t  r;

    assert_int_equal(ranges_parse(&r, 16, layers, error), 0);
    assert_int_equal(ranges_gaps(&r, 16, text), n);
    assert_string_equal(text, expected);
}


static void
test_gaps_are_what_no_slice_has(void **state)
{
    assert_gaps("0-15", 0, "");
    assert_gaps("8-15,0-7", 0, "");
    assert_gaps("0-9,4-15", 0, "");
    assert_gaps("0-3,5-15", 1, "4");
    assert_gaps("1-3,7,9-14", 6, "0,4-6,8,15");
    assert_gaps("9", 15, "0-8,10-15");
}


/* The text of gaps has room for the most slices, with the largest numbers
   before, between and behind them. */
static void
test_gaps_of_all_slices_have_room(void **state)
{
    size_t    i;
    char      text[RANGES_GAPS_BYTES];
    ranges_t  r = { .n = RANGES_MAX };

    for (i = 0; i < r.n; i++) {
        r.ranges[i].first = r.ranges[i].last = (uint32_t) (20000 + 1000 * i);
    }

    assert_int_equal(ranges_gaps(&r, 99999, text), 99999 - RANGES_MAX);
    assert_non_null(strstr(text, ",83001-99998"));
    assert_true(strlen(text) < sizeof(text) - 1);
}


static void
test_slices_of_one_run_are_limited(void **state)
{
    char      text[8 * RANGES_MAX];
    size_t    i, n;
    ranges_t  r;

    for (i = 0, n = 0; i < RANGES_MAX; i++) {
        n += (size_t) snprintf(text + n, sizeof(text) - n, ",%zu", i + 1);
    }

    /* n cuts make n + 1 slices, which is one too many. */
    assert_int_equal(ranges_cuts(&r, 200, text + 1, error), -1);
    assert_int_equal(ranges_parse(&r, 200, text + 1, error), 0);
    assert_int_equal(r.n, RANGES_MAX);

    snprintf(text + n, sizeof(text) - n, ",0");
    assert_int_equal(ranges_parse(&r, 200, text + 1, error), -1);
    assert_string_equal(error, "at most 64 slices are written in one run");
    *strrchr(text, ',') = '\0';
    *strrchr(text, ',') = '\0';
    assert_int_equal(ranges_cuts(&r, 200, text + 1, error), 0);
    assert_int_equal(r.n, RANGES_MAX);
}


static void
test_numbers_do_not_wrap(void **state)
{
    ranges_t  r;

    assert_int_equal(ranges_parse(&r, 16, "4294967296-4294967297", error), -1);
    assert_int_equal(ranges_cuts(&r, 16, "4294967300", error), -1);
    assert_int_equal(ranges_parse(&r, 16, "+1", error), -1);
    assert_int_equal(ranges_parse(&r, 16, "", error), -1);
    assert_int_equal(ranges_parse(&r, 16, "1,", error), -1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(test_equal_parts_cover_each_layer_once),
        cmocka_unit_test(test_cuts_are_where_slices_begin),
        cmocka_unit_test(test_gaps_are_what_no_slice_has),
        cmocka_unit_test(test_gaps_of_all_slices_have_room),
        cmocka_unit_test(test_slices_of_one_run_are_limited),
        cmocka_unit_test(test_numbers_do_not_wrap)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
