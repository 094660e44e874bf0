
/*
 * Whether the values that a shard computed may be true.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "replica/shard/check.h"

#define WIDTH  4
#define ROWS   3


/* Fills all rows so that they have the given norm. */
static void
fill(float *rows, float norm)
{
    int  i;

    for (i = 0; i < ROWS * WIDTH; i++) {
        rows[i] = norm / 2;
    }
}


static void
numbers_that_are_none_are_found_anywhere(void **state)
{
    int          i, j;
    float        rows[ROWS * WIDTH];
    const float  bad[] = { NAN, INFINITY, -INFINITY };

    for (i = 0; i < ROWS * WIDTH; i++) {
        for (j = 0; j < 3; j++) {
            fill(rows, 1);
            rows[i] = bad[j];
            assert_int_equal(check_rows(rows, ROWS, WIDTH, 0, 0),
                             CHECK_NOT_FINITE);
        }
    }
}


static void
a_row_may_be_sixteen_times_as_long_as_any_that_was_seen(void **state)
{
    float  rows[ROWS * WIDTH];

    fill(rows, 16 * 10);
    assert_int_equal(check_rows(rows, ROWS, WIDTH, 100, 10), CHECK_GOOD);

    rows[ROWS * WIDTH - 1] *= 1.001f;
    assert_int_equal(check_rows(rows, ROWS, WIDTH, 100, 10),
                     CHECK_TOO_LONG);
    assert_int_equal(check_rows(rows, ROWS - 1, WIDTH, 100, 10), CHECK_GOOD);

    /* no norm is known for this boundary */
    assert_int_equal(check_rows(rows, ROWS, WIDTH, 100, 0), CHECK_GOOD);
}


static void
the_first_four_positions_may_have_any_norm(void **state)
{
    float  rows[ROWS * WIDTH];

    fill(rows, 1e30f);
    assert_int_equal(check_rows(rows, ROWS, WIDTH, 0, 1), CHECK_GOOD);
    assert_int_equal(check_rows(rows, ROWS, WIDTH, 1, 1), CHECK_GOOD);
    assert_int_equal(check_rows(rows, ROWS, WIDTH, 2, 1), CHECK_TOO_LONG);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(numbers_that_are_none_are_found_anywhere),
        cmocka_unit_test(
            a_row_may_be_sixteen_times_as_long_as_any_that_was_seen),
        cmocka_unit_test(the_first_four_positions_may_have_any_norm),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
