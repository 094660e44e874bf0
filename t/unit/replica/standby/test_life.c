
/*
 * The life of a standby engine, and its probes, on made-up time.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "replica/standby/life.h"


#define TIMEOUT_MS  5000

static const life_vitals_t  healthy = { .is_ready = 1 };


/* Lives at each stage: each function takes a life one step further. */
static life_t
in_init(void)
{
    life_t  life;

    life_init(&life, TIMEOUT_MS);

    return life;
}


static life_t
in_standby(void)
{
    life_t  life;

    life = in_init();
    assert_int_equal(life_asleep(&life), 0);

    return life;
}


static life_t
in_waking(uint64_t now_ms)
{
    life_t  life;

    life = in_standby();
    assert_int_equal(life_granted(&life, 7, 99, now_ms), 0);

    return life;
}


static life_t
in_active(uint64_t now_ms)
{
    life_t  life;

    life = in_waking(now_ms);
    life_turned(&life, &healthy, now_ms);
    assert_int_equal(life_woken(&life, now_ms), 0);

    return life;
}


static void
probes_are(const life_t *life, uint64_t now_ms, int live, int started,
    int serving)
{
    assert_int_equal(life_answer(life, LIFE_IS_LIVE, now_ms), live);
    assert_int_equal(life_answer(life, LIFE_IS_STARTED, now_ms), started);
    assert_int_equal(life_answer(life, LIFE_IS_SERVING, now_ms), serving);
}


static void
a_life_goes_forward_and_nowhere_else(void **state)
{
    life_t  life;

    life = in_init();
    assert_string_equal(life_name(&life), "INIT");
    assert_int_equal(life_granted(&life, 7, 99, 0), -1);
    assert_int_equal(life_woken(&life, 0), -1);

    life = in_standby();
    assert_string_equal(life_name(&life), "STANDBY");
    assert_int_equal(life_asleep(&life), -1);
    assert_int_equal(life_woken(&life, 0), -1);
    assert_int_equal(life.epoch, 0);

    life = in_waking(0);
    assert_string_equal(life_name(&life), "WAKING");
    assert_int_equal(life_asleep(&life), -1);
    assert_int_equal(life_granted(&life, 8, 99, 0), -1);
    assert_int_equal(life.epoch, 7);
    assert_int_equal(life.lock, 99);

    life = in_active(0);
    assert_string_equal(life_name(&life), "ACTIVE");
    assert_int_equal(life_asleep(&life), -1);
    assert_int_equal(life_granted(&life, 8, 99, 0), -1);
    assert_int_equal(life_woken(&life, 0), -1);
    life_regranted(&life, 100);
    assert_int_equal(life.epoch, 7);
    assert_int_equal(life.lock, 100);
}


static void
nothing_comes_behind_the_end(void **state)
{
    life_t  life;

    life = in_standby();
    assert_int_equal(life_end(&life), 0);
    assert_int_equal(life_end(&life), -1);
    assert_string_equal(life_name(&life), "DEAD");
    assert_int_equal(life_granted(&life, 7, 99, 0), -1);
    probes_are(&life, 0, 0, 0, 0);

    life = in_waking(0);
    assert_int_equal(life_end(&life), 0);
    assert_int_equal(life_woken(&life, 0), -1);
}


static void
a_standby_is_live_for_ever_and_serves_never(void **state)
{
    life_t  life;

    life = in_init();
    probes_are(&life, 0, 0, 0, 0);
    life_turned(&life, &healthy, 10);
    probes_are(&life, 10, 0, 0, 0);

    life = in_standby();
    probes_are(&life, 0, 1, 1, 0);
    life_turned(&life, &healthy, 10);
    probes_are(&life, 1000000000, 1, 1, 0);
}


