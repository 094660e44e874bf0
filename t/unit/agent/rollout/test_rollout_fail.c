
/* A rolling update that is refused, that fails, or that is aborted. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "rollout/rollout_json.h"
#include "t/unit/agent/rollout/rollout_scene.h"


static const char *const  some_ids[] = { "r2", "r9" };
static const char *const  second[] = { "r2" };


/* Checks that the step failed in that state for this reason, and that the
   update is over. */
static void
assert_failed(scene_t *s, size_t step, rollout_state_t in, const char *word)
{
    assert_state(s, step, ROLLOUT_FAILED);
    assert_string_equal(rollout_state_name(s->rollout->steps[step].failed_in),
                        rollout_state_name(in));
    assert_non_null(strstr(s->rollout->steps[step].reason, word));
    assert_int_equal(s->rollout->verdict, ROLLOUT_BROKEN);
}


/* Begins the first step, up to its restart; no other step has begun. */
static void
scene_restarting(scene_t *s, size_t n)
{
    scene_open(s, n);
    scene_plan(s);
    scene_drained(s, 0);
    scene_expect(s, ROLLOUT_RESTART, 0);
}


/* --- refused */

static void
unknown_ids_and_gateways_are_refused(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.spec.ids = some_ids;
    s.spec.nids = 2;
    scene_refused(&s, ROLLOUT_UNKNOWN, "\"r9\"");

    s.spec.ids = second;
    s.spec.nids = 1;
    s.members[1].role = LLMGW_ROLE_GATEWAY;
    scene_refused(&s, ROLLOUT_UNKNOWN, "\"r2\" is no replica");
}


static void
whom_nobody_can_restart_refuses_all(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.can_restart[2] = 0;
    scene_refused(&s, ROLLOUT_NOBODY, "\"r3\"");

    s.can_restart[2] = 1;
    s.spec.has_orders = 0;
    scene_refused(&s, ROLLOUT_NOBODY, "keyring");

    s.spec.has_start = 1;
    scene_plan(&s);
    scene_close(&s);

    /* Members that have the version or are not selected need no restart. */
    s.spec.has_start = 0;
    s.spec.has_orders = 1;
    s.can_restart[2] = 0;
    strcpy(s.members[2].model_version, "v2");
    scene_plan(&s);
    scene_close(&s);
}


static void
who_does_not_report_is_refused(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    s.members[1].replica_start_ms = 0;
    s.members[1].model_version[0] = '\0';
    scene_refused(&s, ROLLOUT_UNSEEN, "\"r2\"");

    /* It is accepted if no replica runs there yet. */
    s.members[1].service = LLMGW_SERVICE_STARTING;
    scene_plan(&s);
    scene_close(&s);
}


static void
the_last_ones_are_refused_unless_it_is_said(void **state)
{
    scene_t  s;

    scene_open(&s, 1);
    scene_refused(&s, ROLLOUT_TOO_FEW, "--min-available");
    s.spec.min_available = 0;
    scene_plan(&s);
    scene_close(&s);

    scene_open(&s, 3);
    s.spec.min_available = 3;
    scene_refused(&s, ROLLOUT_TOO_FEW, "3 must stay");

    /* With the replica that the plan brings back, enough are routable. */
    scene_open(&s, 2);
    s.members[0].service = LLMGW_SERVICE_DOWN;
    scene_plan(&s);
    assert_int_equal(s.rollout->min_available, 1);
    scene_close(&s);
}


static void
who_left_is_left_alone_unless_named(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.members[1].liveness = LLMGW_LIVENESS_LEFT;
    s.spec.has_start = 1;
    scene_plan(&s);
    assert_int_equal(s.rollout->nsteps, 2);
    scene_close(&s);

    /* Named in `also`: one that an earlier update left behind, and one unknown
       here. */
    s.spec.also = some_ids;
    s.spec.nalso = 2;
    scene_plan(&s);
    assert_int_equal(s.rollout->nsteps, 3);
    scene_close(&s);

    s.spec.ids = second;
    s.spec.nids = 1;
    scene_plan(&s);
    assert_int_equal(s.rollout->nsteps, 1);

    /* There is no replica that could be drained. */
    scene_expect(&s, ROLLOUT_START, 0);
    scene_close(&s);
}


