
/* What accounts admit, and what they are charged: core/accounts/accounts.h. */

#include "t/unit/core/accounts/accounts_scene.h"


static void
zone_of_16_mb_holds_ten_thousand(void **state)
{
    uint32_t  n;
    size_t    left;

    left = (16u << 20) - (16u << 20) / 128 - 8 * 4096;
    n = llmgw_accounts_fit(left);

    assert_true(n >= 10000);
    assert_true(llmgw_accounts_bytes(n) <= left);
    assert_int_equal(llmgw_accounts_fit(4096), 0);
}


static void
minute_has_no_more_requests_than_rpm(void **state)
{
    uint32_t  n, ms;
    scene_t  *scene = *state;

    scene->ask.limits.rpm = 60;

    for (n = 0; take(scene) == LLMGW_ADMITTED; n++) {
        settle_and_write(scene, scene->answer.slot, 1, 1);
    }

    assert_int_equal(n, 60);
    assert_int_equal(scene->answer.admittance, LLMGW_OVER_REQUESTS);
    assert_int_equal(scene->answer.retry_ms, 1000);
    assert_int_equal(scene->answer.requests.limit, 60);
    assert_int_equal(scene->answer.requests.remaining, 0);
    assert_int_equal(scene->answer.requests.reset_ms, 60000);
    assert_int_equal(scene->answer.tokens.limit, 0);

    for (ms = 1; ms <= 10000; ms++) {
        wait_ms(scene, 1);

        if (take(scene) == LLMGW_ADMITTED) {
            settle_and_write(scene, scene->answer.slot, 1, 1);
            n++;
        }

        assert_true(n <= 60 + ms / 1000);
    }

    assert_int_equal(n, 70);
    assert_int_equal(look_at(scene, "alice").totals.requests, 70);
}


static void
retry_time_is_exact(void **state)
{
    uint64_t  retry_ms;
    scene_t  *scene = *state;

    scene->ask.limits.rpm = 7;

    while (take(scene) == LLMGW_ADMITTED) {
        settle_and_write(scene, scene->answer.slot, 1, 1);
    }

    retry_ms = scene->answer.retry_ms;
    wait_ms(scene, retry_ms - 1);
    assert_int_equal(take(scene), LLMGW_OVER_REQUESTS);
    assert_int_equal(scene->answer.retry_ms, 1);
    wait_ms(scene, 1);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
reset_time_is_rounded_up(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.rpm = 7;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.requests.reset_ms, 8572);
    wait_ms(scene, 8571);
    assert_int_equal(look_at(scene, "alice").requests.remaining, 6);
    wait_ms(scene, 1);
    assert_int_equal(look_at(scene, "alice").requests.remaining, 7);
}


static void
streams_are_the_running_slots(void **state)
{
    uint32_t  slot;
    scene_t  *scene = *state;

    scene->ask.limits.streams = 2;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    slot = scene->answer.slot;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(take(scene), LLMGW_OVER_STREAMS);
    assert_int_equal(look_at(scene, "alice").streams, 2);

    settle(scene, slot, 1, 1);          /* its record is not yet written */
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(take(scene), LLMGW_OVER_STREAMS);
}


static void
tokens_are_reserved_and_settled(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.tpm = 6000;
    scene->ask.bytes = 400;             /* 100 tokens */
    scene->ask.max_tokens = 50;

    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.tokens.remaining, 5850);
    assert_int_equal(scene->answer.tokens.reset_ms, 1500);
    assert_int_equal(look_at(scene, "alice").reserved, 150);

    settle(scene, scene->answer.slot, 120, 10);
    assert_int_equal(look_at(scene, "alice").reserved, 0);
    assert_int_equal(look_at(scene, "alice").tokens.remaining, 5870);
    assert_int_equal(look_at(scene, "alice").sums.used[LLMGW_PERIOD_DAY], 130);
}


static void
answer_counts_a_quarter_of_the_minute_at_most(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.tpm = 400;
    scene->ask.max_tokens = 100000;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.tokens.remaining, 300);
}