/* An operator who switches relies on it that a standby can be granted. */
static void
a_standby_is_shown_while_the_service_knows_it(void **state)
{
    life_t  life;

    life = in_standby();
    assert_int_equal(life_shown(&life, 10), LLMGW_GROUP_INIT);
    life_queued(&life, 0, 10);
    assert_int_equal(life_shown(&life, 10), LLMGW_GROUP_INIT);

    life_queued(&life, 1, 100);
    assert_int_equal(life_shown(&life, 100 + 10 * LIFE_AWAY_MS),
                     LLMGW_GROUP_STANDBY);

    life_queued(&life, 0, 50000);
    life_queued(&life, 0, 50001);
    assert_int_equal(life_shown(&life, 50000 + LIFE_AWAY_MS - 1),
                     LLMGW_GROUP_STANDBY);
    assert_int_equal(life_shown(&life, 50000 + LIFE_AWAY_MS),
                     LLMGW_GROUP_INIT);
    life_queued(&life, 1, 60000);
    assert_int_equal(life_shown(&life, 60000), LLMGW_GROUP_STANDBY);

    life_queued(&life, 0, 60000);
    assert_int_equal(life_granted(&life, 7, 99, 70000), 0);
    assert_int_equal(life_shown(&life, 70000), LLMGW_GROUP_WAKING);
}


/* An operator who switches needs to see that, too. */
static void
an_active_one_knows_whether_its_service_is_there(void **state)
{
    life_t  life;

    life = in_standby();
    assert_false(life_is_lock_away(&life));
    life = in_active(0);
    assert_false(life_is_lock_away(&life));

    life_queued(&life, 0, 10);
    assert_true(life_is_lock_away(&life));
    life_regranted(&life, 100);
    assert_false(life_is_lock_away(&life));

    life_queued(&life, 0, 20);
    life_queued(&life, 1, 30);
    assert_false(life_is_lock_away(&life));
}


static void
a_slow_wake_is_live_until_its_timeout(void **state)
{
    life_t  life;

    life = in_waking(1000);
    probes_are(&life, 1000, 1, 1, 0);
    probes_are(&life, 1000 + TIMEOUT_MS - 1, 1, 1, 0);
    assert_false(life_is_overdue(&life, 1000 + TIMEOUT_MS - 1));
    probes_are(&life, 1000 + TIMEOUT_MS, 0, 1, 0);
    assert_true(life_is_overdue(&life, 1000 + TIMEOUT_MS));

    assert_int_equal(life_woken(&life, 1000 + TIMEOUT_MS), -1);
    assert_int_equal(life_woken(&life, 1000 + TIMEOUT_MS - 1), 0);
    assert_false(life_is_overdue(&life, 1000 + TIMEOUT_MS));
}


static void
an_active_one_is_live_while_its_loop_turns_and_generates(void **state)
{
    life_t         life;
    life_vitals_t  vitals;

    life = in_active(1000);
    probes_are(&life, 1000, 1, 1, 1);
    probes_are(&life, 1000 + LIFE_STUCK_MS - 1, 1, 1, 1);
    probes_are(&life, 1000 + LIFE_STUCK_MS, 0, 1, 0);

    vitals = healthy;
    vitals.is_draining = 1;
    life_turned(&life, &vitals, 2000);
    probes_are(&life, 2000, 1, 1, 0);

    vitals.is_draining = 0;
    vitals.is_ready = 0;
    life_turned(&life, &vitals, 2000);
    probes_are(&life, 2000, 0, 1, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_life_goes_forward_and_nowhere_else),
        cmocka_unit_test(nothing_comes_behind_the_end),
        cmocka_unit_test(a_standby_is_live_for_ever_and_serves_never),
        cmocka_unit_test(a_standby_is_shown_while_the_service_knows_it),
        cmocka_unit_test(an_active_one_knows_whether_its_service_is_there),
        cmocka_unit_test(a_slow_wake_is_live_until_its_timeout),
        cmocka_unit_test(
            an_active_one_is_live_while_its_loop_turns_and_generates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