static void
who_is_dead_is_absent_unless_named(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.members[1].liveness = LLMGW_LIVENESS_DEAD;
    s.can_restart[1] = 0;
    scene_plan(&s);
    assert_int_equal(s.rollout->nsteps, 3);
    assert_state(&s, 0, ROLLOUT_ABSENT);
    assert_string_equal(s.rollout->steps[0].id, "r2");
    scene_close(&s);

    s.can_restart[1] = 1;
    s.spec.ids = second;
    s.spec.nids = 1;
    scene_plan(&s);
    assert_state(&s, 0, ROLLOUT_RESTARTING);
    scene_close(&s);
}


static void
an_agent_that_sees_nobody_refuses(void **state)
{
    scene_t  s;

    scene_open(&s, 2);
    s.members[0].liveness = LLMGW_LIVENESS_DEAD;
    s.members[1].liveness = LLMGW_LIVENESS_LEFT;
    scene_refused(&s, ROLLOUT_UNKNOWN, "no replica");
    s.roster.n = 0;
    scene_refused(&s, ROLLOUT_UNKNOWN, "no replica");
}


/* --- failed */

static void
a_drain_that_does_not_arrive_fails(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_result(&s, 0, "unreachable");
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);       /* the drain may have arrived */
    scene_result(&s, 0, "unreachable");
    assert_failed(&s, 0, ROLLOUT_DRAINING, "unreachable");
    assert_state(&s, 1, ROLLOUT_UNDONE);
    assert_state(&s, 2, ROLLOUT_UNDONE);
    assert_true(rollout_is_over(s.rollout));
    scene_close(&s);
}


static void
a_restart_that_is_refused_fails_and_is_undrained(void **state)
{
    scene_t  s;

    scene_restarting(&s, 3);
    scene_result(&s, 0, "no child");
    assert_state(&s, 0, ROLLOUT_UNDOING);
    assert_false(rollout_is_over(s.rollout));
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_failed(&s, 0, ROLLOUT_RESTARTING, "no child");
    assert_true(rollout_is_over(s.rollout));
    scene_quiet(&s);
    scene_close(&s);
}


static void
scene_commands(scene_t *s)
{
    scene_open(s, 2);
    s->spec.has_stop = 1;
    s->spec.has_start = 1;
    scene_plan(s);
    scene_drained(s, 0);
    scene_expect(s, ROLLOUT_STOP, 0);
}


static void
a_command_that_fails_fails_its_step(void **state)
{
    scene_t  s;

    scene_commands(&s);
    scene_result(&s, 0, "exit status 3: no such unit");
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_failed(&s, 0, ROLLOUT_STOPPING, "no such unit");
    scene_close(&s);

    scene_commands(&s);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_START, 0);
    scene_result(&s, 0, "exit status 1");
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_failed(&s, 0, ROLLOUT_STARTING, "exit status 1");
    scene_close(&s);
}


/* Commands and replicas may write any bytes, but JSON must be UTF-8. */
static void
what_is_no_text_is_told_all_the_same(void **state)
{
    json_t   *end;
    scene_t   s;

    scene_commands(&s);
    scene_result(&s, 0, "a\033[31m\377b");
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_failed(&s, 0, ROLLOUT_STOPPING, "a?[31m?b");

    end = rollout_show_end(s.rollout, json_object());
    assert_non_null(strstr(json_string_value(json_object_get(end, "error")),
                           "a?[31m?b"));
    json_decref(end);
    scene_close(&s);
}