static void
request_beyond_the_bucket_waits_until_it_is_full(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.tpm = 600;
    scene->ask.bytes = 4000;            /* 1000 tokens, and 150 more */
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.tokens.remaining, 0);
    assert_int_equal(scene->answer.tokens.reset_ms, 115000);

    assert_int_equal(take(scene), LLMGW_OVER_TOKENS);
    assert_int_equal(scene->answer.retry_ms, 115000);
    wait_ms(scene, 114999);
    assert_int_equal(take(scene), LLMGW_OVER_TOKENS);
    wait_ms(scene, 1);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
settling_may_leave_a_debt(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.tpm = 600;
    scene->ask.max_tokens = 10;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 0, 1200);
    assert_int_equal(take(scene), LLMGW_OVER_TOKENS);
    assert_int_equal(scene->answer.retry_ms, 61000);
    assert_int_equal(scene->answer.tokens.remaining, 0);

    wait_ms(scene, 61000);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
what_is_given_back_overfills_nothing(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.tpm = 600;
    scene->ask.bytes = 800;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    wait_ms(scene, 60000);
    settle(scene, scene->answer.slot, 0, 0);
    assert_int_equal(look_at(scene, "alice").tokens.remaining, 600);
}


static void
refused_request_takes_nothing(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits = (llmgw_limits_t) { .rpm = 10, .tpm = 1000,
                                           .streams = 1 };
    scene->ask.max_tokens = 100;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(take(scene), LLMGW_OVER_STREAMS);
    assert_int_equal(take(scene), LLMGW_OVER_STREAMS);
    assert_int_equal(scene->answer.slot, LLMGW_NO_USAGE_SLOT);
    assert_int_equal(scene->answer.requests.remaining, 9);
    assert_int_equal(scene->answer.tokens.remaining, 900);
    assert_int_equal(look_at(scene, "alice").totals.refused, 2);
}


static void
limit_with_the_longest_wait_is_named(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits = (llmgw_limits_t) { .rpm = 1, .tpm = 100 };
    scene->ask.bytes = 400;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    /* the wait is 75 s, not 60 */
    assert_int_equal(take(scene), LLMGW_OVER_TOKENS);
    assert_int_equal(scene->answer.retry_ms, 75000);
}


static void
budget_counts_what_runs_and_cuts_no_stream(void **state)
{
    uint32_t  slot;
    scene_t  *scene = *state;

    scene->ask.limits.budget = 1000;
    scene->ask.max_tokens = 100;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    slot = scene->answer.slot;
    settle(scene, slot, 0, 899);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    slot = scene->answer.slot;
    assert_int_equal(take(scene), LLMGW_ADMITTED);      /* 999 < 1000 */
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    assert_int_equal(scene->answer.retry_ms, 12 * 3600000);

    settle(scene, slot, 0, 5000);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    assert_int_equal(scene->record.completion, 5000);
}


static void
request_counts_in_the_day_of_its_end(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.budget = 100;
    scene->now.unix_ms = NOON + 12 * 3600000 - 1;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    wait_ms(scene, 1);
    settle(scene, scene->answer.slot, 0, 100);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    assert_int_equal(scene->answer.retry_ms, LLMGW_DAY_MS);

    wait_ms(scene, LLMGW_DAY_MS - 1);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    wait_ms(scene, 1);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
month_ends_with_its_last_day(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.budget = 100;
    scene->ask.limits.period = LLMGW_PERIOD_MONTH;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 0, 100);

    scene->now.unix_ms = NOON + 2 * LLMGW_DAY_MS + LLMGW_DAY_MS / 2 - 1;
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    assert_int_equal(scene->answer.retry_ms, 1);
    wait_ms(scene, 1);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
clock_set_back_opens_no_period(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.budget = 100;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 0, 100);

    scene->now.unix_ms -= 3 * LLMGW_DAY_MS;
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    scene->now.unix_ms += 3 * LLMGW_DAY_MS;
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    scene->now.unix_ms += LLMGW_DAY_MS;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
older_limits_change_nothing(void **state)
{
    scene_t  *scene = *state;

    scene->ask.limits.rpm = 100;
    scene->ask.version = 2;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    scene->ask.limits.rpm = 1;
    scene->ask.version = 1;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.requests.limit, 100);

    scene->ask.limits.rpm = 3;
    scene->ask.version = 3;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    assert_int_equal(scene->answer.requests.remaining, 0);
    assert_int_equal(take(scene), LLMGW_OVER_REQUESTS);
}


