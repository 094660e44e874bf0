
/* Claims, tries, and what follows the end of an attempt. */

#include "t/unit/core/serve/serve_scene.h"


static void
stream_is_served_by_one_attempt(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 100, TOKEN, 0, 0, "runs 10000" },
             { 50, TOKEN, 0, 0, "runs 10000" },
             { 10, ENDED, 0, FINAL, "ends served" });
    assert_true(s.serve.has_begun);
}


static void
refusals_of_a_claim_have_their_outcomes(void **state)
{
    size_t   i;
    scene_t  s;

    static const struct {
        llmgw_admission_rc_t  rc;
        int                   has_begun;
        const char           *does;
    } cases[] = {
        { LLMGW_ADMISSION_FULL, 0, "ends queue_full" },
        { LLMGW_ADMISSION_SKIPPABLE, 0, "ends queue_full" },
        { LLMGW_ADMISSION_SHED, 0, "ends queue_shed" },
        { LLMGW_ADMISSION_OPEN, 0, "ends circuits_open" },
        { LLMGW_ADMISSION_EXCLUDED, 0, "ends no_replicas" },
        { LLMGW_ADMISSION_EXCLUDED, 1, "ends tries_exhausted" },
        { LLMGW_ADMISSION_NONE, 0, "ends no_replicas" },
        { LLMGW_ADMISSION_NONE, 1, "ends no_replicas" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_init(&s);
        s.serve.has_begun = (cases[i].has_begun != 0);
        play(&s, { 0, BEGINS, 0, 0, "claims" },
                 { 0, CLAIMED, (int) cases[i].rc, 0, cases[i].does });
    }
}


static void
wait_in_the_queue_ends_by_its_turn_or_its_time(void **state)
{
    scene_t  s;

    scene_init(&s);
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 30000" },
             { 100, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 29900" },
             { 29899, TIMER, 0, 0, "runs 1" },
             { 1, TIMER, 0, 0, "expires" });

    scene_init(&s);
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 30000" },
             { 20000, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" });
}


static void
only_an_attempt_that_failed_lengthens_the_wait(void **state)
{
    scene_t  s;

    scene_init(&s);
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 30000" },
             { 10000, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 7000, ENDED, 0, FAILED, "excludes keeps claims" },
             { 0, CLAIMED, WAITS, 0, "runs 20000" },
             { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 7000, ENDED, 0, FULL, "pushes-back claims" },
             { 0, CLAIMED, WAITS, 0, "runs 13000" },
             { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 3000, ENDED, 0, ABSENT, "excludes claims" },
             { 0, CLAIMED, WAITS, 0, "runs 10000" });

    /* after an attempt that brought a token the patience begins anew */
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 1000, TOKEN, 0, 0, "runs 10000" },
             { 0, ENDED, 0, FAILED, "forgets excludes keeps fails-over claims"
             },
             { 0, CLAIMED, WAITS, 0, "runs 30000" });
    assert_true(s.claim.is_urgent);
}


static void
tries_in_a_row_without_a_token_are_limited(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    assert_false(s.claim.is_last);
    play(&s, { 10, ENDED, 0, FAILED, "excludes keeps claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" });
    assert_false(s.claim.is_last);
    assert_true(s.claim.may_restart);
    play(&s, { 10, ENDED, 0, FAILED, "excludes keeps claims" });
    assert_true(s.claim.is_last);
    play(&s, { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 10, ENDED, 0, FAILED, "ends tries_exhausted" });
}


static void
token_gives_tries_back_and_empties_the_exclusions(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s);
    GOES(&s);

    for (i = 0; i < LLMGW_RESUME_FAILOVERS; i++) {
        play(&s, { 10, TOKEN, 0, 0, "runs 10000" },
                 { 10, ENDED, 0, FAILED,
                   "forgets excludes keeps fails-over claims" },
                 { 0, CLAIMED, LEASED, 0, "starts" },
                 { 0, STARTED, 0, 0, "runs 60000" });
    }

    play(&s, { 10, TOKEN, 0, 0, "runs 10000" },
             { 10, ENDED, 0, FAILED, "ends tries_exhausted" });
}


static void
endings_that_cost_no_try(void **state)
{
    size_t   i;
    scene_t  s;

    static const struct {
        llmgw_ending_t   ending;
        const char      *does;
    } cases[] = {
        { DRAINING, "excludes claims" }, { ABSENT, "excludes claims" },
        { FULL, "pushes-back claims" }, { REFUSED, "claims" }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_init(&s);
        s.serve.resume.tries_max = 1;
        GOES(&s);
        play(&s, { 10, ENDED, 0, (int) cases[i].ending, cases[i].does });
        assert_false(s.claim.may_restart);
        assert_int_equal(s.claim.saw_full, cases[i].ending == FULL);
    }
}


