
/* What follows the end of an attempt: core/resume.h. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/resume.h"


static llmgw_resume_t
fresh(uint32_t tries, uint32_t failovers)
{
    llmgw_resume_t  r = { tries, failovers, 0, 0, 0, 0 };

    return r;
}


/* The greatest pause is without chance, the least with all of it. */
static void
assert_pause(uint32_t tries, uint32_t least_ms, uint32_t greatest_ms)
{
    uint64_t        random;
    llmgw_resume_t  r = fresh(100, 8);

    r.tries = tries;
    assert_int_equal(llmgw_resume_pause_ms(&r, 0), greatest_ms);
    assert_int_equal(llmgw_resume_pause_ms(&r, greatest_ms - least_ms),
                     least_ms);

    for (random = 0; random < 5000; random += 7) {
        assert_in_range(llmgw_resume_pause_ms(&r, random), least_ms,
                        greatest_ms);
    }
}


static void
pauses_double_up_to_a_second(void **state)
{
    assert_pause(0, 50, 100);           /* the attempt had brought tokens */
    assert_pause(1, 50, 100);
    assert_pause(2, 100, 200);
    assert_pause(3, 200, 400);
    assert_pause(4, 400, 800);
    assert_pause(5, 500, 1000);
    assert_pause(99, 500, 1000);
}


static void
final_token_finishes(void **state)
{
    llmgw_resume_t  r = fresh(3, 8);

    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FINAL, 5, 5).next,
                     LLMGW_NEXT_FINISH);
}


static void
attempt_that_the_gateway_cancelled_is_not_repeated(void **state)
{
    llmgw_resume_t       r = fresh(3, 8);
    llmgw_resume_step_t  step;

    step = llmgw_resume_next(&r, LLMGW_ENDING_CANCELLED, 0, 5);
    assert_int_equal(step.next, LLMGW_NEXT_GIVE_UP);
    assert_false(step.exclude || step.counted);
    assert_int_equal(r.tries + r.failovers, 0);
}


static void
clients_fault_is_passed_on(void **state)
{
    llmgw_resume_t  r = fresh(3, 8);

    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_PASSED, 0, 0).next,
                     LLMGW_NEXT_PASS);
    assert_int_equal(r.tries, 0);
}


static void
ambiguous_refusal_asks_another_one_and_costs_no_try(void **state)
{
    llmgw_resume_t       r = fresh(1, 8);
    llmgw_resume_step_t  step;

    step = llmgw_resume_next(&r, LLMGW_ENDING_AMBIGUOUS, 0, 0);

    assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
    assert_true(step.exclude);
    assert_false(step.counted);
    assert_int_equal(r.tries, 0);
}


static void
replica_that_is_absent_is_excluded_and_costs_no_try(void **state)
{
    int                  i;
    llmgw_resume_t       r = fresh(1, 8);
    llmgw_resume_step_t  step;

    for (i = 0; i < 100; i++) {
        step = llmgw_resume_next(&r, LLMGW_ENDING_ABSENT, 0, 7);

        assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
        assert_true(step.exclude);
        assert_false(step.counted);
    }

    assert_int_equal(r.tries, 0);
    assert_int_equal(r.failovers, 0);
}


static void
tries_in_a_row_without_a_token_end_it(void **state)
{
    llmgw_resume_t       r = fresh(3, 8);
    llmgw_resume_step_t  step;

    step = llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0);
    assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
    assert_true(step.exclude);
    assert_true(step.counted);
    assert_false(step.clear_excluded);

    step = llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0);
    assert_int_equal(step.next, LLMGW_NEXT_AGAIN);

    step = llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0);
    assert_int_equal(step.next, LLMGW_NEXT_GIVE_UP);
}


static void
single_try_gives_up_at_once(void **state)
{
    llmgw_resume_t  r = fresh(1, 8);

    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0).next,
                     LLMGW_NEXT_GIVE_UP);
}


static void
token_gives_the_tries_back(void **state)
{
    llmgw_resume_t       r = fresh(2, 8);
    llmgw_resume_step_t  step;

    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0).next,
                     LLMGW_NEXT_AGAIN);

    step = llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 1, 1);
    assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
    assert_true(step.clear_excluded);
    assert_true(step.exclude);

    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 1).next,
                     LLMGW_NEXT_AGAIN);
    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 1).next,
                     LLMGW_NEXT_GIVE_UP);
}


