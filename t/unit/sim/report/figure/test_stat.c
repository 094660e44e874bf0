
/* Percentiles, means and fairness, at their edges. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include "sim/report/figure/stat.h"


static void
percentiles_lie_between_neighbours(void **state)
{
    report_dist_t  d;
    double         v[] = { 4000, 1000, 3000, 2000 };

    report_sort(v, 4);
    assert_true(report_percentile_ms(v, 4, 0) == 1);
    assert_true(report_percentile_ms(v, 4, 50) == 2.5);
    assert_true(report_percentile_ms(v, 4, 100) == 4);
    assert_true(report_mean_ms(v, 4) == 2.5);
    assert_true(report_percentile(v, 4, 50) == 2500);

    report_dist(v, 4, &d);
    assert_true(d.mean == 2500 && d.min == 1000 && d.max == 4000);
    assert_true(d.p95 == 3000 + (0.95 * 3 - 2) * 1000);
    assert_int_equal(d.count, 4);
}


static void
nothing_and_one_value_have_percentiles_too(void **state)
{
    report_dist_t   d;
    double          v[] = { 7 };
    report_count_t  one = { 7, 1 };

    assert_true(report_percentile_ms(NULL, 0, 99) == 0);
    assert_true(report_mean_ms(NULL, 0) == 0);
    assert_true(report_count_percentile_ms(NULL, 0, 99) == 0);
    assert_true(report_count_mean_ms(NULL, 0) == 0);
    assert_true(report_percentile(NULL, 0, 99) == 0);
    report_dist(NULL, 0, &d);
    assert_true(d.mean == 0 && d.count == 0);

    assert_true(report_percentile_ms(v, 1, 99) == 0.007);
    assert_true(report_count_percentile_ms(&one, 1, 99) == 0.007);
    report_dist(v, 1, &d);
    assert_true(d.p50 == 7 && d.p99 == 7 && d.min == 7 && d.max == 7);
}


/* Counted values give what the same values give one by one. */
static void
counted_values_agree_with_listed_ones(void **state)
{
    size_t          i, k, n;
    double          list[1000], p;
    report_count_t  counts[9];

    n = 0;

    for (i = 0; i < 9; i++) {
        counts[i].value = (int64_t) (i * i * 37 + 11);
        counts[i].count = (i * 7) % 5 + 1;

        for (k = 0; k < counts[i].count; k++) {
            list[n++] = (double) counts[i].value;
        }
    }

    for (p = 0; p <= 100; p += 0.5) {
        assert_true(report_count_percentile_ms(counts, 9, p)
                    == report_percentile_ms(list, n, p));
    }

    assert_true(report_count_mean_ms(counts, 9) == report_mean_ms(list, n));
}


static void
fairness_is_one_for_equals_and_one_nth_for_a_winner(void **state)
{
    double  even[] = { 3, 3, 3, 3 }, one[] = { 0, 8, 0, 0 };
    double  none[] = { 0, 0 };

    assert_true(report_jain(even, 4) == 1);
    assert_true(report_jain(one, 4) == 0.25);
    assert_true(report_jain(none, 2) == 1);
    assert_true(report_jain(none, 0) == 0);
}


/* The number is that of a count pair by pair. */
static void
inversions_are_those_of_a_walk_over_all_pairs(void **state)
{
    int       run;
    size_t    i, k, n;
    double    values[64], scratch[64];
    uint64_t  pairs;

    srand(3);

    for (run = 0; run < 3000; run++) {
        n = (size_t) rand() % 65;

        for (i = 0; i < n; i++) {
            values[i] = rand() % (run % 2 == 0 ? 12 : 100000);
        }

        for (i = 0, pairs = 0; i < n; i++) {
            for (k = i + 1; k < n; k++) {
                pairs += values[i] > values[k] * 2.0;
            }
        }

        assert_int_equal(report_inversions(values, scratch, n, 2.0), pairs);

        for (i = 1; i < n; i++) {
            assert_true(values[i - 1] <= values[i]);
        }
    }
}


/* A million values have 2^39 pairs. */
static void
inversions_of_a_million_are_counted(void **state)
{
    size_t   i, n = 1 << 20;
    double  *values, *scratch;

    values = malloc(n * sizeof(double));
    scratch = malloc(n * sizeof(double));
    assert_non_null(values);
    assert_non_null(scratch);

    for (i = 0; i < n; i++) {
        values[i] = i < n / 2 ? 3 : 1;
    }

    assert_int_equal(report_inversions(values, scratch, n, 2.0),
                     (uint64_t) n / 2 * (n / 2));
    free(values);
    free(scratch);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(percentiles_lie_between_neighbours),
        cmocka_unit_test(nothing_and_one_value_have_percentiles_too),
        cmocka_unit_test(counted_values_agree_with_listed_ones),
        cmocka_unit_test(inversions_are_those_of_a_walk_over_all_pairs),
        cmocka_unit_test(inversions_of_a_million_are_counted),
        cmocka_unit_test(fairness_is_one_for_equals_and_one_nth_for_a_winner)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
