
/*
 * Counts of the gaps between tokens: each gap once, in order, however many
 * there are.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/report/figure/gaps.h"


static void
gaps_are_put_together_and_sorted(void **state)
{
    size_t           i, n;
    report_gaps_t    gaps = { 0 };
    report_count_t  *list;

    for (i = 0; i < 60000; i++) {
        report_gap(&gaps, (int64_t) ((i * 7919) % 20000), i % 3 + 1);
    }

    report_gap(&gaps, 5, 0);

    assert_int_equal(report_gaps_list(&gaps, &list, &n), 0);
    assert_int_equal(n, 20000);

    for (i = 0; i < n; i++) {
        assert_int_equal(list[i].value, i);
        assert_int_equal(list[i].count, 6);     /* 1 + 2 + 3 */
    }

    free(list);
}


static void
no_gap_is_an_empty_list(void **state)
{
    size_t           n;
    report_gaps_t    gaps = { 0 };
    report_count_t  *list;

    assert_int_equal(report_gaps_list(&gaps, &list, &n), 0);
    assert_int_equal(n, 0);
    free(list);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(gaps_are_put_together_and_sorted),
        cmocka_unit_test(no_gap_is_an_empty_list)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