static void
what_cannot_go_on_breaks_off_or_begins_anew(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    assert_false(llmgw_serve_is_broken(&s.serve, FAILED));
    play(&s, { 10, TOKEN, 0, 0, "runs 10000" });
    assert_true(llmgw_serve_is_broken(&s.serve, FAILED));
    assert_true(llmgw_serve_is_broken(&s.serve, UNABLE));
    assert_false(llmgw_serve_is_broken(&s.serve, FINAL));
    assert_false(llmgw_serve_is_broken(&s.serve, PASSED));
    play(&s, { 10, ENDED, 0, UNABLE, "ends not_resumable" });

    scene_init(&s);
    GOES(&s);
    play(&s, { 10, TOKEN, 0, 0, "runs 10000" });
    s.claim.resumes = 1;
    llmgw_serve_restarted(&s.serve, &s.claim);
    play(&s, { 10, ENDED, 0, FAILED, "forgets excludes keeps claims" });
    assert_false(s.claim.is_urgent || s.claim.resumes);
}


static void
stream_pauses_before_it_asks_them_again(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 30, ENDED, 0, FAILED, "excludes keeps claims" },
             { 0, CLAIMED, LLMGW_ADMISSION_EXCLUDED, 0, "runs 70" });
    assert_false(s.claim.has_paused);
    play(&s, { 69, TIMER, 0, 0, "runs 1" },
             { 1, TIMER, 0, 0, "claims" });
    assert_true(s.claim.has_paused);
    play(&s, { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" });

    /* the attempt itself took longer than the pause */
    scene_init(&s);
    GOES(&s);
    play(&s, { 100, ENDED, 0, FAILED, "excludes keeps claims" });
    assert_true(s.claim.has_paused);
}


static void
breaker_judges_what_the_replica_did(void **state)
{
    size_t  i;

    static const struct {
        llmgw_ending_t    ending;
        llmgw_cause_t     cause;
        llmgw_verdict_t   verdict;
    } cases[] = {
        { FINAL, LLMGW_CAUSE_NONE, LLMGW_VERDICT_SUCCESS },
        { PASSED, LLMGW_CAUSE_STATUS, LLMGW_VERDICT_SUCCESS },
        { UNABLE, LLMGW_CAUSE_STATUS, LLMGW_VERDICT_SUCCESS },
        { FAILED, LLMGW_CAUSE_RESET, LLMGW_VERDICT_FAILURE },
        { FAILED, LLMGW_CAUSE_CONNECT, LLMGW_VERDICT_FAILURE },
        { FAILED, LLMGW_CAUSE_TOKEN_TIMEOUT, LLMGW_VERDICT_FAILURE },
        { FAILED, LLMGW_CAUSE_MEMBER_DOWN, LLMGW_VERDICT_NEUTRAL },
        { FAILED, LLMGW_CAUSE_MEMBER_DEAD, LLMGW_VERDICT_NEUTRAL },
        { FAILED, LLMGW_CAUSE_MEMBER_STALLED, LLMGW_VERDICT_NEUTRAL },
        { FAILED, LLMGW_CAUSE_MEMBER_SUPERSEDED, LLMGW_VERDICT_NEUTRAL },
        { FAILED, LLMGW_CAUSE_INTERNAL, LLMGW_VERDICT_NEUTRAL },
        { FULL, LLMGW_CAUSE_FULL, LLMGW_VERDICT_NEUTRAL },
        { ABSENT, LLMGW_CAUSE_CONNECT, LLMGW_VERDICT_NEUTRAL },
        { DRAINING, LLMGW_CAUSE_DRAINING, LLMGW_VERDICT_NEUTRAL },
        { LLMGW_ENDING_CANCELLED, LLMGW_CAUSE_NONE, LLMGW_VERDICT_NEUTRAL }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(llmgw_attempt_verdict(cases[i].ending,
                                               cases[i].cause),
                         cases[i].verdict);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(stream_is_served_by_one_attempt),
        cmocka_unit_test(refusals_of_a_claim_have_their_outcomes),
        cmocka_unit_test(wait_in_the_queue_ends_by_its_turn_or_its_time),
        cmocka_unit_test(only_an_attempt_that_failed_lengthens_the_wait),
        cmocka_unit_test(tries_in_a_row_without_a_token_are_limited),
        cmocka_unit_test(token_gives_tries_back_and_empties_the_exclusions),
        cmocka_unit_test(endings_that_cost_no_try),
        cmocka_unit_test(what_cannot_go_on_breaks_off_or_begins_anew),
        cmocka_unit_test(stream_pauses_before_it_asks_them_again),
        cmocka_unit_test(breaker_judges_what_the_replica_did)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
