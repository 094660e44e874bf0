
/* The breaker: each transition of its drawing, its window, leases. */

#include "t/unit/core/breaker_scene.h"


/* --- closed */

static void
zeroed_memory_is_a_closed_circuit(void **state)
{
    scene_t  s;

    scene_init(&s);

    s.now_ms = 0;
    assert_true(allows(&s));
    assert_int_equal(state_of(&s), LLMGW_BREAKER_CLOSED);
    assert_int_equal(llmgw_breaker_retry_ms(&s.b, &s.conf), 0);
    assert_counts(&s, 0, 0);

    open_circuit(&s);       /* in the very first millisecond */
    assert_false(allows(&s));
}


static void
opens_at_the_error_rate_and_tells_the_counts(void **state)
{
    scene_t  s;

    scene_init(&s);

    attempts(&s, 3, SUCCESS);
    attempts(&s, 2, FAILURE);
    attempts(&s, 100, NEUTRAL);
    assert_counts(&s, 2, 5);

    /* 3 of 6 is half */
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);
    assert_counts(&s, 3, 6);
    assert_false(allows(&s));

    scene_init(&s);
    s.conf.error_permille = 501;
    attempts(&s, 3, SUCCESS);
    attempts(&s, 3, FAILURE);
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);
    assert_counts(&s, 4, 7);
}


static void
stays_closed_below_min_requests_and_on_success(void **state)
{
    scene_t  s;

    scene_init(&s);

    attempts(&s, 4, FAILURE);
    attempts(&s, 1, SUCCESS);       /* 4 of 5, but no failure now */
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);

    scene_init(&s);
    s.conf.min_requests = 0;
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);
    assert_counts(&s, 1, 1);
}


static void
window_slides_by_tenths(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s);

    for (i = 0; i < 4; i++) {
        attempts(&s, 1, FAILURE);
        s.now_ms += 1000;
    }

    assert_counts(&s, 4, 4);

    s.now_ms += 5999;               /* the first is 9999 ms old */
    assert_counts(&s, 4, 4);

    s.now_ms++;
    assert_counts(&s, 3, 3);
    attempts(&s, 1, FAILURE);       /* the fifth, but four in the window */
    assert_counts(&s, 4, 4);
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);

    s.now_ms += 10000;
    assert_counts(&s, 0, 0);
}


static void
steady_failures_far_apart_never_open(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s);

    for (i = 0; i < 1000; i++) {
        attempts(&s, 1, FAILURE);
        s.now_ms += 2500;
    }

    s.now_ms += 10000;

    for (i = 0; i < 1000; i++) {
        attempts(&s, 4, FAILURE);
        s.now_ms += 10000 + (uint64_t) i * 700;
    }
}


static void
clock_that_lags_counts_in_the_newest_bucket(void **state)
{
    scene_t  s;

    scene_init(&s);

    attempts(&s, 2, FAILURE);
    s.now_ms -= 1500;
    attempts(&s, 2, FAILURE);
    assert_counts(&s, 4, 4);
    s.now_ms += 1500;
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);

    s.now_ms -= 20;
    assert_false(allows(&s));
    assert_counts(&s, 5, 5);
}


/* A reload may change every figure under a breaker that stays. */
static void
another_window_after_reload_starts_empty(void **state)
{
    scene_t  s;

    scene_init(&s);

    attempts(&s, 4, FAILURE);
    s.conf.window_ms = 60000;       /* bucket numbers fall */
    attempts(&s, 1, FAILURE);
    assert_counts(&s, 1, 1);

    s.conf.window_ms = 1000;        /* and rise */
    attempts(&s, 1, FAILURE);
    assert_counts(&s, 1, 1);

    s.conf.window_ms = 1;           /* less than a bucket for each ms */
    attempts(&s, 4, FAILURE);
    assert_int_equal(attempt(&s, FAILURE), LLMGW_BREAKER_OPENED);
}


/* --- open and half open */

