
/* When a child is started, stopped and restarted; with fake time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "common/child/supervise.h"


#define MS     1000ULL
#define S      1000000ULL
#define BEGIN  (7 * S)
#define DRAIN  (25 * S)


/* A child that has been running since BEGIN. */
static supervise_t
running(void)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 1, BEGIN - SUPERVISE_ORPHAN_US);
    assert_int_equal(supervise_tick(&supervise, BEGIN), SUPERVISE_START);
    supervise_started(&supervise, BEGIN);

    return supervise;
}


/* Lets the child crash at now_us; returns the time of the next start. */
static uint64_t
crash(supervise_t *supervise, uint64_t now_us)
{
    uint64_t  next_us;

    assert_int_equal(supervise_exited(supervise, now_us), SUPERVISE_WAIT);
    assert_int_equal(supervise->state, SUPERVISE_BACKOFF);

    next_us = supervise_next_us(supervise);
    assert_int_equal(supervise_pause_us(supervise), next_us - now_us);
    assert_int_equal(supervise_tick(supervise, next_us - 1), SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(supervise, next_us), SUPERVISE_START);
    supervise_started(supervise, next_us);

    return next_us;
}


static void
an_orphan_is_waited_for_two_seconds(void **state)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 1, BEGIN);
    assert_int_equal(supervise_next_us(&supervise), BEGIN + 2 * S);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 2 * S - 1),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 2 * S),
                     SUPERVISE_START);
}


static void
child_is_started_at_once_where_there_is_no_orphan(void **state)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 0, BEGIN);
    assert_int_equal(supervise_next_us(&supervise), BEGIN);
    assert_int_equal(supervise_tick(&supervise, BEGIN), SUPERVISE_START);
}


static void
an_orphan_that_reports_is_adopted_and_nothing_is_started(void **state)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 1, BEGIN);
    assert_true(supervise_adopt(&supervise, BEGIN + S));
    assert_int_equal(supervise.state, SUPERVISE_RUNNING);
    assert_true(supervise_next_us(&supervise) == UINT64_MAX);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 100 * S),
                     SUPERVISE_WAIT);

    /* The adopted process counts as a child: after its crash one is started. */
    crash(&supervise, BEGIN + 200 * S);
}


static void
nobody_is_adopted_beside_a_child(void **state)
{
    supervise_t  supervise;

    supervise = running();
    assert_false(supervise_adopt(&supervise, BEGIN + S));

    supervise_exited(&supervise, BEGIN + 2 * S);
    assert_true(supervise_adopt(&supervise, BEGIN + 2 * S + 1));

    assert_int_equal(supervise_stop(&supervise, BEGIN + 3 * S),
                     SUPERVISE_TERM);
    assert_false(supervise_adopt(&supervise, BEGIN + 3 * S));
    supervise_exited(&supervise, BEGIN + 4 * S);
    assert_false(supervise_adopt(&supervise, BEGIN + 5 * S));
}


static void
the_pause_doubles_to_ten_seconds(void **state)
{
    size_t       i;
    uint64_t     now_us, next_us;
    supervise_t  supervise;

    static const uint64_t  pauses_ms[] = {
        250, 500, 1000, 2000, 4000, 8000, 10000, 10000
    };

    supervise = running();
    now_us = BEGIN;

    for (i = 0; i < sizeof(pauses_ms) / sizeof(pauses_ms[0]); i++) {
        now_us += 10 * MS;
        next_us = crash(&supervise, now_us);
        assert_int_equal(next_us - now_us, pauses_ms[i] * MS);
        now_us = next_us;
    }
}


static void
the_pause_is_short_again_after_thirty_seconds(void **state)
{
    uint64_t     now_us, next_us;
    supervise_t  supervise;

    supervise = running();
    now_us = crash(&supervise, BEGIN + 1);
    now_us = crash(&supervise, now_us + 1);

    next_us = crash(&supervise, now_us + 30 * S - 1);
    assert_int_equal(next_us - (now_us + 30 * S - 1), S);

    now_us = next_us + 30 * S;
    assert_int_equal(crash(&supervise, now_us) - now_us, 250 * MS);
}


