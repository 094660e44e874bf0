
/* Quantiles: linear within a bucket, bounded above, 0 without samples. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "core/quantile.h"


static const uint64_t  bounds[] = { 10, 20, 100, 0 };


static void
nothing_counted_has_no_quantile(void **state)
{
    const uint64_t  counts[4] = { 0, 0, 0, 0 };

    assert_true(llmgw_quantile(bounds, counts, 500) < 0);
}


static void
values_lie_evenly_in_their_bucket(void **state)
{
    const uint64_t  counts[4] = { 0, 10, 0, 0 };

    assert_float_equal(llmgw_quantile(bounds, counts, 0), 10, 1e-9);
    assert_float_equal(llmgw_quantile(bounds, counts, 500), 15, 1e-9);
    assert_float_equal(llmgw_quantile(bounds, counts, 1000), 20, 1e-9);
}


static void
first_bucket_begins_at_zero(void **state)
{
    const uint64_t  counts[4] = { 4, 0, 0, 0 };

    assert_float_equal(llmgw_quantile(bounds, counts, 250), 2.5, 1e-9);
}


static void
rank_is_found_over_empty_buckets(void **state)
{
    const uint64_t  counts[4] = { 98, 0, 2, 0 };

    assert_float_equal(llmgw_quantile(bounds, counts, 980), 10, 1e-9);
    assert_float_equal(llmgw_quantile(bounds, counts, 990), 60, 1e-9);
}


static void
above_the_last_bound_is_told_as_that(void **state)
{
    const uint64_t  counts[4] = { 1, 0, 0, 99 };

    assert_float_equal(llmgw_quantile(bounds, counts, 500), 100, 1e-9);
    assert_float_equal(llmgw_quantile(bounds, counts, 1000), 100, 1e-9);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nothing_counted_has_no_quantile),
        cmocka_unit_test(values_lie_evenly_in_their_bucket),
        cmocka_unit_test(first_bucket_begins_at_zero),
        cmocka_unit_test(rank_is_found_over_empty_buckets),
        cmocka_unit_test(above_the_last_bound_is_told_as_that),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
