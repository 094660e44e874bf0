
/* An engine's health on made-up time. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "replica/engine/health.h"


#define START  1000000
#define GRACE  3000


static health_t
ready(void)
{
    health_t  h;

    health_init(&h, GRACE, START);
    health_answer(&h, ENGINE_READY, START);
    assert_int_equal(h.state, ENGINE_READY);

    return h;
}


static void
an_engine_starts_until_it_has_been_ready(void **state)
{
    health_t  h;

    health_init(&h, GRACE, START);
    assert_int_equal(h.state, ENGINE_STARTING);

    health_refused(&h, 0);
    assert_int_equal(h.state, ENGINE_STARTING);
    health_answer(&h, ENGINE_DOWN, START + 1);
    assert_int_equal(h.state, ENGINE_STARTING);
    health_answer(&h, ENGINE_STARTING, START + 2);
    assert_int_equal(h.state, ENGINE_STARTING);
    health_look(&h, 0, START + 3600000);
    assert_int_equal(h.state, ENGINE_STARTING);

    health_answer(&h, ENGINE_READY, START + 3600000);
    assert_int_equal(h.state, ENGINE_READY);
}


static void
a_refused_connection_is_the_end_at_once(void **state)
{
    health_t  h;

    h = ready();
    health_refused(&h, 0);
    assert_int_equal(h.state, ENGINE_DOWN);

    /* A new process loads; until it is ready a refused connection changes
       nothing. */

    health_answer(&h, ENGINE_STARTING, START + 1);
    assert_int_equal(h.state, ENGINE_STARTING);
    health_refused(&h, 0);
    assert_int_equal(h.state, ENGINE_STARTING);
    health_answer(&h, ENGINE_READY, START + 2);
    assert_int_equal(h.state, ENGINE_READY);

    health_answer(&h, ENGINE_DOWN, START + 3);
    assert_int_equal(h.state, ENGINE_DOWN);
    health_answer(&h, ENGINE_READY, START + 4);
    assert_int_equal(h.state, ENGINE_READY);
}


static void
one_that_has_just_gone_is_looked_at_most_often(void **state)
{
    health_t  h;

    health_init(&h, GRACE, START);
    assert_int_equal(health_pause_ms(&h, START), HEALTH_HURRY_MS);

    h = ready();
    assert_true(health_pause_ms(&h, START) == UINT64_MAX);
    health_refused(&h, 0);
    assert_int_equal(health_pause_ms(&h, START + 1), HEALTH_GONE_MS);
    assert_int_equal(health_pause_ms(&h, START + HEALTH_CHASE_MS),
                     HEALTH_GONE_MS);
    assert_int_equal(health_pause_ms(&h, START + 1 + HEALTH_CHASE_MS),
                     HEALTH_HURRY_MS);

    /* so it is for an engine that leaves, and again for one that was back */
    health_answer(&h, ENGINE_READY, START + 20000);
    assert_true(health_pause_ms(&h, START + 20000) == UINT64_MAX);
    health_unwilling(&h, START + 30000);
    assert_int_equal(health_pause_ms(&h, START + 30000), HEALTH_GONE_MS);
    assert_true(health_pause_ms(&h, START + 30000 + HEALTH_CHASE_MS)
                == UINT64_MAX);
}


static void
no_progress_for_a_grace_is_a_stall(void **state)
{
    health_t  h;

    h = ready();
    health_scrape(&h, 10, 2, START);
    health_scrape(&h, 11, 2, START + 1500);
    health_scrape(&h, 11, 2, START + 3000);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 11, 2, START + 4499);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 11, 2, START + 4500);
    assert_int_equal(h.state, ENGINE_STALLED);

    /* The engine's answer that it is healthy does not end the stall. */

    health_answer(&h, ENGINE_READY, START + 4600);
    assert_int_equal(h.state, ENGINE_STALLED);

    health_scrape(&h, 12, 2, START + 6000);
    assert_int_equal(h.state, ENGINE_READY);
}


/* The counter moved between scrapes that are a grace apart, so there is no
   stall. */
static void
a_counter_that_moved_is_no_stall(void **state)
{
    int       i;
    health_t  h;

    h = ready();

    for (i = 0; i < 10; i++) {
        health_scrape(&h, i, 1, START + i * 10000);
        assert_int_equal(h.state, ENGINE_READY);
    }
}


static void
bytes_on_our_streams_are_progress(void **state)
{
    health_t  h;

    h = ready();
    health_scrape(&h, 10, 1, START);
    health_bytes(&h, START + 2900);
    health_scrape(&h, 10, 1, START + 3000);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 10, 1, START + 5899);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 10, 1, START + 5900);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_bytes(&h, START + 6001);
    assert_int_equal(h.state, ENGINE_READY);
}