static void
there_is_no_harm_in_a_stop_of_what_does_not_run(void **state)
{
    scene_t  s;

    scene_commands(&s);
    s.members[0].service = LLMGW_SERVICE_DOWN;
    scene_look(&s);
    scene_result(&s, 0, "exit status 1: no such process");
    scene_expect(&s, ROLLOUT_START, 0);
    scene_close(&s);
}


static void
who_does_not_come_back_fails_in_time(void **state)
{
    static const struct {
        llmgw_service_t   service;
        llmgw_liveness_t  liveness;
        const char       *word;
    } cases[] = {
        { LLMGW_SERVICE_DOWN, LLMGW_LIVENESS_ALIVE, "broke" },
        { LLMGW_SERVICE_STOPPED, LLMGW_LIVENESS_ALIVE, "not started" },
        { LLMGW_SERVICE_STARTING, LLMGW_LIVENESS_ALIVE, "no replica" },
        { LLMGW_SERVICE_STALLED, LLMGW_LIVENESS_ALIVE, "no progress" },
        { LLMGW_SERVICE_READY, LLMGW_LIVENESS_ALIVE, "old process" },
        { LLMGW_SERVICE_READY, LLMGW_LIVENESS_DEAD, "agent is gone" }
    };

    size_t   i;
    scene_t  s;

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_restarting(&s, 2);
        scene_done(&s, 0);
        s.members[0].service = cases[i].service;
        s.members[0].liveness = cases[i].liveness;

        s.now_us += REJOIN_US - 1;
        scene_quiet(&s);
        assert_state(&s, 0, ROLLOUT_REJOINING);
        s.now_us++;
        scene_look(&s);
        scene_expect(&s, ROLLOUT_UNDRAIN, 0);
        scene_release(&s, 0);
        assert_failed(&s, 0, ROLLOUT_REJOINING, cases[i].word);
        assert_non_null(strstr(s.rollout->steps[0].reason, "30 s"));
        scene_close(&s);
    }
}


static void
a_wrong_version_that_stays_fails(void **state)
{
    scene_t  s;

    scene_restarting(&s, 2);
    scene_done(&s, 0);
    scene_back(&s, 0, "v3");
    s.now_us += ROLLOUT_WRONG_US - 1;
    scene_quiet(&s);
    s.now_us++;
    scene_look(&s);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_failed(&s, 0, ROLLOUT_REJOINING, "version \"v3\"");
    scene_close(&s);
}