static void
a_start_that_fails_is_a_crash(void **state)
{
    uint64_t     now_us;
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 1, BEGIN);
    now_us = BEGIN + 2 * S;
    assert_int_equal(supervise_tick(&supervise, now_us), SUPERVISE_START);
    assert_int_equal(supervise_exited(&supervise, now_us), SUPERVISE_WAIT);

    now_us += 250 * MS;
    assert_int_equal(supervise_tick(&supervise, now_us), SUPERVISE_START);
    assert_int_equal(supervise_exited(&supervise, now_us), SUPERVISE_WAIT);
    assert_int_equal(supervise_next_us(&supervise), now_us + 500 * MS);
}


static void
who_said_goodbye_rests_until_told(void **state)
{
    supervise_t  supervise;

    supervise = running();
    supervise_parted(&supervise);
    assert_int_equal(supervise_exited(&supervise, BEGIN + S), SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_RESTING);
    assert_true(supervise_next_us(&supervise) == UINT64_MAX);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 3600 * S),
                     SUPERVISE_WAIT);

    assert_int_equal(supervise_restart(&supervise, BEGIN + 3601 * S),
                     SUPERVISE_START);
    supervise_started(&supervise, BEGIN + 3601 * S);

    /* The goodbye counted only for the process that sent it. */
    crash(&supervise, BEGIN + 3602 * S);
}


static void
a_start_that_fails_after_a_rest_is_tried_again(void **state)
{
    supervise_t  supervise;

    supervise = running();
    supervise_parted(&supervise);
    supervise_exited(&supervise, BEGIN + S);
    assert_int_equal(supervise_restart(&supervise, BEGIN + 2 * S),
                     SUPERVISE_START);
    assert_int_equal(supervise_exited(&supervise, BEGIN + 2 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_next_us(&supervise), BEGIN + 2250 * MS);
}


static void
stop_is_TERM_then_TERM_then_KILL(void **state)
{
    uint64_t     now_us;
    supervise_t  supervise;

    supervise = running();
    now_us = BEGIN + S;
    assert_int_equal(supervise_stop(&supervise, now_us), SUPERVISE_TERM);
    assert_int_equal(supervise.state, SUPERVISE_STOPPING);

    now_us += DRAIN;
    assert_int_equal(supervise_tick(&supervise, now_us - 1), SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, now_us), SUPERVISE_TERM);

    now_us += SUPERVISE_KILL_US;
    assert_int_equal(supervise_tick(&supervise, now_us - 1), SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, now_us), SUPERVISE_KILL);

    assert_int_equal(supervise_exited(&supervise, now_us + 1),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);
    assert_true(supervise_next_us(&supervise) == UINT64_MAX);
}


static void
a_second_stop_does_not_wait_for_streams(void **state)
{
    supervise_t  supervise;

    supervise = running();
    assert_int_equal(supervise_stop(&supervise, BEGIN + S), SUPERVISE_TERM);
    assert_int_equal(supervise_stop(&supervise, BEGIN + 2 * S),
                     SUPERVISE_TERM);
    assert_int_equal(supervise_stop(&supervise, BEGIN + 3 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_next_us(&supervise),
                     BEGIN + 2 * S + SUPERVISE_KILL_US);
}


static void
stop_without_a_child_is_the_end(void **state)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 0, BEGIN);
    assert_int_equal(supervise_stop(&supervise, BEGIN), SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);

    supervise = running();
    supervise_exited(&supervise, BEGIN + S);
    assert_int_equal(supervise_stop(&supervise, BEGIN + S + 1),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 100 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_restart(&supervise, BEGIN + 100 * S),
                     SUPERVISE_WAIT);
}


static void
an_orphan_that_comes_after_a_stop_is_stopped(void **state)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 1, BEGIN);
    assert_int_equal(supervise_stop(&supervise, BEGIN), SUPERVISE_WAIT);
    assert_true(supervise_adopt(&supervise, BEGIN + S));
    assert_true(supervise.is_unwanted);
    assert_int_equal(supervise_stop(&supervise, BEGIN + S), SUPERVISE_TERM);
    assert_int_equal(supervise_exited(&supervise, BEGIN + 2 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);
}


static void
no_orphan_after_a_stop_is_the_end(void **state)
{
    supervise_t  supervise;

    supervise_init(&supervise, DRAIN, 1, BEGIN);
    assert_int_equal(supervise_stop(&supervise, BEGIN), SUPERVISE_WAIT);
    assert_int_equal(supervise_stop(&supervise, BEGIN + S), SUPERVISE_WAIT);
    assert_int_equal(supervise_next_us(&supervise),
                     BEGIN + SUPERVISE_ORPHAN_US);
    assert_int_equal(supervise_tick(&supervise, BEGIN + SUPERVISE_ORPHAN_US),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);
}


