
/* The stall time-out that an engine's steps teach, on made-up time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replica/engine/health.h"


#define START  1000000


static health_t
fresh(void)
{
    health_t  h;

    health_init(&h, 0, START);
    health_answer(&h, ENGINE_READY, START);

    return h;
}


/* A stream gets n tokens, so far apart; returns when the last one came. */
static uint64_t
run(health_t *h, int n, uint64_t apart_ms, uint64_t at_ms)
{
    while (n-- > 0) {
        at_ms += apart_ms;
        health_look(h, 1, at_ms);
        health_bytes(h, at_ms);
    }

    return at_ms;
}


static void
a_fresh_engine_may_compile_for_a_minute(void **state)
{
    health_t  h;

    h = fresh();
    health_look(&h, 1, START);
    health_scrape(&h, 0, 1, START);
    health_scrape(&h, 0, 1, START + 40000);
    assert_int_equal(h.state, ENGINE_READY);
    assert_true(health_is_alive(&h, START + 39500, START + 40000));
    health_scrape(&h, 0, 1, START + HEALTH_FRESH_MS - 1);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 0, 1, START + HEALTH_FRESH_MS);
    assert_int_equal(h.state, ENGINE_STALLED);
    assert_false(health_is_alive(&h, START, START + HEALTH_FRESH_MS));
}


static void
steps_say_how_long_the_next_may_take(void **state)
{
    health_t  h;
    uint64_t  at_ms;

    h = fresh();
    at_ms = run(&h, HEALTH_STEPS - 1, 20, START);
    assert_int_equal(health_stall_ms(&h), HEALTH_FRESH_MS);
    at_ms = run(&h, 1, 20, at_ms);
    assert_int_equal(health_stall_ms(&h), HEALTH_STALL_MS);

    /* A long prompt between steps counts for a thousand steps or two. */

    at_ms = run(&h, 1, 4000, at_ms);
    assert_int_equal(health_stall_ms(&h), 12000);
    at_ms = run(&h, HEALTH_STEPS, 20, at_ms);
    assert_int_equal(health_stall_ms(&h), 12000);
    at_ms = run(&h, HEALTH_STEPS, 20, at_ms);
    assert_int_equal(health_stall_ms(&h), HEALTH_STALL_MS);

    at_ms = run(&h, 1, 50000, at_ms);
    assert_int_equal(health_stall_ms(&h), HEALTH_FRESH_MS);

    /* A new process has to compile again, whether its start was seen or not.
       */

    at_ms = run(&h, HEALTH_STEPS * 3, 20, at_ms);
    assert_int_equal(health_stall_ms(&h), HEALTH_STALL_MS);
    health_unwilling(&h, at_ms);
    health_answer(&h, ENGINE_READY, at_ms);
    assert_int_equal(health_stall_ms(&h), HEALTH_FRESH_MS);
    run(&h, HEALTH_STEPS * 2, 20, at_ms);
    health_refused(&h, 0);
    assert_int_equal(health_stall_ms(&h), HEALTH_FRESH_MS);
}


/*
 * The bytes of a hundred streams, a millisecond apart, are those of ten steps
 * at most.
 */
static void
bytes_of_many_streams_are_of_one_step(void **state)
{
    int       i;
    health_t  h;
    uint64_t  at_ms;

    h = fresh();
    at_ms = START;

    for (i = 0; i < 50; i++) {
        at_ms = run(&h, 100, 1, at_ms + 100);
    }

    assert_int_equal(health_stall_ms(&h), HEALTH_FRESH_MS);
}


/* Nothing ran during the hour. */
static void
an_idle_hour_is_no_step(void **state)
{
    health_t  h;

    h = fresh();
    run(&h, HEALTH_STEPS * 2, 20, START);
    health_look(&h, 0, START + 60000);
    health_scrape(&h, 5, 0, START + 60000);
    health_scrape(&h, 5, 0, START + 3600000);
    health_scrape(&h, 6, 1, START + 3601500);
    assert_int_equal(health_stall_ms(&h), HEALTH_STALL_MS);
}


/* We have no stream: scrapes show that the counter stands still, and moves. */
static void
steps_of_others_are_seen_by_the_counter(void **state)
{
    int       i;
    health_t  h;

    h = fresh();

    for (i = 0; i <= HEALTH_STEPS; i++) {
        health_scrape(&h, i, 1, START + (uint64_t) i * 1500);
    }

    assert_int_equal(health_stall_ms(&h), HEALTH_STALL_MS);

    health_scrape(&h, i, 1, START + (uint64_t) i * 1500);
    health_scrape(&h, i, 1, START + (uint64_t) i * 1500 + 2000);
    health_scrape(&h, i + 1, 1, START + (uint64_t) i * 1500 + 2400);
    assert_int_equal(health_stall_ms(&h), 6000);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_fresh_engine_may_compile_for_a_minute),
        cmocka_unit_test(steps_say_how_long_the_next_may_take),
        cmocka_unit_test(steps_of_others_are_seen_by_the_counter),
        cmocka_unit_test(bytes_of_many_streams_are_of_one_step),
        cmocka_unit_test(an_idle_hour_is_no_step),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
