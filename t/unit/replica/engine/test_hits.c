
/* The share of prompts that an engine finds in its cache, over time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "replica/engine/hits.h"


static void
nothing_is_known_before_the_first_prompt(void **state)
{
    hits_t  h = { 0 };

    assert_int_equal(hits_permille(&h, 1000, 0, 0), -1);
    assert_int_equal(hits_permille(&h, 3000, 0, 0), -1);
    assert_int_equal(hits_permille(&h, 4000, 3, 4), 750);

    /* What an engine counted before the first look is not of this minute. */
    h = (hits_t) { 0 };
    assert_int_equal(hits_permille(&h, 1000, 900, 1000), -1);
    assert_int_equal(hits_permille(&h, 2500, 900, 1000), -1);
    assert_int_equal(hits_permille(&h, 4000, 901, 1010), 100);
}


static void
the_share_is_that_of_the_last_minute(void **state)
{
    hits_t    h = { 0 };
    uint64_t  now_ms, found, all;

    found = 0;
    all = 0;
    (void) hits_permille(&h, 0, found, all);

    /* Ten blocks a second, all of them found, for ten minutes. */
    for (now_ms = 1000; now_ms <= 600000; now_ms += 1000) {
        found += 10;
        all += 10;
        assert_int_equal(hits_permille(&h, now_ms, found, all), 1000);
        assert_true(h.n <= HITS_LOOKS + 1);
    }

    /* Then none is found: the share is a half after 30 s, and 0 after 65 s. */
    for ( /* void */ ; now_ms <= 630000; now_ms += 1000) {
        all += 10;
        (void) hits_permille(&h, now_ms, found, all);
    }

    assert_in_range(hits_permille(&h, now_ms, found, all), 460, 540);

    for ( /* void */ ; now_ms <= 666000; now_ms += 1000) {
        all += 10;
        (void) hits_permille(&h, now_ms, found, all);
    }

    assert_int_equal(hits_permille(&h, now_ms, found, all), 0);
}


static void
without_prompts_it_stays_and_then_begins_anew(void **state)
{
    size_t    i;
    hits_t    asked = { 0 }, left_alone = { 0 };
    uint64_t  now_ms;

    (void) hits_permille(&asked, 0, 0, 0);
    (void) hits_permille(&left_alone, 0, 0, 0);
    assert_int_equal(hits_permille(&asked, 2000, 8, 10), 800);
    assert_int_equal(hits_permille(&left_alone, 2000, 8, 10), 800);

    for (i = 0, now_ms = 2000; i < 100; i++) {
        now_ms += 1500;
        assert_int_equal(hits_permille(&asked, now_ms, 8, 10), 800);
    }

    assert_int_equal(hits_permille(&asked, now_ms + 1000, 8, 14), 0);

    /* It compares with the counts at 0, so the share is of all since then. */
    assert_int_equal(hits_permille(&left_alone, now_ms + 1000, 8, 16), 500);
}


static void
an_engine_that_was_started_anew_begins_anew(void **state)
{
    hits_t  h = { 0 };

    (void) hits_permille(&h, 0, 0, 0);
    assert_int_equal(hits_permille(&h, 1000, 50, 100), 500);
    assert_int_equal(hits_permille(&h, 2000, 0, 10), -1);
    assert_int_equal(hits_permille(&h, 3000, 9, 20), 900);

    /* Counters that do not fit each other give no more than all. */
    assert_int_equal(hits_permille(&h, 4000, 900, 21), 1000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(nothing_is_known_before_the_first_prompt),
        cmocka_unit_test(the_share_is_that_of_the_last_minute),
        cmocka_unit_test(without_prompts_it_stays_and_then_begins_anew),
        cmocka_unit_test(an_engine_that_was_started_anew_begins_anew),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
