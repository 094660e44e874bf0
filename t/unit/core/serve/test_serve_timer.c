
/* Silence, deadlines and hedges; and whatever comes, at random. */

#include "common/rnd.h"
#include "t/unit/core/serve/serve_scene.h"


#define WALKS        300
#define STEPS        400


static void
silence_counts_when_it_was_seen_twice(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 60000, TIMER, 0, 0, "runs 1" },
             { 1, TIMER, 0, 0, "silent-0 runs 1" });

    /* a token was there, and is read before the second look */
    scene_init(&s);
    GOES(&s);
    play(&s, { 10, TOKEN, 0, 0, "runs 10000" },
             { 4000, TIMER, 0, 0, "runs 6000" },
             { 6000, TIMER, 0, 0, "runs 1" },
             { 1, TOKEN, 0, 0, "runs 10000" },
             { 0, TIMER, 0, 0, "runs 10000" },
             { 10000, TIMER, 0, 0, "runs 1" },
             { 1, TIMER, 0, 0, "silent-0 runs 1" });
    assert_int_equal(llmgw_attempt_timeout(&s.attempts[0]),
                     LLMGW_CAUSE_TOKEN_TIMEOUT);
    s.attempts[0].has_begun = 0;
    assert_int_equal(llmgw_attempt_timeout(&s.attempts[0]),
                     LLMGW_CAUSE_FIRST_TOKEN_TIMEOUT);
}


static void
process_that_stood_still_gives_replicas_their_time_again(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 10, TOKEN, 0, 0, "runs 10000" },
             { 10000 + LLMGW_SERVE_LATE_MS, TIMER, 0, 0, "runs 10000" },
             { 10000, TIMER, 0, 0, "silent-0 runs 1" });

    /* 1 ms less is not late */
    scene_init(&s);
    GOES(&s);
    play(&s, { 10, TOKEN, 0, 0, "runs 10000" },
             { 9999 + LLMGW_SERVE_LATE_MS, TIMER, 0, 0, "runs 1" });
}


static void
slow_client_makes_no_replica_silent(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    play(&s, { 10, TOKEN, 0, 0, "runs 10000" },
             { 0, BLOCKED, 1, 0, "runs 10000" },
             { 10000, TIMER, 0, 0, "runs 10000" },
             { 10000, TIMER, 0, 0, "runs 10000" });
}


static void
held_stream_claims_again_when_its_hold_is_over(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.claim.hold_end_ms = START_MS + 5000;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 5000" },
             { 5000, TIMER, 0, 0, "claims" },
             { 0, CLAIMED, LLMGW_ADMISSION_NONE, 0, "ends no_replicas" });

    /* a replica is there, and full */
    scene_init(&s);
    s.claim.hold_end_ms = START_MS + 5000;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 5000" },
             { 5000, TIMER, 0, 0, "claims" });
    s.claim.hold_end_ms = 0;
    play(&s, { 0, CLAIMED, WAITS, 0, "runs 25000" },
             { 25000, TIMER, 0, 0, "expires" });

    /* the queue's time is shorter */
    scene_init(&s);
    s.claim.hold_end_ms = START_MS + PATIENCE_MS + 1;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 30000" },
             { 30000, TIMER, 0, 0, "expires" });
}


static void
deadline_ends_a_stream_wherever_it_is(void **state)
{
    scene_t  s;

    scene_init(&s);
    play(&s, { 0, BY, 500, 0, "runs 500" },
             { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 500" },
             { 500, TIMER, 0, 0, "ends deadline" });

    scene_init(&s);
    GOES(&s);
    play(&s, { 0, BY, 500, 0, "runs 500" },
             { 499, TIMER, 0, 0, "runs 1" },
             { 1, TIMER, 0, 0, "ends deadline" });
}


static void
client_hears_something_when_it_is_time(void **state)
{
    scene_t  s;

    scene_init(&s);
    GOES(&s);
    s.facts.ping_ms = s.facts.now_ms + 300;
    play(&s, { 100, TIMER, 0, 0, "runs 200" });
    s.facts.now_ms += 200;
    assert_string_equal(said(&s, llmgw_serve_expired(&s.serve, &s.facts)),
                        "pings runs 1");
}


static void
hedge_comes_after_its_delay(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_LATER;
    s.facts.hedge_delay_ms = 200;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, WAITS, 0, "runs 30000" },
             { 1000, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 200" },
             { 200, TIMER, 0, 0, "hedges" },
             { 0, HEDGED, 0, 0, "runs 59800" });
    assert_true(s.serve.has_second);
    play(&s, { 10, TOKEN, 1, 0, "runs 10000" });
    assert_false(s.serve.has_second || s.attempts[0].is_running);
    play(&s, { 10, ENDED, 1, FINAL, "ends served" });

    /* not after a first token, nor for an attempt that has ended */
    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_LATER;
    s.facts.hedge_delay_ms = 200;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 200" },
             { 100, TOKEN, 0, 0, "runs 10000" },
             { 100, TIMER, 0, 0, "runs 9900" });

    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_LATER;
    s.facts.hedge_delay_ms = 200;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 200" });
    s.attempts[0].has_ended = 1;
    s.facts.now_ms += 200;
    assert_int_equal(llmgw_serve_expired(&s.serve, &s.facts).next,
                     LLMGW_SERVE_RUNS);
}


static void
second_try_is_hedged_at_the_time_of_the_first(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_LATER;
    s.facts.hedge_delay_ms = 200;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 200" },
             { 150, ENDED, 0, FAILED, "excludes keeps claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 50" },
             { 50, TIMER, 0, 0, "hedges" });
}


