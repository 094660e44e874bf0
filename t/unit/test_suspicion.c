
/* How long a suspect has. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "agent/swim_core.h"


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


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(
            timeout_grows_with_the_logarithm_and_never_shrinks_below_its_base),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