static void
a_probe_or_a_release_that_fails_fails_its_step(void **state)
{
    scene_t  s;

    scene_restarting(&s, 2);
    scene_done(&s, 0);
    scene_back(&s, 0, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_result(&s, 0, "UNAVAILABLE");
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_failed(&s, 0, ROLLOUT_PROBING, "UNAVAILABLE");
    scene_close(&s);

    scene_restarting(&s, 2);
    scene_done(&s, 0);
    scene_back(&s, 0, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_result(&s, 0, "unreachable");
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);       /* a second time */
    scene_result(&s, 0, "unreachable");
    assert_failed(&s, 0, ROLLOUT_RELEASING, "unreachable");
    scene_close(&s);
}


static void
a_failure_undoes_who_drains_and_lets_others_come_back(void **state)
{
    scene_t  s;

    scene_open(&s, 6);
    s.spec.max_unavailable = 3;
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_expect(&s, ROLLOUT_DRAIN, 1);
    scene_expect(&s, ROLLOUT_DRAIN, 2);
    scene_done(&s, 0);
    scene_done(&s, 1);
    scene_load(&s, 0, 0);
    scene_load(&s, 1, 0);
    scene_expect(&s, ROLLOUT_RESTART, 0);
    scene_expect(&s, ROLLOUT_RESTART, 1);
    scene_done(&s, 1);
    scene_result(&s, 0, "refused");

    /* The third replica's Drain is in progress: its result is waited for. */
    assert_state(&s, 2, ROLLOUT_UNDOING);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    scene_quiet(&s);
    scene_done(&s, 2);
    scene_expect(&s, ROLLOUT_UNDRAIN, 2);
    scene_release(&s, 2);
    assert_state(&s, 2, ROLLOUT_UNDONE);
    assert_state(&s, 3, ROLLOUT_UNDONE);

    assert_state(&s, 1, ROLLOUT_REJOINING);
    assert_false(rollout_is_over(s.rollout));
    scene_back(&s, 1, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 1);
    scene_done(&s, 1);
    scene_expect(&s, ROLLOUT_UNDRAIN, 1);
    scene_release(&s, 1);
    assert_state(&s, 1, ROLLOUT_DONE);
    assert_true(rollout_is_over(s.rollout));
    assert_failed(&s, 0, ROLLOUT_RESTARTING, "refused");
    scene_close(&s);
}


/* --- ended */

static void
an_abort_undoes_who_drains(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    scene_plan(&s);
    scene_expect(&s, ROLLOUT_DRAIN, 0);
    scene_done(&s, 0);
    rollout_end(s.rollout, ROLLOUT_ABORTED, s.now_us);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_state(&s, 0, ROLLOUT_UNDONE);
    assert_true(rollout_is_over(s.rollout));
    assert_int_equal(s.rollout->verdict, ROLLOUT_ABORTED);
    scene_quiet(&s);
    scene_close(&s);
}


static void
an_abort_waits_for_who_is_being_restarted(void **state)
{
    scene_t  s;

    scene_restarting(&s, 3);
    scene_done(&s, 0);
    rollout_end(s.rollout, ROLLOUT_ABORTED, s.now_us);
    scene_quiet(&s);
    assert_false(rollout_is_over(s.rollout));
    scene_back(&s, 0, "v2");
    scene_expect(&s, ROLLOUT_PROBE, 0);
    scene_done(&s, 0);
    scene_expect(&s, ROLLOUT_UNDRAIN, 0);
    scene_release(&s, 0);
    assert_state(&s, 0, ROLLOUT_DONE);
    assert_true(rollout_is_over(s.rollout));
    assert_int_equal(s.rollout->verdict, ROLLOUT_ABORTED);
    scene_close(&s);
}


static void
one_that_yields_has_touched_nothing(void **state)
{
    scene_t  s;

    scene_open(&s, 3);
    s.settle_us = S;
    scene_plan(&s);
    rollout_end(s.rollout, ROLLOUT_YIELDED, s.now_us);
    s.now_us += 2 * S;
    scene_quiet(&s);
    assert_true(rollout_is_over(s.rollout));
    assert_int_equal(s.rollout->verdict, ROLLOUT_YIELDED);
    scene_close(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(unknown_ids_and_gateways_are_refused),
        cmocka_unit_test(whom_nobody_can_restart_refuses_all),
        cmocka_unit_test(who_does_not_report_is_refused),
        cmocka_unit_test(the_last_ones_are_refused_unless_it_is_said),
        cmocka_unit_test(who_left_is_left_alone_unless_named),
        cmocka_unit_test(who_is_dead_is_absent_unless_named),
        cmocka_unit_test(an_agent_that_sees_nobody_refuses),
        cmocka_unit_test(a_drain_that_does_not_arrive_fails),
        cmocka_unit_test(a_restart_that_is_refused_fails_and_is_undrained),
        cmocka_unit_test(a_command_that_fails_fails_its_step),
        cmocka_unit_test(what_is_no_text_is_told_all_the_same),
        cmocka_unit_test(there_is_no_harm_in_a_stop_of_what_does_not_run),
        cmocka_unit_test(who_does_not_come_back_fails_in_time),
        cmocka_unit_test(a_wrong_version_that_stays_fails),
        cmocka_unit_test(a_probe_or_a_release_that_fails_fails_its_step),
        cmocka_unit_test(
            a_failure_undoes_who_drains_and_lets_others_come_back),
        cmocka_unit_test(an_abort_undoes_who_drains),
        cmocka_unit_test(an_abort_waits_for_who_is_being_restarted),
        cmocka_unit_test(one_that_yields_has_touched_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