static void
restart_stops_and_starts_at_once(void **state)
{
    supervise_t  supervise;

    supervise = running();
    assert_int_equal(supervise_restart(&supervise, BEGIN + S),
                     SUPERVISE_TERM);
    supervise_parted(&supervise);
    assert_int_equal(supervise_exited(&supervise, BEGIN + 2 * S),
                     SUPERVISE_START);
    supervise_started(&supervise, BEGIN + 2 * S);
    assert_int_equal(supervise.state, SUPERVISE_RUNNING);
    crash(&supervise, BEGIN + 3 * S);
}


static void
restart_waits_for_no_streams(void **state)
{
    uint64_t     next_us;
    supervise_t  supervise;

    supervise = running();
    supervise_restart(&supervise, BEGIN + S);
    next_us = supervise_next_us(&supervise);
    assert_int_equal(next_us, BEGIN + S + SUPERVISE_RESTART_US);
    assert_int_equal(supervise_tick(&supervise, next_us), SUPERVISE_TERM);

    next_us += SUPERVISE_AGAIN_US;
    assert_int_equal(supervise_tick(&supervise, next_us - 1), SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, next_us), SUPERVISE_TERM);

    next_us += SUPERVISE_KILL_US;
    assert_int_equal(supervise_tick(&supervise, next_us - 1), SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, next_us), SUPERVISE_KILL);

    /* A restart that becomes a final stop gets the full timeout. */
    supervise = running();
    supervise_restart(&supervise, BEGIN + S);
    supervise_stop(&supervise, BEGIN + S);
    assert_int_equal(supervise_next_us(&supervise), BEGIN + S + DRAIN);
}


static void
stop_within_a_restart_starts_nothing(void **state)
{
    supervise_t  supervise;

    supervise = running();
    assert_int_equal(supervise_restart(&supervise, BEGIN + S),
                     SUPERVISE_TERM);
    assert_int_equal(supervise_stop(&supervise, BEGIN + S + 1),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_exited(&supervise, BEGIN + 2 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);
}


static void
stop_is_TERM_then_KILL_where_one_was_asked_for(void **state)
{
    supervise_t  supervise;

    supervise = running();
    supervise_set_stop(&supervise, 1, 10 * S);
    assert_int_equal(supervise_stop(&supervise, BEGIN + S), SUPERVISE_TERM);
    assert_int_equal(supervise_next_us(&supervise), BEGIN + 11 * S);
    assert_int_equal(supervise_stop(&supervise, BEGIN + 2 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 11 * S - 1),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise_tick(&supervise, BEGIN + 11 * S),
                     SUPERVISE_KILL);
    assert_int_equal(supervise_exited(&supervise, BEGIN + 12 * S),
                     SUPERVISE_WAIT);
    assert_int_equal(supervise.state, SUPERVISE_ENDED);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_orphan_is_waited_for_two_seconds),
        cmocka_unit_test(child_is_started_at_once_where_there_is_no_orphan),
        cmocka_unit_test(
            an_orphan_that_reports_is_adopted_and_nothing_is_started),
        cmocka_unit_test(nobody_is_adopted_beside_a_child),
        cmocka_unit_test(the_pause_doubles_to_ten_seconds),
        cmocka_unit_test(the_pause_is_short_again_after_thirty_seconds),
        cmocka_unit_test(a_start_that_fails_is_a_crash),
        cmocka_unit_test(who_said_goodbye_rests_until_told),
        cmocka_unit_test(a_start_that_fails_after_a_rest_is_tried_again),
        cmocka_unit_test(stop_is_TERM_then_TERM_then_KILL),
        cmocka_unit_test(a_second_stop_does_not_wait_for_streams),
        cmocka_unit_test(stop_without_a_child_is_the_end),
        cmocka_unit_test(an_orphan_that_comes_after_a_stop_is_stopped),
        cmocka_unit_test(no_orphan_after_a_stop_is_the_end),
        cmocka_unit_test(restart_stops_and_starts_at_once),
        cmocka_unit_test(restart_waits_for_no_streams),
        cmocka_unit_test(stop_within_a_restart_starts_nothing),
        cmocka_unit_test(stop_is_TERM_then_KILL_where_one_was_asked_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
