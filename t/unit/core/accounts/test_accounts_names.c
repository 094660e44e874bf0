
/*
 * Which names have an account, and with which usage it begins: names come and
 * go, and earlier usage is brought along (core/accounts/accounts.h).
 */

#include "t/unit/core/accounts/accounts_scene.h"


/* The sums of an account that has used so much today and in this month. */
static llmgw_sums_t
used(uint64_t tokens)
{
    llmgw_sums_t  sums = { { 0 }, { 0 } };

    llmgw_sums_use(&sums, NOON, tokens);

    return sums;
}


static void
bring(scene_t *scene, const llmgw_sums_t *base)
{
    assert_int_equal(llmgw_accounts_base(scene->accounts, scene->ask.name,
                                         base, &scene->now), 0);
}


/* Takes a request for each of n other names, as long as they are admitted. */
static llmgw_admittance_t
crowd(scene_t *scene, uint32_t n)
{
    char                    name[8];
    uint32_t                i;
    llmgw_accounts_ask_t    ask = scene->ask;
    llmgw_admittance_t      admittance = LLMGW_ADMITTED;

    scene->ask.limits = (llmgw_limits_t) { 0 };

    for (i = 0; i < n && admittance == LLMGW_ADMITTED; i++) {
        snprintf(name, sizeof(name), "n%u", i);
        scene->ask.name = text(name);
        admittance = take(scene);

        if (admittance == LLMGW_ADMITTED) {
            settle_and_write(scene, scene->answer.slot, 1, 1);
        }
    }

    scene->ask = ask;

    return admittance;
}


static void
what_was_used_before_counts_and_is_said_anew(void **state)
{
    scene_t       *scene = *state;
    llmgw_sums_t   base = used(90);

    scene->ask.limits.budget = 100;
    scene->ask.max_tokens = 1;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 0, 5);

    bring(scene, &base);
    bring(scene, &base);
    assert_int_equal(look_at(scene, "alice").sums.used[0], 95);
    assert_int_equal(look_at(scene, "alice").n, 1);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 0, 5);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);

    base.number[LLMGW_PERIOD_DAY]--;    /* yesterday's */
    bring(scene, &base);
    assert_int_equal(look_at(scene, "alice").sums.used[0], 10);
    assert_int_equal(look_at(scene, "alice").sums.used[1], 100);
}


static void
name_that_comes_back_finds_its_account(void **state)
{
    char       name[8];
    uint32_t   i;
    scene_t   *scene = *state;

    scene->ask.limits.budget = 100;
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle_and_write(scene, scene->answer.slot, 0, 100);
    scene->ask.limits.budget = 0;

    for (i = 0; i < 50; i++) {          /* there are four accounts */
        snprintf(name, sizeof(name), "n%u", i);
        scene->ask.name = text(name);
        assert_int_equal(take(scene), LLMGW_ADMITTED);
        settle_and_write(scene, scene->answer.slot, 1, 1);
    }

    scene->ask.name = text("alice");
    scene->ask.limits.budget = 100;
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    assert_int_equal(scene->accounts->words.gone.requests, 47);

    wait_ms(scene, LLMGW_DAY_MS);
    scene->ask.limits.budget = 0;

    for (i = 0; i < 4; i++) {
        snprintf(name, sizeof(name), "m%u", i);
        scene->ask.name = text(name);
        assert_int_equal(take(scene), LLMGW_ADMITTED);
    }

    scene->ask.name = text("alice");
    assert_int_equal(take(scene), LLMGW_ACCOUNTS_FULL);
}


static void
account_with_an_empty_bucket_is_not_given_up(void **state)
{
    uint32_t  i;
    scene_t  *scene = *state;

    scene->ask.bytes = 4;

    for (i = 0; i < 2; i++) {
        scene->ask.name = text(i ? "tokens" : "requests");
        scene->ask.limits = (llmgw_limits_t) { .rpm = i ? 0 : 1,
                                               .tpm = i ? 1 : 0 };
        assert_int_equal(take(scene), LLMGW_ADMITTED);
        settle_and_write(scene, scene->answer.slot, 0, i);
        assert_int_equal(crowd(scene, 10), LLMGW_ADMITTED);
        assert_int_equal(take(scene), i ? LLMGW_OVER_TOKENS
                                        : LLMGW_OVER_REQUESTS);
    }
}


static void
account_of_a_request_is_not_given_up(void **state)
{
    uint32_t  slot;
    scene_t  *scene = *state;

    assert_int_equal(take(scene), LLMGW_ADMITTED);
    slot = scene->answer.slot;
    assert_int_equal(crowd(scene, 10), LLMGW_ADMITTED);
    assert_int_equal(look_at(scene, "alice").streams, 1);

    settle(scene, slot, 1, 1);          /* its record waits */
    assert_int_equal(crowd(scene, 10), LLMGW_ADMITTED);
    assert_int_equal(look_at(scene, "alice").totals.requests, 1);

    llmgw_accounts_written(scene->accounts, slot, 1 + 10);
    assert_int_equal(scene->accounts->words.settled, 0);
}


static void
what_was_used_before_ends_with_its_day(void **state)
{
    scene_t       *scene = *state;
    llmgw_sums_t   base = used(100);

    scene->ask.limits.budget = 100;
    bring(scene, &base);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    wait_ms(scene, LLMGW_DAY_MS);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
}


static void
what_is_over_adds_no_account(void **state)
{
    scene_t       *scene = *state;
    llmgw_sums_t   base = used(100);

    wait_ms(scene, 4 * LLMGW_DAY_MS);   /* it is December */
    bring(scene, &base);
    assert_int_equal(scene->accounts->words.accounts, 0);

    assert_int_equal(take(scene), LLMGW_ADMITTED);
    bring(scene, &base);
    assert_int_equal(look_at(scene, "alice").sums.used[0], 0);
}


/* The clock was set back while nginx did not run. */
static void
later_day_that_was_brought_along_stays(void **state)
{
    scene_t       *scene = *state;
    llmgw_sums_t   base = used(90);

    scene->now.unix_ms -= LLMGW_DAY_MS;
    scene->ask.limits.budget = 100;
    scene->ask.max_tokens = 1;
    bring(scene, &base);
    assert_int_equal(take(scene), LLMGW_ADMITTED);
    settle(scene, scene->answer.slot, 0, 10);
    assert_int_equal(look_at(scene, "alice").sums.used[LLMGW_PERIOD_DAY], 100);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
    wait_ms(scene, LLMGW_DAY_MS);
    assert_int_equal(take(scene), LLMGW_OVER_BUDGET);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        scene_test(what_was_used_before_counts_and_is_said_anew),
        scene_test(what_was_used_before_ends_with_its_day),
        scene_test(what_is_over_adds_no_account),
        scene_test(later_day_that_was_brought_along_stays),
        scene_test(name_that_comes_back_finds_its_account),
        scene_test(account_with_an_empty_bucket_is_not_given_up),
        scene_test(account_of_a_request_is_not_given_up)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
