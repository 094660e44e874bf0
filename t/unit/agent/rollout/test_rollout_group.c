
/* A rolling update of standby groups: the order, the switch, and what fails. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "t/unit/agent/rollout/rollout_scene.h"


static const char *const  first[] = { "r1" };


/* The i-th member's agent reports this state of its process in the group. */
static void
says(scene_t *s, size_t i, llmgw_group_state_t state, uint64_t epoch)
{
    llmgw_member_t  *member;

    member = &s->members[i];
    member->group_state = state;
    member->group_epoch = epoch;
    member->service = state == LLMGW_GROUP_ACTIVE ? LLMGW_SERVICE_READY
                                                  : LLMGW_SERVICE_STARTING;
}


static void
joins(scene_t *s, size_t i, const char *group, llmgw_group_state_t state,
    uint64_t epoch)
{
    strcpy(s->members[i].group, group);
    says(s, i, state, epoch);
}


/* r1 is active, r2 stands by. */
static void
scene_group(scene_t *s)
{
    scene_open(s, 2);
    joins(s, 0, "g", LLMGW_GROUP_ACTIVE, 10);
    joins(s, 1, "g", LLMGW_GROUP_STANDBY, 0);
}


/* The i-th member has a new process, which stands by. */
static void
stands_by(scene_t *s, size_t i, const char *version)
{
    says(s, i, LLMGW_GROUP_STANDBY, 0);
    s->members[i].liveness = LLMGW_LIVENESS_ALIVE;
    s->members[i].replica_start_ms += 100;
    strcpy(s->members[i].model_version, version);
    s->now_us += S / 10;
    scene_look(s);
}


/* The to-th member takes over; the from-th comes back as a standby. */
static void
takes_over(scene_t *s, size_t from, size_t to)
{
    says(s, to, LLMGW_GROUP_ACTIVE, s->members[from].group_epoch + 1);
    stands_by(s, from, "v1");
}


/* Does all actions of a standby's step, in order. */
static void
renew(scene_t *s, size_t step)
{
    size_t  i;

    i = scene_member(s, step) - s->members;
    scene_expect(s, ROLLOUT_RESTART, step);
    scene_done(s, step);
    assert_state(s, step, ROLLOUT_REJOINING);
    stands_by(s, i, "v2");
    assert_state(s, step, ROLLOUT_DONE);
}


/* Does the switch, and the rest of the active member's step. */
static void
switched(scene_t *s, size_t step, size_t to)
{
    size_t  i;

    i = scene_member(s, step) - s->members;
    scene_expect(s, ROLLOUT_SWITCH, step);
    scene_done(s, step);
    assert_state(s, step, ROLLOUT_SWITCHING);
    takes_over(s, i, to);
    scene_expect(s, ROLLOUT_PROBE, step);
    assert_string_equal(rollout_probed(&s->rollout->steps[step]),
                        s->members[to].id);
    scene_done(s, step);
    renew(s, step);
}


/* Plans, updates r2, and begins the switch of r1. */
static void
scene_switching(scene_t *s)
{
    scene_group(s);
    scene_plan(s);
    renew(s, 0);
    scene_expect(s, ROLLOUT_SWITCH, 1);
    scene_done(s, 1);
}


static void
assert_failed(scene_t *s, size_t step, rollout_state_t in, const char *word)
{
    assert_state(s, step, ROLLOUT_FAILED);
    assert_string_equal(rollout_state_name(s->rollout->steps[step].failed_in),
                        rollout_state_name(in));
    assert_non_null(strstr(s->rollout->steps[step].reason, word));
    assert_true(rollout_is_over(s->rollout));
}


static void
standby_goes_first_then_the_switch_then_the_other(void **state)
{
    scene_t  s;

    scene_group(&s);
    scene_plan(&s);
    assert_string_equal(s.rollout->steps[0].id, "r2");

    /* A group with one routable member does not need --min-available 0. */
    assert_int_equal(s.rollout->min_available, 1);
    renew(&s, 0);
    switched(&s, 1, 1);

    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    assert_int_equal(rollout_count(s.rollout, ROLLOUT_DONE), 2);
    assert_false(s.rollout->steps[0].is_drained);
    assert_false(s.rollout->steps[1].is_drained);
    scene_close(&s);
}