static void
hedge_at_once_is_for_the_first_attempt(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_AT_ONCE;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "hedges" },
             { 0, HEDGED, 0, 0, "runs 60000" },
             { 5, ENDED, 1, FAILED, "excludes keeps runs 59995" },
             { 5, ENDED, 0, FAILED, "excludes keeps claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "runs 60000" });
}


static void
of_two_attempts_one_may_fail(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_AT_ONCE;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "hedges" },
             { 0, HEDGED, 0, 0, "runs 60000" },
             { 5, ENDED, 0, FULL, "pushes-back runs 59995" },
             { 5, TOKEN, 1, 0, "runs 10000" });
    assert_int_equal(s.serve.resume.tries, 0);

    /* but a refusal of the request is the answer */
    scene_init(&s);
    s.serve.hedge = LLMGW_HEDGE_AT_ONCE;
    play(&s, { 0, BEGINS, 0, 0, "claims" },
             { 0, CLAIMED, LEASED, 0, "starts" },
             { 0, STARTED, 0, 0, "hedges" },
             { 0, HEDGED, 0, 0, "runs 60000" },
             { 5, ENDED, 1, PASSED, "passes" });
    assert_false(s.attempts[0].is_running);
}


/* --- at random */

/* Something that may happen now. */
static line_t
walk_event(const scene_t *s, rnd_t *rnd)
{
    int  i = (int) rnd_below(rnd, 2);

    if (s->serve.waits && rnd_below(rnd, 3) == 0) {
        return (line_t) { 0, BEGINS, 0, 0, "" };
    }

    if (!s->attempts[i].is_running || rnd_below(rnd, 4) == 0) {
        return (line_t) { 0, TIMER, 0, 0, "" };
    }

    if (s->attempts[i].has_ended || rnd_below(rnd, 2) == 0) {
        return (line_t) {
            0, ENDED, i, (int) rnd_below(rnd, LLMGW_ENDING_CANCELLED), ""
        };
    }

    return (line_t) { 0, TOKEN, i, 0, "" };
}


static void
walk_follow(scene_t *s, rnd_t *rnd, llmgw_serve_step_t *step)
{
    while (step->next == LLMGW_SERVE_CLAIMS || step->next == LLMGW_SERVE_STARTS)
    {
        *step = event(s, step->next == LLMGW_SERVE_CLAIMS
                         ? &(line_t) { 0, CLAIMED,
                                       rnd_below(rnd, 2) == 0 ? LEASED : (int)
                                       rnd_below(rnd, LLMGW_ADMISSION_NONE),
                                       0, "" }
                         : &(line_t) { 0, STARTED, 0, 0, "" });
    }

    if (step->next == LLMGW_SERVE_HEDGES && rnd_below(rnd, 2) == 0) {
        (void) event(s, &(line_t) { 0, HEDGED, 0, 0, "" });
    }
}


/*
 * Whatever happens, a stream that has not ended waits for something, and its
 * timer runs.
 */
static void
stream_never_waits_for_nothing(void **state)
{
    int                  walk, i, ends;
    rnd_t                rnd;
    line_t               line;
    scene_t              s;
    uint64_t             wait_ms;
    llmgw_serve_step_t   step;

    ends = 0;

    for (walk = 0; walk < WALKS; walk++) {
        rnd.state = (uint64_t) walk;
        scene_init(&s);
        s.serve.hedge = (llmgw_hedge_t) rnd_below(&rnd, 3) & 3;
        s.facts.hedge_delay_ms = 50;
        step = event(&s, &(line_t) { 0, BEGINS, 0, 0, "" });

        for (i = 0; i < STEPS; i++) {
            walk_follow(&s, &rnd, &step);

            if (step.next != LLMGW_SERVE_RUNS
                && step.next != LLMGW_SERVE_HEDGES)
            {
                ends++;
                break;
            }

            assert_true(s.serve.waits || s.serve.pauses
                        || s.attempts[0].is_running
                        || s.attempts[1].is_running);

            wait_ms = llmgw_serve_wait_ms(&s.serve, &s.facts);
            assert_in_range(wait_ms, 1, FIRST_MS * 3);
            s.facts.now_ms += rnd_below(&rnd, 3) == 0
                              ? wait_ms : rnd_below(&rnd, wait_ms);
            s.attempts[0].has_ended |= step.silent & 1;
            s.attempts[1].has_ended |= step.silent >> 1 & 1;
            line = walk_event(&s, &rnd);
            step = event(&s, &line);
        }
    }

    assert_in_range(ends, WALKS / 2, WALKS);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(silence_counts_when_it_was_seen_twice),
        cmocka_unit_test(
            process_that_stood_still_gives_replicas_their_time_again),
        cmocka_unit_test(slow_client_makes_no_replica_silent),
        cmocka_unit_test(held_stream_claims_again_when_its_hold_is_over),
        cmocka_unit_test(deadline_ends_a_stream_wherever_it_is),
        cmocka_unit_test(client_hears_something_when_it_is_time),
        cmocka_unit_test(hedge_comes_after_its_delay),
        cmocka_unit_test(second_try_is_hedged_at_the_time_of_the_first),
        cmocka_unit_test(hedge_at_once_is_for_the_first_attempt),
        cmocka_unit_test(of_two_attempts_one_may_fail),
        cmocka_unit_test(stream_never_waits_for_nothing)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
