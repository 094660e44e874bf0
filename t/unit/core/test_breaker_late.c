
/* The breaker with results that come late, by force, or never. */

#include "t/unit/core/breaker_scene.h"


/* --- late results */

static void
late_results_do_not_confuse(void **state)
{
    int                     i;
    scene_t                 s;
    llmgw_breaker_ticket_t  before[30], during, probe;

    scene_init(&s);

    for (i = 0; i < 30; i++) {
        before[i] = begin(&s, LLMGW_BREAKER_UNCHANGED);
    }

    open_circuit(&s);
    assert_int_equal(end(&s, before[0], FAILURE), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, before[1], SUCCESS), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(state_of(&s), LLMGW_BREAKER_OPEN);
    assert_int_equal(s.b.cooldown_ms, 5000);

    during = begin(&s, LLMGW_BREAKER_UNCHANGED);
    assert_false(llmgw_breaker_is_probe(during));
    assert_int_equal(end(&s, during, SUCCESS), LLMGW_BREAKER_UNCHANGED);
    attempts(&s, 20, FAILURE);      /* nor those of attempts not admitted */
    assert_counts(&s, 5, 5);

    s.now_ms += 5000;
    probe = begin_probe(&s);
    assert_int_equal(end(&s, before[2], FAILURE), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, before[3], SUCCESS), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(state_of(&s), LLMGW_BREAKER_HALF_OPEN);
    assert_false(allows(&s));       /* no probe's place was freed */

    assert_int_equal(end(&s, probe, SUCCESS), LLMGW_BREAKER_RECLOSED);

    for (i = 4; i < 30; i++) {
        assert_int_equal(end(&s, before[i], FAILURE),
                         LLMGW_BREAKER_UNCHANGED);
    }

    assert_int_equal(state_of(&s), LLMGW_BREAKER_CLOSED);
    assert_counts(&s, 0, 0);
}


static void
second_failed_probe_does_not_double_again(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  first, second;

    scene_init(&s);
    s.conf.probes = 2;
    open_circuit(&s);
    s.now_ms += 5000;

    first = begin_probe(&s);
    second = begin(&s, LLMGW_BREAKER_UNCHANGED);

    assert_int_equal(end(&s, first, FAILURE), LLMGW_BREAKER_REOPENED);
    s.now_ms += 100;
    assert_int_equal(end(&s, second, FAILURE), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(s.b.cooldown_ms, 10000);

    /* nor does a result of the last HALF_OPEN count in this one */
    s.now_ms += 9900;
    first = begin_probe(&s);
    assert_int_equal(end(&s, second, SUCCESS), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(end(&s, first, FAILURE), LLMGW_BREAKER_REOPENED);
    assert_int_equal(s.b.cooldown_ms, 20000);
}


/* --- all circuits open */

static llmgw_breaker_ticket_t
force(scene_t *s, llmgw_breaker_change_t change)
{
    llmgw_breaker_ticket_t  ticket;

    assert_int_equal(llmgw_breaker_force(&s->b, &s->conf, s->now_ms, &ticket),
                     change);
    return ticket;
}


static int
may_force(const scene_t *s)
{
    return llmgw_breaker_may_force(&s->b, &s->conf, s->now_ms);
}


static void
forced_probe_closes_before_the_cooldown(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);

    assert_false(may_force(&s));
    probe = force(&s, LLMGW_BREAKER_UNCHANGED);
    assert_false(llmgw_breaker_is_probe(probe));

    s.now_ms += LLMGW_BREAKER_FORCE_GAP_MS - 1;
    assert_false(may_force(&s));
    s.now_ms++;
    assert_true(may_force(&s));
    assert_false(allows(&s));

    probe = force(&s, LLMGW_BREAKER_HALF_OPENED);
    assert_true(llmgw_breaker_is_probe(probe));
    assert_false(may_force(&s));
    assert_int_equal(end(&s, probe, SUCCESS), LLMGW_BREAKER_RECLOSED);
}


static void
failed_forced_probes_do_not_double_the_cooldown(void **state)
{
    int                     i;
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);

    for (i = 0; i < 50; i++) {
        s.now_ms += LLMGW_BREAKER_FORCE_GAP_MS;
        probe = force(&s, LLMGW_BREAKER_HALF_OPENED);
        assert_int_equal(end(&s, probe, FAILURE), LLMGW_BREAKER_REOPENED);
        assert_int_equal(llmgw_breaker_retry_ms(&s.b, &s.conf),
                         s.now_ms + 5000);
    }

    /* a probe after the full cooldown counts again */
    s.now_ms += 5000;
    probe = force(&s, LLMGW_BREAKER_HALF_OPENED);
    assert_int_equal(end(&s, probe, FAILURE), LLMGW_BREAKER_REOPENED);
    assert_int_equal(s.b.cooldown_ms, 10000);
}


