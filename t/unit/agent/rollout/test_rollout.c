
/* A rolling update, step by step, with fake members and fake time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "t/unit/agent/rollout/rollout_scene.h"


static void
a_pool_is_updated_one_by_one_in_the_order_of_ids(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    scene_plan(&s);
    assert_int_equal(s.rollout->min_available, 2);

    scene_step(&s, 0);
    assert_state(&s, 1, ROLLOUT_DRAINING);
    scene_step(&s, 1);
    scene_step(&s, 2);

    assert_true(rollout_is_over(s.rollout));
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    assert_int_equal(rollout_count(s.rollout, ROLLOUT_DONE), 3);
    scene_close(&s);
}


static void
commands_are_run_instead_of_orders(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    s.spec.has_start = 1;
    s.spec.has_stop = 1;
    s.spec.has_orders = 0;
    scene_plan(&s);

    scene_drained(&s, 0);
    scene_expect(&s, ROLLOUT_STOP, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_START, 0);
    scene_done(&s, 0);
    scene_back(&s, 0, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_state(&s, 0, ROLLOUT_DONE);
    scene_close(&s);
}


static void
start_alone_is_a_restart(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    s.spec.has_start = 1;
    scene_plan(&s);
    scene_drained(&s, 0);
    scene_expect(&s, ROLLOUT_START, 0);
    scene_close(&s);
}


static void
who_has_the_version_is_skipped(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    strcpy(s.members[1].model_version, "v2");
    scene_plan(&s);
    assert_state(&s, 1, ROLLOUT_SKIPPED);

    scene_step(&s, 0);

    /* The third replica follows: the second, which has the version, is passed
       over. */
    assert_state(&s, 2, ROLLOUT_DRAINING);
    scene_step(&s, 2);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