static void
failovers_of_a_stream_are_never_given_back(void **state)
{
    uint32_t        i;
    llmgw_resume_t  r = fresh(3, 8);

    for (i = 1; i <= 8; i++) {
        assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 1,
                                           i).next,
                         LLMGW_NEXT_AGAIN);
    }

    assert_int_equal(llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 1, 9).next,
                     LLMGW_NEXT_GIVE_UP);
}


static void
draining_and_full_use_no_try(void **state)
{
    int                  i;
    llmgw_resume_t       r = fresh(1, 0);
    llmgw_resume_step_t  step;

    for (i = 0; i < 100; i++) {
        step = llmgw_resume_next(&r, i % 2 ? LLMGW_ENDING_DRAINING
                                           : LLMGW_ENDING_FULL, 0, 3);
        assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
        assert_true(step.exclude);
        assert_false(step.counted);
    }
}


static void
draining_counts_after_very_many(void **state)
{
    int                  i;
    llmgw_resume_t       r = fresh(1, 8);
    llmgw_resume_step_t  step;

    for (i = 0; i < LLMGW_RESUME_FREE_DRAINS; i++) {
        step = llmgw_resume_next(&r, LLMGW_ENDING_DRAINING, 0, 0);
        assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
    }

    step = llmgw_resume_next(&r, LLMGW_ENDING_DRAINING, 0, 0);
    assert_int_equal(step.next, LLMGW_NEXT_GIVE_UP);
}


static void
refusals_are_free_three_times(void **state)
{
    int                  i;
    llmgw_resume_t       r = fresh(2, 8);
    llmgw_resume_step_t  step;

    for (i = 0; i < LLMGW_RESUME_FREE_REFUSALS; i++) {
        step = llmgw_resume_next(&r, LLMGW_ENDING_REFUSED, 0, 0);
        assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
        assert_false(step.exclude);
        assert_int_equal(r.tries, 0);
    }

    step = llmgw_resume_next(&r, LLMGW_ENDING_REFUSED, 0, 0);
    assert_int_equal(step.next, LLMGW_NEXT_AGAIN);
    assert_true(step.exclude);
    assert_int_equal(r.tries, 1);

    step = llmgw_resume_next(&r, LLMGW_ENDING_REFUSED, 0, 0);
    assert_int_equal(step.next, LLMGW_NEXT_GIVE_UP);
}


static void
last_try_is_told(void **state)
{
    llmgw_resume_t  r = fresh(3, 8);

    assert_false(llmgw_resume_is_last_try(&r));

    llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0);
    assert_false(llmgw_resume_is_last_try(&r));

    llmgw_resume_next(&r, LLMGW_ENDING_FULL, 0, 0);
    assert_false(llmgw_resume_is_last_try(&r));

    llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 0, 0);
    assert_true(llmgw_resume_is_last_try(&r));

    llmgw_resume_next(&r, LLMGW_ENDING_FAILED, 1, 1);
    assert_false(llmgw_resume_is_last_try(&r));
}


static void
stream_that_nobody_can_go_on_with_breaks_off(void **state)
{
    llmgw_resume_t       r = fresh(3, 8);
    llmgw_resume_step_t  step;

    step = llmgw_resume_next(&r, LLMGW_ENDING_UNABLE, 5, 5);

    assert_int_equal(step.next, LLMGW_NEXT_BREAK);
    assert_false(step.counted);
    assert_int_equal(r.failovers, 0);
}