/* The next scrape shows that the counter moved, and our bytes show when. */
static void
the_grace_begins_at_our_last_byte(void **state)
{
    health_t  h;

    h = ready();
    health_scrape(&h, 10, 1, START);
    health_bytes(&h, START + 100);
    health_scrape(&h, 11, 1, START + 1500);
    assert_int_equal(health_progress_ms(&h), START + 100);
    health_scrape(&h, 11, 1, START + 3099);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 11, 1, START + 3100);
    assert_int_equal(h.state, ENGINE_STALLED);
}


/* A request gets the whole grace, however long the engine was idle before. */
static void
the_grace_begins_anew_with_work(void **state)
{
    health_t  h;

    h = ready();
    health_scrape(&h, 10, 0, START);
    health_scrape(&h, 10, 0, START + 60000);
    health_scrape(&h, 10, 1, START + 61500);
    health_scrape(&h, 10, 1, START + 64499);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 10, 1, START + 64500);
    assert_int_equal(h.state, ENGINE_STALLED);
}


static void
an_idle_engine_need_not_move(void **state)
{
    int       i;
    health_t  h;

    h = ready();

    for (i = 0; i < 100; i++) {
        health_scrape(&h, 10, 0, START + i * 1500);
        health_look(&h, 0, START + i * 1500);
        assert_int_equal(h.state, ENGINE_READY);
    }

    /* Nor is an engine without a counter stalled. */

    health_scrape(&h, -1, 5, START + 200000);
    health_scrape(&h, -1, 5, START + 300000);
    assert_int_equal(h.state, ENGINE_READY);
}


/* Our request has no bytes, and the engine counts it nowhere. */
static void
a_stream_that_the_engine_forgot_is_a_stall(void **state)
{
    int       t;
    health_t  h;

    h = ready();

    for (t = 0; t < HEALTH_FORGOTTEN_MS + GRACE; t += 500) {
        health_look(&h, 1, START + t);
        health_scrape(&h, 10, 0, START + t);
        assert_int_equal(h.state, ENGINE_READY);
    }

    health_look(&h, 1, START + t);
    health_scrape(&h, 10, 0, START + t);
    assert_int_equal(h.state, ENGINE_STALLED);

    /* Our streams are gone: the engine is trusted again after a grace. */

    health_look(&h, 0, START + t + 500);
    health_scrape(&h, 10, 0, START + t + 500);
    health_scrape(&h, 10, 0, START + t + 500 + GRACE - 1);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_scrape(&h, 10, 0, START + t + 500 + GRACE);
    assert_int_equal(h.state, ENGINE_READY);
}


/* Calls health_look() as often as it is called in service. */
static void
look(health_t *h, uint32_t streams, uint64_t from_ms, uint64_t until_ms)
{
    uint64_t  at_ms;

    for (at_ms = from_ms; at_ms < until_ms; at_ms += HEALTH_LOOK_MS) {
        health_look(h, streams, at_ms);
        assert_int_equal(h->state, ENGINE_READY);
    }

    health_look(h, streams, until_ms);
}


static void
silence_is_a_stall(void **state)
{
    health_t  h;

    /* A busy engine does not answer, but its tokens come. */

    h = ready();
    health_asked(&h, START);
    look(&h, 1, START, START + 2000);
    health_bytes(&h, START + 2000);
    look(&h, 1, START + 2500, START + 4999);
    assert_int_equal(h.state, ENGINE_READY);

    /* An engine without tokens answers something: so it has three seconds from
       the next question on, whenever that is. */

    health_answered(&h, START + 4999);
    look(&h, 1, START + 5499, START + 9000);
    assert_int_equal(h.state, ENGINE_READY);
    health_asked(&h, START + 9000);
    health_asked(&h, START + 11000);
    look(&h, 1, START + 9500, START + 11999);
    assert_int_equal(h.state, ENGINE_READY);
    health_look(&h, 1, START + 12000);
    assert_int_equal(h.state, ENGINE_STALLED);

    health_answer(&h, ENGINE_READY, START + 13000);
    assert_int_equal(h.state, ENGINE_READY);
}