static void
whoever_got_the_version_meanwhile_is_skipped_in_its_turn(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    scene_plan(&s);
    strcpy(s.members[2].model_version, "v2");
    scene_step(&s, 0);
    scene_step(&s, 1);
    assert_state(&s, 2, ROLLOUT_SKIPPED);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


static void
nothing_to_do_is_complete_at_once(void **state)
{
    scene_t  s;

    scene_open(&s, 1);
    strcpy(s.members[0].model_version, "v2");
    scene_plan(&s);
    assert_true(rollout_is_over(s.rollout));
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


static void
who_is_not_ready_goes_first_and_takes_nothing_away(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.members[2].service = LLMGW_SERVICE_DOWN;
    s.spec.min_available = 2;
    scene_plan(&s);
    assert_string_equal(s.rollout->steps[0].id, "r3");

    /* Two are routable and two have to stay so; r3 is not routable, so it may
       go. */
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_done(&s, 0);
    scene_back(&s, 2, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);

    /* Now three are routable. */
    scene_expect(&s, ROLLOUT_DRAIN, 1);
    scene_close(&s);
}


static void
drained_is_what_was_told_after_the_drain_held(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    s.loads[0].active_requests = 0;
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_look(&s);
    assert_state(&s, 0, ROLLOUT_DRAINING);      /* no answer to Drain yet */

    scene_done(&s, 0);
    assert_state(&s, 0, ROLLOUT_DRAINING);      /* the figure is an old one */

    s.now_us += S / 2;
    scene_load(&s, 0, 3);
    assert_state(&s, 0, ROLLOUT_DRAINING);
    assert_int_equal(s.rollout->steps[0].streams, 3);

    scene_load(&s, 0, 0);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    assert_false(s.rollout->steps[0].is_late);
    scene_close(&s);
}


static void
drain_timeout_proceeds_with_streams_left(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_done(&s, 0);
    scene_load(&s, 0, 7);

    s.now_us = BEGIN + DRAIN_US - 1;
    scene_look(&s);
    assert_state(&s, 0, ROLLOUT_DRAINING);
    s.now_us++;
    scene_look(&s);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    assert_true(s.rollout->steps[0].is_late);
    assert_int_equal(s.rollout->steps[0].streams, 7);
    scene_close(&s);
}


static void
who_dies_while_it_drains_is_restarted(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_done(&s, 0);
    scene_load(&s, 0, 5);
    s.members[0].service = LLMGW_SERVICE_DOWN;
    scene_look(&s);
    scene_expect(&s, ROLLOUT_RESTART, 0);

    /* The replica's agent was faster, and brought the old version back. */
    s.members[0].service = LLMGW_SERVICE_READY;
    s.members[0].replica_start_ms++;
    scene_look(&s);
    scene_done(&s, 0);
    scene_look(&s);
    assert_state(&s, 0, ROLLOUT_REJOINING);
    s.now_us += ROLLOUT_WRONG_US - 1;
    scene_look(&s);
    scene_back(&s, 0, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_close(&s);
}


static void
nothing_begins_before_others_could_hear_of_it(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    s.settle_us = S;
    scene_plan(&s);
    scene_quiet(&s);
    s.now_us += S;
    scene_look(&s);

    /* No further step until others have had time to learn that it is back. */
    scene_step(&s, 0);
    scene_quiet(&s);
    s.now_us += S - 1;
    scene_quiet(&s);
    s.now_us++;
    scene_look(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 1);
    scene_close(&s);
}


/* Whether the step's renewal is the next action; others are left to be done. */
static int
scene_renews(scene_t *s, size_t step)
{
    size_t            i;
    rollout_action_t  action;

    action = rollout_next(s->rollout, &i, s->now_us);

    if (action != ROLLOUT_RENEW && action != ROLLOUT_NOTHING) {
        rollout_put_back(s->rollout, i, action);
    }

    return action == ROLLOUT_RENEW && i == step;
}


static void
leases_are_renewed_until_the_release(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    assert_false(scene_renews(&s, 0));
    scene_drained(&s, 0);
    scene_expect(&s, ROLLOUT_RESTART, 0);

    s.now_us = s.rollout->steps[0].held_us + ROLLOUT_RENEW_US - 1;
    assert_false(scene_renews(&s, 0));
    s.now_us++;
    assert_true(scene_renews(&s, 0));
    assert_false(scene_renews(&s, 0));

    /* The undrain waits until the renewal in progress is done. */
    scene_done(&s, 0);
    scene_back(&s, 0, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_done(&s, 0);
    scene_quiet(&s);
    rollout_result(s.rollout, 0, ROLLOUT_RENEW, NULL, s.now_us);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    s.now_us += 2 * ROLLOUT_RENEW_US;
    assert_false(scene_renews(&s, 0));
    scene_close(&s);
}


/* An action is put back, as if the agent could send no more orders just now. */
static void
what_cannot_be_begun_now_is_asked_for_again(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    rollout_put_back(s.rollout, 0, ROLLOUT_DRAIN);
    scene_drained(&s, 0);
    scene_expect(&s, ROLLOUT_RESTART, 0);

    s.now_us += ROLLOUT_RENEW_US;
    assert_true(scene_renews(&s, 0));
    rollout_put_back(s.rollout, 0, ROLLOUT_RENEW);
    assert_true(scene_renews(&s, 0));
    rollout_result(s.rollout, 0, ROLLOUT_RENEW, NULL, s.now_us);
    assert_false(scene_renews(&s, 0));
    scene_close(&s);
}


static void
an_agent_that_started_anew_is_drained_again(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_done(&s, 0);
    s.members[0].epoch++;
    scene_load(&s, 0, 0);
    assert_state(&s, 0, ROLLOUT_DRAINING);
    scene_drained(&s, 0);

    /* The replica's process is being replaced: the new one gets no Drain. */
    scene_expect(&s, ROLLOUT_RESTART, 0);
    s.members[0].epoch++;
    s.now_us += ROLLOUT_RENEW_US;
    scene_quiet(&s);
    assert_false(scene_renews(&s, 0));
    scene_done(&s, 0);
    scene_quiet(&s);
    scene_close(&s);
}


/* The step waits neither for the drain to show nor for a report. */
static void
an_agent_that_starts_anew_again_and_again_is_not_waited_for(void **state)
{
    size_t   i, step;
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_done(&s, 0);
    s.members[0].service = LLMGW_SERVICE_STARTING;

    for (i = 0; i < (DRAIN_US + ROLLOUT_ORPHAN_US) / S; i++) {
        s.members[0].epoch++;
        s.now_us += S;
        scene_look(&s);

        if (scene_next(&s, &step) == ROLLOUT_DRAIN) {
            scene_result(&s, step, NULL);
        }
    }

    s.members[0].epoch++;
    scene_look(&s);
    assert_state(&s, 0, ROLLOUT_RESTARTING);
    scene_close(&s);
}


static void
a_replica_that_its_agent_may_adopt_is_waited_for(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    s.members[0].service = LLMGW_SERVICE_STARTING;
    scene_done(&s, 0);
    s.now_us += ROLLOUT_ORPHAN_US - 1;
    scene_quiet(&s);
    s.now_us++;
    scene_look(&s);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_close(&s);

    scene_open(&s, 2);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    s.members[0].service = LLMGW_SERVICE_STARTING;
    scene_done(&s, 0);
    scene_quiet(&s);
    s.members[0].service = LLMGW_SERVICE_READY;
    scene_load(&s, 0, 1);
    scene_quiet(&s);
    scene_load(&s, 0, 0);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_close(&s);
}


static void
as_many_at_once_as_were_asked_for(void **state)
{
    scene_t  s;

    scene_open(&s, 5);
    s.spec.max_unavailable = 2;
    scene_plan(&s);
    assert_int_equal(s.rollout->min_available, 3);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_expect(&s, ROLLOUT_DRAIN, 1);
    scene_quiet(&s);

    /* The second is done before the first: then the third may begin. */
    scene_hold(&s, 1);
    scene_load(&s, 1, 0);
    scene_expect(&s, ROLLOUT_RESTART, 1);
    scene_done(&s, 1);
    scene_back(&s, 1, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 1);
    scene_done(&s, 1);
    scene_expect(&s, ROLLOUT_UNDRAIN, 1);
    scene_quiet(&s);
    scene_release(&s, 1);
    scene_expect(&s, ROLLOUT_DRAIN, 2);
    scene_quiet(&s);
    scene_close(&s);
}


static void
never_fewer_than_the_least(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.spec.max_unavailable = 2;
    s.spec.min_available = 2;
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_quiet(&s);
    scene_close(&s);
}


static void
waits_for_the_others_to_come_back(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.settle_us = S;
    scene_plan(&s);
    s.members[2].liveness = LLMGW_LIVENESS_SUSPECT;
    s.now_us += S;
    scene_quiet(&s);
    s.now_us += REJOIN_US - 1;
    scene_quiet(&s);
    s.members[2].liveness = LLMGW_LIVENESS_ALIVE;
    scene_look(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_close(&s);
}


static void
too_few_for_too_long_ends_it(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.settle_us = S;
    scene_plan(&s);
    s.members[2].service = LLMGW_SERVICE_DOWN;
    s.now_us += S;
    scene_quiet(&s);
    s.now_us += REJOIN_US;
    scene_look(&s);
    assert_state(&s, 0, ROLLOUT_FAILED);
    assert_int_equal(s.rollout->steps[0].failed_in, ROLLOUT_WAITING);
    assert_non_null(strstr(s.rollout->steps[0].reason, "must stay routable"));
    assert_true(rollout_is_over(s.rollout));
    scene_close(&s);
}


static void
news_name_each_step_that_changed_once(void **state)
{
    size_t   step;
    scene_t  s;

    scene_open(&s, 2);
    scene_plan(&s);
    assert_true(rollout_changed(s.rollout, &step));
    assert_int_equal(step, 0);
    assert_false(rollout_changed(s.rollout, &step));
    scene_close(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_pool_is_updated_one_by_one_in_the_order_of_ids),
        cmocka_unit_test(commands_are_run_instead_of_orders),
        cmocka_unit_test(start_alone_is_a_restart),
        cmocka_unit_test(who_has_the_version_is_skipped),
        cmocka_unit_test(
            whoever_got_the_version_meanwhile_is_skipped_in_its_turn),
        cmocka_unit_test(nothing_to_do_is_complete_at_once),
        cmocka_unit_test(who_is_not_ready_goes_first_and_takes_nothing_away),
        cmocka_unit_test(drained_is_what_was_told_after_the_drain_held),
        cmocka_unit_test(drain_timeout_proceeds_with_streams_left),
        cmocka_unit_test(who_dies_while_it_drains_is_restarted),
        cmocka_unit_test(nothing_begins_before_others_could_hear_of_it),
        cmocka_unit_test(leases_are_renewed_until_the_release),
        cmocka_unit_test(what_cannot_be_begun_now_is_asked_for_again),
        cmocka_unit_test(an_agent_that_started_anew_is_drained_again),
        cmocka_unit_test(
            an_agent_that_starts_anew_again_and_again_is_not_waited_for),
        cmocka_unit_test(a_replica_that_its_agent_may_adopt_is_waited_for),
        cmocka_unit_test(as_many_at_once_as_were_asked_for),
        cmocka_unit_test(never_fewer_than_the_least),
        cmocka_unit_test(waits_for_the_others_to_come_back),
        cmocka_unit_test(too_few_for_too_long_ends_it),
        cmocka_unit_test(news_name_each_step_that_changed_once)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