static void
cooldown_ends_with_one_probe_that_closes(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);

    assert_int_equal(llmgw_breaker_retry_ms(&s.b, &s.conf), s.now_ms + 5000);

    s.now_ms += 4999;
    assert_false(allows(&s));
    s.now_ms++;

    probe = begin_probe(&s);
    assert_false(allows(&s));       /* one probe at a time */

    assert_int_equal(end(&s, probe, SUCCESS), LLMGW_BREAKER_RECLOSED);
    assert_int_equal(state_of(&s), LLMGW_BREAKER_CLOSED);
    assert_true(allows(&s));
    assert_counts(&s, 0, 0);

    /* like new: the same number of failures, the same cooldown */
    open_circuit(&s);
    assert_int_equal(llmgw_breaker_retry_ms(&s.b, &s.conf), s.now_ms + 5000);
}


static void
failed_probes_double_the_cooldown_to_its_maximum(void **state)
{
    size_t    i;
    scene_t   s;

    static const uint64_t  cooldowns_ms[] = { 10000, 20000, 40000, 60000,
                                              60000 };

    scene_init(&s);
    open_circuit(&s);
    s.now_ms += 5000;

    for (i = 0; i < sizeof(cooldowns_ms) / sizeof(cooldowns_ms[0]); i++) {
        assert_int_equal(end(&s, begin_probe(&s), FAILURE),
                         LLMGW_BREAKER_REOPENED);
        assert_int_equal(s.b.cooldown_ms, cooldowns_ms[i]);

        s.now_ms += cooldowns_ms[i] - 1;
        assert_false(allows(&s));
        s.now_ms++;
    }

    assert_int_equal(end(&s, begin_probe(&s), SUCCESS),
                     LLMGW_BREAKER_RECLOSED);
    open_circuit(&s);
    assert_int_equal(s.b.cooldown_ms, 5000);
}


static void
maximum_below_the_cooldown_is_the_cooldown(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.conf.max_cooldown_ms = 0;
    open_circuit(&s);
    s.now_ms += 5000;

    assert_int_equal(end(&s, begin_probe(&s), FAILURE),
                     LLMGW_BREAKER_REOPENED);
    assert_int_equal(s.b.cooldown_ms, 5000);
}


static void
three_probes_at_a_time_and_three_successes(void **state)
{
    int                     i;
    scene_t                 s;
    llmgw_breaker_ticket_t  probes[4];

    scene_init(&s);
    s.conf.probes = 3;
    open_circuit(&s);
    s.now_ms += 5000;

    probes[0] = begin_probe(&s);

    for (i = 1; i < 3; i++) {
        assert_true(allows(&s));
        probes[i] = begin(&s, LLMGW_BREAKER_UNCHANGED);
        assert_true(llmgw_breaker_is_probe(probes[i]));
    }

    assert_false(allows(&s));

    assert_int_equal(end(&s, probes[0], SUCCESS), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, probes[1], NEUTRAL), LLMGW_BREAKER_UNCHANGED);

    probes[0] = begin(&s, LLMGW_BREAKER_UNCHANGED);
    probes[3] = begin(&s, LLMGW_BREAKER_UNCHANGED);
    assert_false(allows(&s));

    assert_int_equal(end(&s, probes[2], SUCCESS), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, probes[3], SUCCESS), LLMGW_BREAKER_RECLOSED);

    /* the probe that is left belongs to a state that has ended */
    assert_int_equal(end(&s, probes[0], FAILURE), LLMGW_BREAKER_UNCHANGED);
    assert_counts(&s, 0, 0);
}


static void
neutral_probe_gives_its_place_back(void **state)
{
    int                     i;
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);
    s.now_ms += 5000;

    probe = begin_probe(&s);

    for (i = 0; i < 100; i++) {
        assert_int_equal(end(&s, probe, NEUTRAL), LLMGW_BREAKER_UNCHANGED);
        assert_int_equal(state_of(&s), LLMGW_BREAKER_HALF_OPEN);
        assert_true(allows(&s));
        probe = begin(&s, LLMGW_BREAKER_UNCHANGED);
        assert_true(llmgw_breaker_is_probe(probe));
    }
}


