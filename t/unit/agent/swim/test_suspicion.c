
/* How long a suspicion lasts. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "swim/swim_inner.h"


static void
timeout_grows_with_the_logarithm_and_never_shrinks_below_its_base(
    void **state)
{
    assert_int_equal(suspicion_timeout_us(2000000, 0), 2000000);
    assert_int_equal(suspicion_timeout_us(2000000, 3), 2000000);
    assert_int_equal(suspicion_timeout_us(2000000, 10), 2000000);
    assert_in_range(suspicion_timeout_us(2000000, 20), 2602000, 2602100);
    assert_in_range(suspicion_timeout_us(2000000, 50), 3397900, 3398000);
    assert_int_equal(suspicion_timeout_us(2000000, 1000), 6000000);
}


static void
each_confirmation_shortens_it_down_to_the_least(void **state)
{
    assert_int_equal(suspicion_confirmed_us(1000, 0, 18), 6000);
    assert_int_equal(suspicion_confirmed_us(1000, 1, 18), 6000);
    assert_int_equal(suspicion_confirmed_us(1000, 2, 18), 3500);
    assert_in_range(suspicion_confirmed_us(1000, 3, 18), 2036, 2038);
    assert_int_equal(suspicion_confirmed_us(1000, 4, 18), 1000);
    assert_int_equal(suspicion_confirmed_us(1000, 1, 3), 6000);

    /* Too few to confirm: n - 2 < 3. */
    assert_int_equal(suspicion_confirmed_us(1000, 1, 2), 1000);
    assert_int_equal(suspicion_confirmed_us(1000, 1, 0), 1000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(
            timeout_grows_with_the_logarithm_and_never_shrinks_below_its_base),
        cmocka_unit_test(each_confirmation_shortens_it_down_to_the_least),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