static void
stream_goes_on_by_what_is_known_of_it(void **state)
{
    size_t                i;
    const char           *why;
    llmgw_resume_by_t     by;
    llmgw_resume_facts_t  facts;

    enum { ON = 1, PLAIN = 2, TEXT = 4, MANY = 8, NO_IDS = 16, NEVER = 32,
           FULL = 64 };

    static const struct {
        unsigned           facts;
        uint64_t           ids;         /* of 7 tokens */
        llmgw_resume_by_t  by;
        const char        *why;
    } cases[] = {
        { ON, 7, LLMGW_RESUME_BY_IDS, NULL },
        { ON | TEXT, 7, LLMGW_RESUME_BY_IDS, NULL },
        { ON | TEXT, 6, LLMGW_RESUME_BY_TEXT, NULL },
        { ON | TEXT | NO_IDS, 7, LLMGW_RESUME_BY_TEXT, NULL },
        { ON, 6, LLMGW_RESUME_BY_NOTHING, "its tokens' ids are not known" },
        { ON | NO_IDS, 7, LLMGW_RESUME_BY_NOTHING,
          "its tokens' ids are not known" },
        { ON | FULL, 0, LLMGW_RESUME_BY_NOTHING,
          "llmgw_body_memory was used up" },
        { ON | MANY | TEXT, 7, LLMGW_RESUME_BY_NOTHING,
          "it has several choices" },
        { ON | NEVER | TEXT, 7, LLMGW_RESUME_BY_NOTHING,
          "its replica sent what cannot be continued" },
        { 0, 0, LLMGW_RESUME_BY_NOTHING, "llmgw_resume is off" },

        /* by their number, whatever is configured or short */

        { PLAIN, 0, LLMGW_RESUME_BY_POSITION, NULL },
        { ON | PLAIN, 0, LLMGW_RESUME_BY_POSITION, NULL },
        { ON | PLAIN | TEXT, 0, LLMGW_RESUME_BY_POSITION, NULL },
        { ON | PLAIN | FULL, 0, LLMGW_RESUME_BY_POSITION, NULL },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        facts = (llmgw_resume_facts_t) {
            .tokens = 7, .ids = cases[i].ids,
            .is_on = (cases[i].facts & ON) != 0,
            .is_plain = (cases[i].facts & PLAIN) != 0,
            .has_text = (cases[i].facts & TEXT) != 0,
            .is_one = (cases[i].facts & MANY) == 0,
            .no_ids = (cases[i].facts & NO_IDS) != 0,
            .never = (cases[i].facts & NEVER) != 0,
            .no_memory = (cases[i].facts & FULL) != 0
        };

        why = NULL;
        by = llmgw_resume_by(&facts, &why);

        assert_int_equal(by, cases[i].by);

        if (cases[i].why) {
            assert_non_null(why);
            assert_string_equal(why, cases[i].why);

        } else {
            assert_null(why);
        }
    }

    assert_string_equal(llmgw_resume_by_name(LLMGW_RESUME_BY_NOTHING), "off");
    assert_string_equal(llmgw_resume_by_name(LLMGW_RESUME_BY_TEXT), "text");
}


static void
causes_have_names(void **state)
{
    assert_string_equal(llmgw_cause_name(LLMGW_CAUSE_NONE), "none");
    assert_string_equal(llmgw_cause_name(LLMGW_CAUSE_GOAWAY), "goaway");
    assert_string_equal(llmgw_cause_name(LLMGW_CAUSE_INTERNAL), "internal");
    assert_string_equal(llmgw_cause_name(LLMGW_CAUSE_INTERNAL + 1),
                        "unknown");
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(pauses_double_up_to_a_second),
        cmocka_unit_test(final_token_finishes),
        cmocka_unit_test(attempt_that_the_gateway_cancelled_is_not_repeated),
        cmocka_unit_test(clients_fault_is_passed_on),
        cmocka_unit_test(ambiguous_refusal_asks_another_one_and_costs_no_try),
        cmocka_unit_test(replica_that_is_absent_is_excluded_and_costs_no_try),
        cmocka_unit_test(tries_in_a_row_without_a_token_end_it),
        cmocka_unit_test(single_try_gives_up_at_once),
        cmocka_unit_test(token_gives_the_tries_back),
        cmocka_unit_test(failovers_of_a_stream_are_never_given_back),
        cmocka_unit_test(draining_and_full_use_no_try),
        cmocka_unit_test(draining_counts_after_very_many),
        cmocka_unit_test(refusals_are_free_three_times),
        cmocka_unit_test(last_try_is_told),
        cmocka_unit_test(stream_that_nobody_can_go_on_with_breaks_off),
        cmocka_unit_test(stream_goes_on_by_what_is_known_of_it),
        cmocka_unit_test(causes_have_names),
    };

    return cmocka_run_group_tests_name("resume", tests, NULL, NULL);
}