/* All streams have left a frozen engine: it must get no new ones. */
static void
silence_is_a_stall_without_streams_too(void **state)
{
    health_t  h;

    h = ready();
    health_asked(&h, START);
    look(&h, 0, START, START + HEALTH_SILENCE_MS - 1);
    assert_int_equal(h.state, ENGINE_READY);
    health_look(&h, 0, START + HEALTH_SILENCE_MS);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_refused(&h, 0);
    assert_int_equal(h.state, ENGINE_DOWN);

    /* An engine that takes no new requests by then is leaving, not stalled. */

    h = ready();
    health_asked(&h, START);
    look(&h, 0, START, START + HEALTH_SILENCE_MS);
    health_unwilling(&h, START + 4000);
    assert_int_equal(h.state, ENGINE_READY);
    assert_true(h.is_leaving);
}


/* llama-server answers for its health in a thread of its own, and for its
   metrics between steps. */
static void
metrics_that_stay_away_are_a_stall(void **state)
{
    uint64_t  at_ms;
    health_t  h;

    h = ready();
    health_look(&h, 1, START);
    health_scrape(&h, 7, 1, START);

    for (at_ms = START; at_ms < START + GRACE; at_ms += HEALTH_LOOK_MS) {
        health_answered(&h, at_ms);
        health_look(&h, 1, at_ms);
        assert_int_equal(h.state, ENGINE_READY);
    }

    health_look(&h, 1, at_ms);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_answered(&h, at_ms);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_bytes(&h, at_ms);
    assert_int_equal(h.state, ENGINE_READY);

    /* After its streams have left, the engine still answers all but its
       metrics. */

    health_scrape(&h, 8, 1, at_ms);
    look(&h, 1, at_ms + 500, at_ms + GRACE);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_look(&h, 0, at_ms + GRACE + 500);
    health_answered(&h, at_ms + GRACE + 500);
    assert_int_equal(h.state, ENGINE_READY);

    /* An engine that drains gets nothing new in any case. */

    health_unwilling(&h, at_ms + GRACE + 1000);
    look(&h, 1, at_ms + GRACE + 1000, at_ms + 3 * GRACE);
    assert_int_equal(h.state, ENGINE_READY);
}


/* Without its counter nothing would show any more that the engine moves. */
static void
a_counter_that_is_gone_ends_a_stall(void **state)
{
    health_t  h;

    h = ready();
    health_scrape(&h, 10, 1, START);
    health_scrape(&h, 10, 1, START + GRACE);
    assert_int_equal(h.state, ENGINE_STALLED);
    health_scrape(&h, -1, 0, START + 2 * GRACE);
    assert_int_equal(h.state, ENGINE_READY);
}


/* What came while the process stood still is in its sockets: the next look
   reads it. */
static void
a_process_that_stood_still_blames_no_engine(void **state)
{
    health_t  h;

    h = ready();
    health_asked(&h, START);
    look(&h, 1, START, START + 1000);
    health_look(&h, 1, START + 60000);
    assert_int_equal(h.state, ENGINE_READY);
    look(&h, 1, START + 60500, START + 60000 + HEALTH_SILENCE_MS - 1);
    assert_int_equal(h.state, ENGINE_READY);
    health_look(&h, 1, START + 60000 + HEALTH_SILENCE_MS);
    assert_int_equal(h.state, ENGINE_STALLED);
}


/* --- an engine that ends */

/* However long its streams are silent: if the engine ended, their connections
   would end, too. */
static void
an_engine_that_closed_its_port_finishes_its_streams(void **state)
{
    health_t  h;

    h = ready();
    health_refused(&h, 1);
    assert_int_equal(h.state, ENGINE_READY);
    assert_true(h.is_leaving);
    look(&h, 1, START, START + 600000);
    health_refused(&h, 1);
    assert_int_equal(h.state, ENGINE_READY);
    health_refused(&h, 0);
    assert_int_equal(h.state, ENGINE_DOWN);
    assert_false(h.is_leaving);
}


static void
an_engine_that_is_unwilling_leaves_until_it_is_ready(void **state)
{
    health_t  h;

    health_init(&h, GRACE, START);
    health_unwilling(&h, START);
    assert_int_equal(h.state, ENGINE_STARTING);
    assert_false(h.is_leaving);

    h = ready();
    health_unwilling(&h, START + 1000);
    assert_int_equal(h.state, ENGINE_READY);
    assert_true(h.is_leaving);

    /* An engine that leaves is measured as before, and may stall. */

    health_scrape(&h, 5, 1, START + 1000);
    health_scrape(&h, 5, 1, START + 1000 + GRACE);
    assert_int_equal(h.state, ENGINE_STALLED);
    assert_true(h.is_leaving);
    health_answer(&h, ENGINE_READY, START + 6000);
    assert_false(h.is_leaving);

    /* After the engine's end another process starts. */

    health_unwilling(&h, START + 7000);
    health_refused(&h, 0);
    assert_int_equal(h.state, ENGINE_DOWN);
    health_unwilling(&h, START + 9000);
    assert_int_equal(h.state, ENGINE_STARTING);
    assert_false(h.is_leaving);
}


