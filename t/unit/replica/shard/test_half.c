
/*
 * Halves compared with IEEE 754's own rules: each half, and each place where
 * floats are rounded.
 */

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "replica/shard/half.h"


#define HALVES    65536
#define INFINITE  0x7c00


/* The value of a half by arithmetic alone: mantissa x 2^exponent. */
static double
value_of(uint16_t half)
{
    int     exponent, mantissa;
    double  value;

    exponent = half >> 10 & 31;
    mantissa = half & 1023;
    value = exponent > 0 ? ldexp(1024 + mantissa, exponent - 25)
                         : ldexp(mantissa, -24);

    return half & 0x8000 ? -value : value;
}


static uint16_t
encoded(float f)
{
    uint16_t  half;

    assert_int_equal(half_encode(&half, &f, 1), 0);

    return half;
}


static void
each_half_is_one_float_and_comes_back(void **state)
{
    float     f;
    uint32_t  i;
    uint16_t  half;

    for (i = 0; i < HALVES; i++) {
        half = (uint16_t) i;

        if ((half & INFINITE) == INFINITE) {
            continue;
        }

        half_decode(&f, &half, 1);
        assert_true((double) f == value_of(half));
        assert_int_equal(signbit(f) != 0, half >> 15);
        assert_int_equal(encoded(f), half);
    }
}


/*
 * A float halfway between two halves becomes the even one; a step beside that
 * it becomes the nearer one.
 */
static void
what_lies_between_two_is_rounded(void **state)
{
    float     middle;
    uint32_t  i;
    uint16_t  low;

    for (i = 0; i + 1 < INFINITE; i++) {
        low = (uint16_t) i;
        middle = (float) ((value_of(low) + value_of(low + 1)) / 2);

        assert_int_equal(encoded(middle), low + (low & 1));
        assert_int_equal(encoded(nextafterf(middle, 0)), low);
        assert_int_equal(encoded(nextafterf(middle, INFINITY)), low + 1);
        assert_int_equal(encoded(-middle), 0x8000 + low + (low & 1));
    }
}


static void
what_would_be_infinite_is_refused(void **state)
{
    size_t    i;
    float     row[3];
    uint16_t  halves[3];

    const float  refused[] = { 65520, -65520, 1e30f, INFINITY, -INFINITY,
                               NAN };

    assert_int_equal(encoded(nextafterf(65520, 0)), INFINITE - 1);
    assert_int_equal(encoded(nextafterf(-65520, 0)), 0x8000 + INFINITE - 1);

    for (i = 0; i < sizeof(refused) / sizeof(refused[0]); i++) {
        row[0] = 1;
        row[1] = refused[i];
        row[2] = 2;
        assert_int_equal(half_encode(halves, row, 3), -1);
        assert_int_equal(halves[0], 0x3c00);
        assert_int_equal(halves[2], 0x4000);
    }
}


static void
infinities_and_nan_stay_what_they_are(void **state)
{
    float     f[3];
    uint16_t  halves[] = { INFINITE, 0x8000 + INFINITE, INFINITE + 1 };

    half_decode(f, halves, 3);
    assert_true(isinf(f[0]) && f[0] > 0);
    assert_true(isinf(f[1]) && f[1] < 0);
    assert_true(isnan(f[2]));
}


static void
what_is_too_small_becomes_a_zero_with_its_sign(void **state)
{
    assert_int_equal(encoded(1e-30f), 0);
    assert_int_equal(encoded(-1e-30f), 0x8000);
    assert_int_equal(encoded(-0.0f), 0x8000);
    assert_int_equal(encoded(1e-42f), 0);       /* a subnormal float */
}


int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_half_is_one_float_and_comes_back),
        cmocka_unit_test(what_lies_between_two_is_rounded),
        cmocka_unit_test(what_would_be_infinite_is_refused),
        cmocka_unit_test(infinities_and_nan_stay_what_they_are),
        cmocka_unit_test(what_is_too_small_becomes_a_zero_with_its_sign)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
