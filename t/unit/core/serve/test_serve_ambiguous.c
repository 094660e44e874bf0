
/* A replica refuses a request, and it is not known whose fault that is. */

#include "t/unit/core/serve/serve_scene.h"


static void
refusal_is_its_replicas_fault_if_another_one_serves(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 5, ENDED, 0, AMBIGUOUS, "ambiguous excludes keeps claims" });
    assert_true(s.claim.is_last && s.claim.no_wait);
    play(&s, { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 5, TOKEN, 0, 0, "blames runs 10000" },
             { 5, TOKEN, 0, 0, "runs 10000" });
    assert_int_equal(s.serve.resume.tries, 0);
}


static void
refusal_is_the_requests_fault_if_two_refuse_it(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 5, ENDED, 0, AMBIGUOUS, "ambiguous excludes keeps claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 5, ENDED, 0, AMBIGUOUS, "acquits acquits-kept passes" });

    scene_init(&s);
    s.may_keep = 0;
    GOES(&s);
    play(&s, { 5, ENDED, 0, AMBIGUOUS, "acquits acquits-kept passes" });
}


static void
denials_of_a_model_are_no_evidence_against_the_request(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s);
    s.is_denial = 1;
    GOES(&s);
    play(&s, { 5, ENDED, 0, AMBIGUOUS, "ambiguous excludes keeps claims" });

    for (i = 0; i < LLMGW_SERVE_DENIALS; i++) {
        play(&s, { 0, CLAIMED, LEASED, 0, "starts" },
                 { 0, STARTED, 0, 0, "runs 60000" },
                 { 5, ENDED, 0, AMBIGUOUS, "excludes keeps claims" });
    }

    play(&s, { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" },
             { 5, ENDED, 0, AMBIGUOUS, "acquits acquits-kept passes" });
}


static void
refusal_passes_on_where_no_other_one_can_answer(void **state)
{
    size_t   i;
    scene_t  s;

    static const llmgw_admission_rc_t  cases[] = {
        LLMGW_ADMISSION_NONE, LLMGW_ADMISSION_EXCLUDED, LLMGW_ADMISSION_OPEN,
        LLMGW_ADMISSION_SHED
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_init(&s);
        GOES(&s);
        play(&s, { 5, ENDED, 0, AMBIGUOUS, "ambiguous excludes keeps claims" },
                 { 0, CLAIMED, (int) cases[i], 0,
                   "acquits-kept passes-kept" });
    }
}


static void
refusal_is_dropped_before_a_wait(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 5, ENDED, 0, AMBIGUOUS, "ambiguous excludes keeps claims" },
             { 0, CLAIMED, LLMGW_ADMISSION_FULL, 0, "drops-kept claims" });
    assert_true(s.claim.to_queue && !s.claim.no_wait);
    play(&s, { 0, CLAIMED, WAITS, 0, "runs 30000" },
             { 100, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" });

    /* the queue is full as well */
    scene_init(&s);
    GOES(&s);
    play(&s, { 5, ENDED, 0, AMBIGUOUS, "ambiguous excludes keeps claims" },
             { 0, CLAIMED, LLMGW_ADMISSION_SKIPPABLE, 0, "drops-kept claims" },
             { 0, CLAIMED, LLMGW_ADMISSION_FULL, 0, "ends queue_full" });
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(refusal_is_its_replicas_fault_if_another_one_serves),
        cmocka_unit_test(refusal_is_the_requests_fault_if_two_refuse_it),
        cmocka_unit_test(
            denials_of_a_model_are_no_evidence_against_the_request),
        cmocka_unit_test(refusal_passes_on_where_no_other_one_can_answer),
        cmocka_unit_test(refusal_is_dropped_before_a_wait)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
