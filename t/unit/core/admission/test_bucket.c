
/* The token bucket: what was taken by estimate is settled. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "core/admission/bucket.h"


#define SECOND  1000000


static llmgw_bucket_t
full(double capacity, double rate)
{
    llmgw_bucket_t  bucket;

    memset(&bucket, 0, sizeof(bucket));
    assert_int_equal(llmgw_bucket_init(&bucket, capacity, rate, 0), 0);

    return bucket;
}


static void
estimate_too_high_goes_back(void **state)
{
    llmgw_bucket_t  bucket = full(100, 10);

    assert_int_equal(llmgw_bucket_take(&bucket, 60, 0), 1);
    assert_int_equal(llmgw_bucket_take(&bucket, 60, 0), 0);

    llmgw_bucket_settle(&bucket, 60, 20, 0);
    assert_true(bucket.tokens == 80);
    assert_int_equal(llmgw_bucket_take(&bucket, 80, 0), 1);
    assert_int_equal(llmgw_bucket_take(&bucket, 1, 0), 0);
}


static void
estimate_too_low_is_owed(void **state)
{
    llmgw_bucket_t  bucket = full(100, 10);

    assert_int_equal(llmgw_bucket_take(&bucket, 90, 0), 1);
    llmgw_bucket_settle(&bucket, 90, 130, 0);
    assert_true(bucket.tokens == -30);

    /* the bucket fills up from there */
    assert_int_equal(llmgw_bucket_take(&bucket, 1, 3 * SECOND), 0);
    assert_int_equal(llmgw_bucket_take(&bucket, 10, 4 * SECOND), 1);
}


static void
settling_stays_within_the_capacity(void **state)
{
    llmgw_bucket_t  bucket = full(100, 10);

    llmgw_bucket_settle(&bucket, 60, 0, 0);
    assert_true(bucket.tokens == 100);

    llmgw_bucket_settle(&bucket, 1, 4e9, 0);
    assert_true(bucket.tokens == -100);
}


/* Settling counts what has come into the bucket since the take. */
static void
settling_fills_first(void **state)
{
    llmgw_bucket_t  bucket = full(100, 10);

    assert_int_equal(llmgw_bucket_take(&bucket, 50, 0), 1);
    llmgw_bucket_settle(&bucket, 50, 70, 2 * SECOND);
    assert_true(bucket.tokens == 50);
}


static void
wait_is_until_it_holds_enough(void **state)
{
    int64_t         ms;
    llmgw_bucket_t  bucket = full(100, 30);

    assert_int_equal(llmgw_bucket_take(&bucket, 100, 0), 1);

    ms = llmgw_bucket_wait_ms(&bucket, 50);
    assert_int_equal(ms, 1667);
    assert_int_equal(llmgw_bucket_take(&bucket, 50, (ms - 1) * 1000), 0);
    assert_int_equal(llmgw_bucket_take(&bucket, 50, ms * 1000), 1);

    assert_int_equal(llmgw_bucket_wait_ms(&bucket, 0), 1);
    assert_int_equal(llmgw_bucket_wait_ms(&bucket, 100.5), -1);
}


static void
slow_bucket_is_waited_for_long(void **state)
{
    llmgw_bucket_t  bucket = full(1e12, 1e-6);

    assert_int_equal(llmgw_bucket_take(&bucket, 1e12, 0), 1);
    assert_true(llmgw_bucket_wait_ms(&bucket, 1e12) == 1000000000000000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(estimate_too_high_goes_back),
        cmocka_unit_test(estimate_too_low_is_owed),
        cmocka_unit_test(settling_stays_within_the_capacity),
        cmocka_unit_test(settling_fills_first),
        cmocka_unit_test(wait_is_until_it_holds_enough),
        cmocka_unit_test(slow_bucket_is_waited_for_long),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