static void
lost_probe_is_replaced_after_its_lease(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);
    s.now_ms += 5000;

    (void) begin_probe(&s);         /* its worker is killed */
    assert_int_equal(llmgw_breaker_retry_ms(&s.b, &s.conf),
                     s.now_ms + 60000);

    s.now_ms += 59999;
    assert_false(allows(&s));
    s.now_ms++;
    assert_true(allows(&s));

    probe = begin(&s, LLMGW_BREAKER_UNCHANGED);
    assert_true(llmgw_breaker_is_probe(probe));
    assert_false(allows(&s));       /* the new probe has the lease */
    assert_int_equal(end(&s, probe, SUCCESS), LLMGW_BREAKER_RECLOSED);
}


static void
slow_probe_counts_after_its_lease(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  slow, other;

    scene_init(&s);
    s.conf.probes = 2;
    open_circuit(&s);
    s.now_ms += 5000;

    slow = begin_probe(&s);
    (void) begin(&s, LLMGW_BREAKER_UNCHANGED);
    s.now_ms += 60000;
    other = begin(&s, LLMGW_BREAKER_UNCHANGED);

    assert_int_equal(end(&s, slow, NEUTRAL), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, other, SUCCESS), LLMGW_BREAKER_UNCHANGED);
    other = begin(&s, LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, other, SUCCESS), LLMGW_BREAKER_RECLOSED);

    scene_init(&s);
    open_circuit(&s);
    s.now_ms += 5000;

    slow = begin_probe(&s);
    s.now_ms += 60000;
    other = begin(&s, LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, other, NEUTRAL), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, slow, SUCCESS), LLMGW_BREAKER_RECLOSED);
}


static void
two_that_had_one_place_give_back_one(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  slow, other;

    scene_init(&s);
    open_circuit(&s);
    s.now_ms += 5000;

    slow = begin_probe(&s);
    s.now_ms += 60000;
    other = begin(&s, LLMGW_BREAKER_UNCHANGED);

    assert_int_equal(end(&s, other, NEUTRAL), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, slow, NEUTRAL), LLMGW_BREAKER_UNCHANGED);
    assert_true(allows(&s));

    (void) begin(&s, LLMGW_BREAKER_UNCHANGED);
    assert_false(allows(&s));
}


static void
states_have_names(void **state)
{
    assert_string_equal(llmgw_breaker_state_name(LLMGW_BREAKER_CLOSED),
                        "closed");
    assert_string_equal(llmgw_breaker_state_name(LLMGW_BREAKER_OPEN), "open");
    assert_string_equal(llmgw_breaker_state_name(LLMGW_BREAKER_HALF_OPEN),
                        "half_open");
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(zeroed_memory_is_a_closed_circuit),
        cmocka_unit_test(opens_at_the_error_rate_and_tells_the_counts),
        cmocka_unit_test(stays_closed_below_min_requests_and_on_success),
        cmocka_unit_test(window_slides_by_tenths),
        cmocka_unit_test(steady_failures_far_apart_never_open),
        cmocka_unit_test(clock_that_lags_counts_in_the_newest_bucket),
        cmocka_unit_test(another_window_after_reload_starts_empty),
        cmocka_unit_test(cooldown_ends_with_one_probe_that_closes),
        cmocka_unit_test(failed_probes_double_the_cooldown_to_its_maximum),
        cmocka_unit_test(maximum_below_the_cooldown_is_the_cooldown),
        cmocka_unit_test(three_probes_at_a_time_and_three_successes),
        cmocka_unit_test(neutral_probe_gives_its_place_back),
        cmocka_unit_test(lost_probe_is_replaced_after_its_lease),
        cmocka_unit_test(slow_probe_counts_after_its_lease),
        cmocka_unit_test(two_that_had_one_place_give_back_one),
        cmocka_unit_test(states_have_names)
    };

    return cmocka_run_group_tests_name("breaker", tests, NULL, NULL);
}
