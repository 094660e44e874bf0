
/* Paired differences: the interval, the sign test, their edges. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <cmocka.h>

#include "common/rnd.h"
#include "sim/report/figure/pair.h"


static void
sign_test_is_the_tail_of_fair_coins(void **state)
{
    assert_true(report_sign_test(0, 0) == 1);
    assert_true(report_sign_test(3, 3) == 1);
    assert_true(fabs(report_sign_test(0, 5) - 2.0 / 32) < 1e-12);
    assert_true(fabs(report_sign_test(5, 0) - 2.0 / 32) < 1e-12);
    assert_true(fabs(report_sign_test(1, 9) - 22.0 / 1024) < 1e-12);
}


/*
 * From 1000 coins on a normal approximation is used: results do not jump
 * there.
 */
static void
many_coins_agree_with_few(void **state)
{
    double  few, many;

    few = report_sign_test(460, 540);
    many = report_sign_test(461, 540);
    assert_true(fabs(few - many) < 0.002);
    assert_true(report_sign_test(20000, 20000) == 1);
    assert_true(report_sign_test(10000, 30000) < 1e-100);
}


static void
interval_holds_the_mean_and_is_repeatable(void **state)
{
    int            i;
    rnd_t          rnd = { 1 };
    double         a[500], b[500];
    report_pair_t  x, y;

    for (i = 0; i < 500; i++) {
        a[i] = b[i] = (double) rnd_below(&rnd, 1000) / 100 - 3;
    }

    assert_int_equal(report_pair(a, 500, 7, &x), 0);
    assert_int_equal(report_pair(b, 500, 7, &y), 0);
    assert_int_equal(x.n, 500);
    assert_true(x.low < x.mean && x.mean < x.high);
    assert_true(x.low > 1.5 && x.high < 2.5);       /* 2 is expected */
    assert_true(x.low == y.low && x.high == y.high);
    assert_int_equal(x.less + x.more, 500);
    assert_true(x.p < 1e-6);
}


static void
equals_do_not_differ(void **state)
{
    double         zeros[3] = { 0, 0, 0 }, one[1] = { -2 };
    report_pair_t  pair;

    assert_int_equal(report_pair(NULL, 0, 1, &pair), 0);
    assert_true(pair.n == 0 && pair.p == 1);

    assert_int_equal(report_pair(zeros, 3, 1, &pair), 0);
    assert_true(pair.mean == 0 && pair.low == 0 && pair.high == 0);
    assert_true(pair.less == 0 && pair.more == 0 && pair.p == 1);

    assert_int_equal(report_pair(one, 1, 1, &pair), 0);
    assert_true(pair.low == -2 && pair.high == -2 && pair.less == 1);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(sign_test_is_the_tail_of_fair_coins),
        cmocka_unit_test(many_coins_agree_with_few),
        cmocka_unit_test(interval_holds_the_mean_and_is_repeatable),
        cmocka_unit_test(equals_do_not_differ)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