static void
lower_limit_makes_no_debt(void **state)
{
    uint32_t  i;
    scene_t  *scene = *state;

    scene->ask.limits.rpm = 6000;

    for (i = 0; i < 3000; i++) {
        assert_int_equal(take(scene), LLMGW_ADMITTED);
        settle_and_write(scene, scene->answer.slot, 0, 0);
    }

    scene->ask.limits.rpm = 60;
    scene->ask.version++;
    assert_int_equal(take(scene), LLMGW_OVER_REQUESTS);
    assert_int_equal(scene->answer.retry_ms, 1000);
}


static void
absurd_counts_of_an_engine_are_bounded(void **state)
{
    uint32_t  i;
    scene_t  *scene = *state;

    scene->ask.limits.tpm = 1000;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, UINT64_MAX - 1, 1ull << 63);
    assert_int_equal(scene->record.prompt, LLMGW_LIMIT_MAX);
    assert_int_equal(take(scene), LLMGW_OVER_TOKENS);
    assert_in_range(scene->answer.retry_ms, 1, LLMGW_LIMIT_MAX * 60000);

    scene->ask.limits.tpm = 0;
    scene->ask.version++;

    for (i = 0; i < 9100; i++) {        /* the sum stops at a number that
                                           can be read */
        assert_int_equal(take(scene), LLMGW_ADMITTED);
        settle_and_write(scene, scene->answer.slot, UINT64_MAX - 1, 0);
    }

    assert_int_equal(look_at(scene, "alice").sums.used[0],
                     LLMGW_USAGE_NUMBER_MAX);
}


static void
name_that_no_account_may_have_is_refused(void **state)
{
    char      name[LLMGW_KEY_NAME_BYTES];
    scene_t  *scene = *state;

    memset(name, 'n', sizeof(name));
    scene->ask.name = (llmgw_accounts_text_t) { name, sizeof(name) };
    assert_int_equal(take(scene), LLMGW_ACCOUNTS_FULL);
    scene->ask.name.len = 0;
    assert_int_equal(take(scene), LLMGW_ACCOUNTS_FULL);
    scene->ask.name.len = sizeof(name) - 1;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
limits_are_divided_and_rounded_up(void **state)
{
    llmgw_limits_t  limits = { .rpm = 10, .tpm = 9, .streams = 1,
                               .budget = 0 };

    llmgw_limits_divide(&limits, 3);
    assert_int_equal(limits.rpm, 4);
    assert_int_equal(limits.tpm, 3);
    assert_int_equal(limits.streams, 1);
    assert_int_equal(limits.budget, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        scene_test(zone_of_16_mb_holds_ten_thousand),
        scene_test(minute_has_no_more_requests_than_rpm),
        scene_test(retry_time_is_exact),
        scene_test(reset_time_is_rounded_up),
        scene_test(streams_are_the_running_slots),
        scene_test(tokens_are_reserved_and_settled),
        scene_test(answer_counts_a_quarter_of_the_minute_at_most),
        scene_test(request_beyond_the_bucket_waits_until_it_is_full),
        scene_test(settling_may_leave_a_debt),
        scene_test(what_is_given_back_overfills_nothing),
        scene_test(refused_request_takes_nothing),
        scene_test(limit_with_the_longest_wait_is_named),
        scene_test(budget_counts_what_runs_and_cuts_no_stream),
        scene_test(request_counts_in_the_day_of_its_end),
        scene_test(month_ends_with_its_last_day),
        scene_test(clock_set_back_opens_no_period),
        scene_test(older_limits_change_nothing),
        scene_test(lower_limit_makes_no_debt),
        scene_test(absurd_counts_of_an_engine_are_bounded),
        scene_test(name_that_no_account_may_have_is_refused),
        scene_test(limits_are_divided_and_rounded_up)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