/* A stream without bytes relies on the engine, but not on a dead one. */
static void
a_sign_of_life_needs_an_answer_and_progress(void **state)
{
    health_t  h;

    h = ready();
    health_look(&h, 1, START);
    health_scrape(&h, 1, 1, START + 1000);
    assert_true(health_is_alive(&h, START + 1000, START + 1200));
    assert_false(health_is_alive(&h, START + 1001, START + 1200));
    health_bytes(&h, START + 1500);
    assert_true(health_is_alive(&h, START + 1001, START + 1500));

    health_answer(&h, ENGINE_READY, START + 1500 + GRACE);
    assert_true(health_is_alive(&h, START, START + 1500 + GRACE - 1));
    assert_false(health_is_alive(&h, START, START + 1500 + GRACE));
}


/* A counter that begins anew with another process is no stall. */
static void
an_engine_that_was_down_is_measured_anew(void **state)
{
    health_t  h;

    h = ready();
    health_scrape(&h, 10, 1, START);
    health_refused(&h, 0);
    health_answer(&h, ENGINE_READY, START + 4000);
    health_scrape(&h, 10, 1, START + 4000);
    assert_int_equal(h.state, ENGINE_READY);
    health_scrape(&h, 10, 1, START + 7000);
    assert_int_equal(h.state, ENGINE_STALLED);
}


static void
a_capacity_is_learnt_while_requests_wait(void **state)
{
    health_capacity_t  c = { 0 };

    /* A request that has just come waits for a moment: that is no limit. */

    health_learn_capacity(&c, 100, 3, START);
    health_learn_capacity(&c, 103, 0, START + 1500);
    assert_int_equal(c.limit, 0);

    health_learn_capacity(&c, 60, 3, START + 3000);
    health_learn_capacity(&c, 64, 5, START + 4500);
    assert_int_equal(c.limit, 64);
    health_learn_capacity(&c, 70, 5, START + 6000);
    assert_int_equal(c.limit, 64);
    health_learn_capacity(&c, 40, 5, START + 7500);
    assert_int_equal(c.limit, 40);

    /* A limit of 0 is never learnt. */

    health_learn_capacity(&c, 0, 5, START + 9000);
    assert_int_equal(c.limit, 40);

    /* None waits: the limit grows only if it holds requests back. */

    health_learn_capacity(&c, 30, 0, START + 10500);
    assert_int_equal(c.limit, 40);
    health_learn_capacity(&c, 40, 0, START + 12000);
    assert_int_equal(c.limit, 46);

    health_learn_capacity(&c, 0, 0, START + 9000 + HEALTH_FORGET_MS - 1);
    assert_int_equal(c.limit, 46);
    health_learn_capacity(&c, 0, 0, START + 9000 + HEALTH_FORGET_MS);
    assert_int_equal(c.limit, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(an_engine_starts_until_it_has_been_ready),
        cmocka_unit_test(a_refused_connection_is_the_end_at_once),
        cmocka_unit_test(one_that_has_just_gone_is_looked_at_most_often),
        cmocka_unit_test(no_progress_for_a_grace_is_a_stall),
        cmocka_unit_test(a_counter_that_moved_is_no_stall),
        cmocka_unit_test(bytes_on_our_streams_are_progress),
        cmocka_unit_test(the_grace_begins_at_our_last_byte),
        cmocka_unit_test(the_grace_begins_anew_with_work),
        cmocka_unit_test(an_idle_engine_need_not_move),
        cmocka_unit_test(a_stream_that_the_engine_forgot_is_a_stall),
        cmocka_unit_test(silence_is_a_stall),
        cmocka_unit_test(silence_is_a_stall_without_streams_too),
        cmocka_unit_test(metrics_that_stay_away_are_a_stall),
        cmocka_unit_test(a_counter_that_is_gone_ends_a_stall),
        cmocka_unit_test(a_process_that_stood_still_blames_no_engine),
        cmocka_unit_test(an_engine_that_closed_its_port_finishes_its_streams),
        cmocka_unit_test(an_engine_that_is_unwilling_leaves_until_it_is_ready),
        cmocka_unit_test(a_sign_of_life_needs_an_answer_and_progress),
        cmocka_unit_test(an_engine_that_was_down_is_measured_anew),
        cmocka_unit_test(a_capacity_is_learnt_while_requests_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
