
/* What requests will cost, learnt per model: core/accounts/estimate.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/accounts/estimate.h"


static llmgw_estimates_t  estimates;


static int
setup(void **state)
{
    memset(&estimates, 0, sizeof(estimates));

    return 0;
}


static void
learn(const char *model, uint32_t times, uint64_t bytes, uint64_t prompt,
    uint64_t answer)
{
    while (times-- > 0) {
        llmgw_estimate_learn(&estimates, model, bytes, prompt, answer);
    }
}


static void
first_request_is_guessed(void **state)
{
    assert_int_equal(llmgw_estimate_prompt(&estimates, "m", 0), 0);
    assert_int_equal(llmgw_estimate_prompt(&estimates, "m", 1), 1);
    assert_int_equal(llmgw_estimate_prompt(&estimates, "m", 4000), 1000);
    assert_int_equal(llmgw_estimate_answer(&estimates, "m"), 256);
}


static void
ratio_is_each_models_own(void **state)
{
    learn("english", 1000, 5000, 1000, 10);
    learn("chinese", 1000, 1500, 1000, 10);
    assert_in_range(llmgw_estimate_prompt(&estimates, "english", 5000), 999,
                    1002);
    assert_in_range(llmgw_estimate_prompt(&estimates, "chinese", 1500), 995,
                    1001);
    assert_int_equal(llmgw_estimate_prompt(&estimates, "other", 4000), 1000);
}


static void
answer_is_longer_than_nearly_all(void **state)
{
    learn("m", 90, 40, 10, 100);
    learn("m", 10, 40, 10, 1000);
    assert_in_range(llmgw_estimate_answer(&estimates, "m"), 513, 1025);
    learn("m", 900, 40, 10, 100);
    assert_in_range(llmgw_estimate_answer(&estimates, "m"), 65, 129);
}


static void
what_is_old_loses_weight(void **state)
{
    learn("m", 100000, 4000, 1000, 30000);
    learn("m", 20000, 2000, 1000, 20);
    assert_in_range(llmgw_estimate_prompt(&estimates, "m", 2000), 950, 1001);
    assert_in_range(llmgw_estimate_answer(&estimates, "m"), 17, 33);
}


static void
absurd_counts_teach_nothing(void **state)
{
    learn("m", 10, 4000, UINT64_MAX, UINT64_MAX);
    learn("m", 10, UINT64_MAX, 1000, 0);
    learn("m", 10, 0, 5, 0);
    assert_int_equal(llmgw_estimate_prompt(&estimates, "m", 4000), 1000);
    assert_int_equal(llmgw_estimate_answer(&estimates, "m"), 32768 + 1);
}


static void
models_beyond_the_table_share_one_estimate(void **state)
{
    char      name[16];
    uint32_t  i;

    for (i = 0; i < LLMGW_ESTIMATES; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        learn(name, 1, 0, 0, 10);
    }

    learn("more", 500, 1000, 1000, 10);
    assert_int_equal(estimates.n, LLMGW_ESTIMATES);
    assert_in_range(llmgw_estimate_prompt(&estimates, "still-more", 1000), 990,
                    1001);
    assert_int_equal(llmgw_estimate_prompt(&estimates, "m7", 1000), 250);

    learn("", 1, 0, 0, 10);
    assert_int_equal(estimates.n, LLMGW_ESTIMATES);
}


#define test(name)  cmocka_unit_test_setup(name, setup)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(first_request_is_guessed),
        test(ratio_is_each_models_own),
        test(answer_is_longer_than_nearly_all),
        test(what_is_old_loses_weight),
        test(absurd_counts_teach_nothing),
        test(models_beyond_the_table_share_one_estimate)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
