
/* Buckets, quantiles and edges of histograms, and how old values leave them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "common/data/histogram.h"


static histogram_t  h;      /* 37 KB: not for the stack */


static int
begin(void **state)
{
    memset(&h, 0, sizeof(h));

    return 0;
}


static uint64_t
mix(uint64_t x)
{
    x += 0x9e3779b97f4a7c15ULL;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;

    return x ^ (x >> 31);
}


static int
by_value(const void *a, const void *b)
{
    uint64_t  x = *(const uint64_t *) a, y = *(const uint64_t *) b;

    return (x > y) - (x < y);
}


static void
an_empty_one_answers_zero(void **state)
{
    assert_true(histogram_quantile(&h, 0.5) == 0);
    assert_true(histogram_mean(&h) == 0);
    assert_true(h.n == 0);
}


static void
one_value_is_every_quantile(void **state)
{
    histogram_record(&h, 123456789);

    assert_true(histogram_quantile(&h, 0) == 123456789);
    assert_true(histogram_quantile(&h, 0.5) == 123456789);
    assert_true(histogram_quantile(&h, 1) == 123456789);
    assert_true(histogram_mean(&h) == 123456789);
}


static void
small_values_are_exact(void **state)
{
    uint64_t  i;

    for (i = 0; i < 256; i++) {
        histogram_record(&h, i);
    }

    for (i = 1; i <= 256; i++) {
        assert_true(histogram_quantile(&h, (double) i / 256) == i - 1);
    }
}


/* At and around every power of two: no bucket is skipped or too wide. */
static void
every_value_lands_within_one_part_in_128(void **state)
{
    int       power, around;
    uint64_t  value, got;

    for (power = 8; power < HISTOGRAM_MAX_BITS; power++) {
        for (around = -2; around <= 2; around++) {
            value = (1ULL << power) + (uint64_t) (int64_t) around;

            memset(&h, 0, sizeof(h));
            histogram_record(&h, value);
            histogram_record(&h, HISTOGRAM_MAX);
            got = histogram_quantile(&h, 0.5);

            assert_true(got >= value);
            assert_true(got - value <= value / 128);
        }
    }
}


static void
values_above_the_range_count_at_its_end(void **state)
{
    histogram_record(&h, HISTOGRAM_MAX);
    histogram_record(&h, HISTOGRAM_MAX + 1);
    histogram_record(&h, UINT64_MAX);

    assert_true(h.n == 3);
    assert_true(histogram_quantile(&h, 1) == HISTOGRAM_MAX);
    assert_true(h.counts[HISTOGRAM_BUCKETS - 1] == 3);
}


/* Quantiles, compared with sorted samples over nine orders of magnitude. */
static void
quantiles_are_those_of_the_samples(void **state)
{
    enum { N = 20000 };

    size_t    i, rank;
    uint64_t  exact, got;

    static uint64_t      samples[N];
    static const double  shares[] = { 0.001, 0.5, 0.9, 0.99, 0.999, 1 };

    for (i = 0; i < N; i++) {
        samples[i] = mix(i) >> (24 + mix(i + N) % 30);
        histogram_record(&h, samples[i]);
    }

    qsort(samples, N, sizeof(uint64_t), by_value);

    for (i = 0; i < sizeof(shares) / sizeof(shares[0]); i++) {
        rank = (size_t) (shares[i] * N);
        exact = samples[rank > 0 ? rank - 1 : 0];
        got = histogram_quantile(&h, shares[i]);

        assert_true(got >= exact);
        assert_true(got - exact <= exact / 128);
    }

    assert_true(h.min == samples[0]);
    assert_true(h.max == samples[N - 1]);
}


static void
recent_values_are_counted_with_all_others(void **state)
{
    uint64_t  i;

    for (i = 0; i < 100000; i++) {
        histogram_record_recent(&h, 1000 + mix(i) % 10000);
    }

    assert_in_range(histogram_quantile(&h, 0.5), 5700, 6300);
    assert_in_range(histogram_quantile(&h, 0.95), 10300, 10700);
    assert_int_equal(h.n, 100000);
    assert_in_range((uint64_t) h.sum, 598000000, 602000000);
    assert_in_range(h.kept, HISTOGRAM_RECENT / 4, HISTOGRAM_RECENT);
}


static void
what_is_old_counts_less(void **state)
{
    int  i;

    for (i = 0; i < HISTOGRAM_RECENT; i++) {
        histogram_record_recent(&h, 1000000);
    }

    for (i = 0; i < 10 * HISTOGRAM_RECENT; i++) {
        histogram_record_recent(&h, 100);
    }

    assert_int_equal(histogram_quantile(&h, 0.999), 100);
    assert_true(h.max == 1000000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup(an_empty_one_answers_zero, begin),
        cmocka_unit_test_setup(one_value_is_every_quantile, begin),
        cmocka_unit_test_setup(small_values_are_exact, begin),
        cmocka_unit_test_setup(every_value_lands_within_one_part_in_128,
                               begin),
        cmocka_unit_test_setup(values_above_the_range_count_at_its_end,
                               begin),
        cmocka_unit_test_setup(quantiles_are_those_of_the_samples, begin),
        cmocka_unit_test_setup(recent_values_are_counted_with_all_others,
                               begin),
        cmocka_unit_test_setup(what_is_old_counts_less, begin),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