static void
commands_run_when_the_successor_has_shown_that_it_serves(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.spec.has_stop = 1;
    s.spec.has_start = 1;
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_STOP, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_START, 0);
    scene_done(&s, 0);
    stands_by(&s, 1, "v2");
    assert_state(&s, 0, ROLLOUT_DONE);

    scene_expect(&s, ROLLOUT_SWITCH, 1);
    scene_done(&s, 1);
    takes_over(&s, 0, 1);
    scene_expect(&s, ROLLOUT_PROBE, 1);
    scene_done(&s, 1);

    /* A standby has a process: if it cannot be stopped, the step fails. */
    scene_expect(&s, ROLLOUT_STOP, 1);
    scene_result(&s, 1, "exit status 3");
    assert_failed(&s, 1, ROLLOUT_STOPPING, "exit status 3");
    scene_close(&s);
}


/* r1 and r4 are of a, r3 and r6 of b; r2 serves, r5 is down. */
static void
groups_and_plain_replicas_are_units_of_one_plan(void **state)
{
    size_t   i;
    scene_t  s;

    static const char *const  order[] = {
        "r5", "r4", "r1", "r2", "r3", "r6"
    };

    scene_open(&s, 6);
    joins(&s, 0, "a", LLMGW_GROUP_ACTIVE, 10);
    joins(&s, 3, "a", LLMGW_GROUP_STANDBY, 0);
    joins(&s, 2, "b", LLMGW_GROUP_STANDBY, 0);
    joins(&s, 5, "b", LLMGW_GROUP_ACTIVE, 20);
    s.members[4].service = LLMGW_SERVICE_DOWN;
    scene_plan(&s);
    assert_int_equal(s.rollout->min_available, 2);

    for (i = 0; i < 6; i++) {
        assert_string_equal(s.rollout->steps[i].id, order[i]);
    }

    scene_step_down(&s, 0);
    renew(&s, 1);
    switched(&s, 2, 3);
    scene_step(&s, 3);
    renew(&s, 4);
    switched(&s, 5, 2);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


static void
members_of_one_group_are_never_updated_at_once(void **state)
{
    scene_t  s;

    scene_open(&s, 4);
    joins(&s, 0, "a", LLMGW_GROUP_ACTIVE, 10);
    joins(&s, 1, "a", LLMGW_GROUP_STANDBY, 0);
    joins(&s, 2, "b", LLMGW_GROUP_ACTIVE, 10);
    joins(&s, 3, "b", LLMGW_GROUP_STANDBY, 0);
    s.spec.max_unavailable = 3;
    scene_plan(&s);

    /* The other group does not wait for the first. */
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_expect(&s, ROLLOUT_RESTART, 2);
    scene_quiet(&s);
    scene_done(&s, 0);
    stands_by(&s, 1, "v2");
    scene_expect(&s, ROLLOUT_SWITCH, 1);
    scene_quiet(&s);
    scene_close(&s);
}


/* The standby has the version already, so that only the switch is left. */
static void
standby_of_the_version_has_it(void **state)
{
    scene_t  s;

    scene_group(&s);
    strcpy(s.members[1].model_version, "v2");
    scene_plan(&s);
    assert_state(&s, 0, ROLLOUT_SKIPPED);
    switched(&s, 1, 1);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


/* An earlier driver started this standby in the new version, and was killed. */
static void
one_that_starts_in_the_version_is_waited_for(void **state)
{
    scene_t  s;

    scene_group(&s);
    joins(&s, 1, "g", LLMGW_GROUP_INIT, 0);
    strcpy(s.members[1].model_version, "v2");
    scene_plan(&s);
    assert_state(&s, 0, ROLLOUT_REJOINING);
    scene_quiet(&s);
    joins(&s, 1, "g", LLMGW_GROUP_STANDBY, 0);
    scene_look(&s);
    assert_state(&s, 0, ROLLOUT_DONE);
    scene_expect(&s, ROLLOUT_SWITCH, 1);
    scene_close(&s);

    scene_group(&s);
    joins(&s, 1, "g", LLMGW_GROUP_INIT, 0);
    strcpy(s.members[1].model_version, "v2");
    scene_plan(&s);
    s.now_us += REJOIN_US;
    scene_look(&s);
    assert_failed(&s, 0, ROLLOUT_REJOINING, "not back after 30 s: it is "
                  "still at \"init\"");
    scene_close(&s);
}


/* The updated standby becomes active by a failover, before the switch. */
static void
one_that_is_active_no_more_is_replaced_at_once(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.settle_us = S;
    scene_plan(&s);
    s.now_us += S;
    scene_look(&s);
    renew(&s, 0);
    takes_over(&s, 0, 1);
    s.now_us += S;
    scene_look(&s);
    renew(&s, 1);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


/* The failover comes before the standby's step: then the other member is
   updated first. */
static void
order_within_a_group_follows_who_is_active(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.settle_us = S;
    scene_plan(&s);
    assert_string_equal(s.rollout->steps[0].id, "r2");
    takes_over(&s, 0, 1);
    s.now_us += S;
    scene_look(&s);
    renew(&s, 1);
    s.now_us += S;
    scene_look(&s);
    switched(&s, 0, 0);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


static void
waking_is_waited_for(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.members[0].service = LLMGW_SERVICE_DOWN;
    joins(&s, 1, "g", LLMGW_GROUP_WAKING, 11);
    scene_plan(&s);
    scene_quiet(&s);
    joins(&s, 1, "g", LLMGW_GROUP_ACTIVE, 11);
    scene_look(&s);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_close(&s);

    scene_group(&s);
    s.members[0].service = LLMGW_SERVICE_DOWN;
    joins(&s, 1, "g", LLMGW_GROUP_WAKING, 11);
    scene_plan(&s);
    s.now_us += REJOIN_US;
    scene_look(&s);
    assert_failed(&s, 0, ROLLOUT_WAITING, "waking, for 30 s");
    scene_close(&s);
}


/* No member of the group serves, so the update does not wait for one that
   does: it may be what the group needs. */
static void
group_without_an_active_one_is_updated_one_by_one(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.members[0].service = LLMGW_SERVICE_DOWN;
    scene_plan(&s);
    assert_string_equal(s.rollout->steps[0].id, "r1");
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_done(&s, 0);
    joins(&s, 0, "g", LLMGW_GROUP_ACTIVE, 12);
    scene_back(&s, 0, "v2");

    /* r1 is routable, so that it can be probed. */
    scene_expect(&s, ROLLOUT_PROBE, 0);
    assert_string_equal(rollout_probed(&s.rollout->steps[0]), "r1");
    scene_done(&s, 0);
    assert_state(&s, 0, ROLLOUT_DONE);
    renew(&s, 1);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);
}


static void
one_alone_in_its_group_is_updated_as_of_none(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    joins(&s, 0, "g", LLMGW_GROUP_ACTIVE, 10);
    scene_plan(&s);
    scene_step(&s, 0);
    scene_step(&s, 1);
    assert_int_equal(s.rollout->verdict, ROLLOUT_COMPLETE);
    scene_close(&s);

    /* The other member's agent is gone. */
    scene_group(&s);
    s.members[1].liveness = LLMGW_LIVENESS_DEAD;
    scene_refused(&s, ROLLOUT_TOO_FEW, "--min-available");
    scene_close(&s);
}


/* --- what fails */

static void
active_one_without_a_successor_is_left_alone(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.settle_us = S;
    scene_plan(&s);
    s.now_us += S;
    scene_look(&s);
    renew(&s, 0);
    s.members[1].service = LLMGW_SERVICE_DOWN;
    s.now_us += S;
    scene_quiet(&s);
    s.now_us += REJOIN_US;
    scene_look(&s);
    assert_failed(&s, 1, ROLLOUT_WAITING, "no standby of the new version");
    assert_state(&s, 0, ROLLOUT_DONE);
    scene_close(&s);
}


static void
successor_of_the_old_version_fails_the_switch(void **state)
{
    scene_t  s;

    scene_switching(&s);
    joins(&s, 0, "g", LLMGW_GROUP_ACTIVE, 12);
    scene_look(&s);
    assert_failed(&s, 1, ROLLOUT_SWITCHING, "\"r1\" of version \"v1\" is "
                  "active now");
    scene_close(&s);
}


static void
switch_is_not_waited_for_for_ever(void **state)
{
    scene_t  s;

    scene_switching(&s);
    s.now_us += REJOIN_US - 1;
    scene_quiet(&s);
    s.now_us++;
    scene_look(&s);
    assert_failed(&s, 1, ROLLOUT_SWITCHING, "no standby has taken over "
                  "after 30 s");
    scene_close(&s);

    /* A switch that cannot be ordered, and is put back again and again, fails
       then, too. */
    scene_group(&s);
    scene_plan(&s);
    renew(&s, 0);
    scene_expect(&s, ROLLOUT_SWITCH, 1);
    rollout_put_back(s.rollout, 1, ROLLOUT_SWITCH);
    scene_expect(&s, ROLLOUT_SWITCH, 1);
    rollout_put_back(s.rollout, 1, ROLLOUT_SWITCH);
    s.now_us += REJOIN_US;
    scene_quiet(&s);
    assert_failed(&s, 1, ROLLOUT_SWITCHING, "no standby");
    scene_close(&s);
}


static void
switch_that_is_refused_fails(void **state)
{
    scene_t  s;

    scene_group(&s);
    scene_plan(&s);
    renew(&s, 0);
    scene_expect(&s, ROLLOUT_SWITCH, 1);
    scene_result(&s, 1, "its agent cannot be reached");
    assert_failed(&s, 1, ROLLOUT_SWITCHING, "cannot be reached");
    scene_close(&s);
}


/* The other member keeps the old version, so that a switch can lead back. */
static void
successor_that_does_not_generate_fails_the_step(void **state)
{
    scene_t  s;

    scene_switching(&s);
    takes_over(&s, 0, 1);
    scene_expect(&s, ROLLOUT_PROBE, 1);
    scene_result(&s, 1, "UNAVAILABLE");
    assert_failed(&s, 1, ROLLOUT_PROBING, "UNAVAILABLE");
    scene_quiet(&s);
    scene_close(&s);
}


static void
abort_lets_a_switch_go_on_to_its_end(void **state)
{
    scene_t  s;

    scene_switching(&s);
    rollout_end(s.rollout, ROLLOUT_ABORTED, s.now_us);
    assert_state(&s, 1, ROLLOUT_SWITCHING);
    takes_over(&s, 0, 1);
    scene_expect(&s, ROLLOUT_PROBE, 1);
    scene_done(&s, 1);
    renew(&s, 1);
    assert_true(rollout_is_over(s.rollout));
    assert_int_equal(s.rollout->verdict, ROLLOUT_ABORTED);
    scene_close(&s);

    scene_group(&s);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    rollout_end(s.rollout, ROLLOUT_ABORTED, s.now_us);
    assert_state(&s, 1, ROLLOUT_UNDONE);
    scene_done(&s, 0);
    stands_by(&s, 1, "v2");
    assert_true(rollout_is_over(s.rollout));
    scene_close(&s);
}


/* --- refused */

static void
part_of_a_group_is_refused(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.spec.ids = first;
    s.spec.nids = 1;
    scene_refused(&s, ROLLOUT_PARTIAL, "\"r2\": a group is updated as a "
                  "whole");

    /* The rest of the group has the version, or is not there. */
    strcpy(s.members[1].model_version, "v2");
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_SWITCH, 0);
    scene_close(&s);
}


static void
group_is_not_switched_without_a_keyring(void **state)
{
    scene_t  s;

    scene_group(&s);
    s.spec.has_start = 1;
    s.spec.has_orders = 0;
    scene_refused(&s, ROLLOUT_NOBODY, "group \"g\" of replica \"r2\" cannot "
                  "be switched");
    scene_close(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(standby_goes_first_then_the_switch_then_the_other),
        cmocka_unit_test(
            commands_run_when_the_successor_has_shown_that_it_serves),
        cmocka_unit_test(groups_and_plain_replicas_are_units_of_one_plan),
        cmocka_unit_test(members_of_one_group_are_never_updated_at_once),
        cmocka_unit_test(standby_of_the_version_has_it),
        cmocka_unit_test(one_that_starts_in_the_version_is_waited_for),
        cmocka_unit_test(one_that_is_active_no_more_is_replaced_at_once),
        cmocka_unit_test(order_within_a_group_follows_who_is_active),
        cmocka_unit_test(waking_is_waited_for),
        cmocka_unit_test(group_without_an_active_one_is_updated_one_by_one),
        cmocka_unit_test(one_alone_in_its_group_is_updated_as_of_none),
        cmocka_unit_test(active_one_without_a_successor_is_left_alone),
        cmocka_unit_test(successor_of_the_old_version_fails_the_switch),
        cmocka_unit_test(switch_is_not_waited_for_for_ever),
        cmocka_unit_test(switch_that_is_refused_fails),
        cmocka_unit_test(successor_that_does_not_generate_fails_the_step),
        cmocka_unit_test(abort_lets_a_switch_go_on_to_its_end),
        cmocka_unit_test(part_of_a_group_is_refused),
        cmocka_unit_test(group_is_not_switched_without_a_keyring)
    };

    return cmocka_run_group_tests_name("rollout_group", tests, NULL, NULL);
}