/* A pool of one, whose only probe was killed with its worker. */
static void
lost_probe_is_forced_over_after_one_cooldown(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);
    s.now_ms += 5000;
    (void) begin_probe(&s);

    s.now_ms += 4999;
    assert_false(may_force(&s));
    s.now_ms++;
    assert_true(may_force(&s));

    probe = force(&s, LLMGW_BREAKER_UNCHANGED);
    assert_true(llmgw_breaker_is_probe(probe));
    assert_int_equal(end(&s, probe, SUCCESS), LLMGW_BREAKER_RECLOSED);
}


static void
short_cooldown_shortens_the_gap(void **state)
{
    scene_t  s;

    scene_init(&s);
    s.conf.cooldown_ms = 20;
    s.conf.max_cooldown_ms = 1000;
    open_circuit(&s);

    s.now_ms += 20;
    assert_true(allows(&s));
    assert_true(may_force(&s));
}


static void
closed_circuit_is_forced_like_any_other(void **state)
{
    scene_t  s;

    scene_init(&s);

    assert_true(may_force(&s));
    assert_false(llmgw_breaker_is_probe(force(&s, LLMGW_BREAKER_UNCHANGED)));
}


/* --- random sequences */

#define ATTEMPTS  8

/* One random step: attempts end, are lost, or end late. */
static void
live(scene_t *s, llmgw_breaker_ticket_t *tickets, int *running)
{
    int  i;

    i = (int) (random() % ATTEMPTS);
    s->now_ms += (uint64_t) (random() % 400);

    if (running[i]) {
        running[i] = 0;

        if (random() % 4 != 0) {            /* else its process is killed */
            (void) end(s, tickets[i], (llmgw_verdict_t) (random() % 3));
        }

        return;
    }

    if (allows(s)) {
        (void) llmgw_breaker_begin(&s->b, &s->conf, s->now_ms, &tickets[i]);
        assert_true(state_of(s) == LLMGW_BREAKER_CLOSED
                    || llmgw_breaker_is_probe(tickets[i]));
        running[i] = 1;

    } else if (random() % 8 == 0 && may_force(s)) {
        (void) llmgw_breaker_force(&s->b, &s->conf, s->now_ms, &tickets[i]);
        assert_true(llmgw_breaker_is_probe(tickets[i]));
        running[i] = 1;
    }
}


static void
nothing_wedges_it(void **state)
{
    int                     i, running[ATTEMPTS] = { 0 }, seen[3] = { 0 };
    scene_t                 s, later;
    llmgw_breaker_ticket_t  tickets[ATTEMPTS], probe;

    scene_init(&s);
    srandom(3);

    for (i = 0; i < 200000; i++) {
        s.conf.probes = 1 + (uint32_t) i / 50000;
        live(&s, tickets, running);

        assert_in_range(s.b.probing, 0, s.conf.probes);
        assert_in_range(s.b.succeeded, 0, s.conf.probes - 1);
        seen[state_of(&s)]++;

        /* no requests for a while, and then healthy probes */
        later = s;
        later.now_ms += 60000;

        while (state_of(&later) != LLMGW_BREAKER_CLOSED) {
            assert_true(allows(&later));
            (void) llmgw_breaker_begin(&later.b, &later.conf, later.now_ms,
                                       &probe);
            (void) end(&later, probe, SUCCESS);
        }
    }

    for (i = 0; i < 3; i++) {
        assert_in_range(seen[i], 5000, 190000);
    }
}


/* --- switched off */

static void
breaker_that_is_off_lets_all_through_and_counts_nothing(void **state)
{
    scene_t                 s;
    llmgw_breaker_ticket_t  probe;

    scene_init(&s);
    open_circuit(&s);

    s.conf.enabled = 0;
    assert_true(allows(&s));
    assert_true(may_force(&s));
    assert_int_equal(state_of(&s), LLMGW_BREAKER_CLOSED);
    attempts(&s, 100, FAILURE);
    assert_false(llmgw_breaker_is_probe(force(&s, LLMGW_BREAKER_UNCHANGED)));

    s.conf.enabled = 1;
    assert_counts(&s, 5, 5);
    assert_int_equal(state_of(&s), LLMGW_BREAKER_OPEN);

    s.now_ms += 5000;
    probe = begin_probe(&s);
    s.conf.enabled = 0;
    assert_int_equal(end(&s, probe, SUCCESS), LLMGW_BREAKER_UNCHANGED);
    assert_int_equal(s.b.state, LLMGW_BREAKER_HALF_OPEN);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(late_results_do_not_confuse),
        cmocka_unit_test(second_failed_probe_does_not_double_again),
        cmocka_unit_test(forced_probe_closes_before_the_cooldown),
        cmocka_unit_test(failed_forced_probes_do_not_double_the_cooldown),
        cmocka_unit_test(lost_probe_is_forced_over_after_one_cooldown),
        cmocka_unit_test(short_cooldown_shortens_the_gap),
        cmocka_unit_test(closed_circuit_is_forced_like_any_other),
        cmocka_unit_test(nothing_wedges_it),
        cmocka_unit_test(
            breaker_that_is_off_lets_all_through_and_counts_nothing)
    };

    return cmocka_run_group_tests_name("breaker late", tests, NULL, NULL);
}
