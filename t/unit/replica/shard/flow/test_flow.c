
/*
 * One fault at a time: what a flow does about it, and what it leaves alone.
 */

#include "t/unit/replica/shard/flow/flow_scene_streams.h"

#define PLENTY  (1ULL << 40)


static void
the_text_is_that_of_the_whole_model(void **state)
{
    stream_t      *s;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 5);
    scene_shard("b", 4, 9);
    scene_shard("c", 10, 15);
    s = scene_stream(70, 30);
    scene_shard("d", 4, 9);
    scene_run();
    stream_check_done(s);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.tokens, 30);
    assert_int_equal(stats.failovers, 0);
    assert_int_equal(stats.construct.count, 1);
    assert_int_equal(stats.first_token.count, 1);
    assert_int_equal(scene.opens, 3);
    scene_end();
}


/*
 * 4 shards and 8 chunks of 20 ms each take 11 steps one after the other, not
 * 32.
 */
static void
chunks_of_a_prompt_overlap_over_the_shards(void **state)
{
    size_t     i;
    uint64_t   begun;
    stream_t  *s;

    scene_begin(1, PLENTY);
    for (i = 0; i < 4; i++) {
        fake_t  *shard = scene_shard(&"a\0b\0c\0d"[2 * i], 4 * i, 4 * i + 3);

        shard->row_ns = 0;
        shard->step_ns = 20 * MS;
    }
    begun = scene.now;
    s = scene_stream(8 * 32, 1);
    scene_run();
    stream_check_done(s);
    assert_int_equal((s->done_ns - begun) / MS, 220);
    scene_end();
}


/* Each of the two shards dies, at each position. */
static void
a_shard_that_dies_is_replaced_and_no_bit_changes(void **state)
{
    size_t         shard;
    uint64_t       after_us;
    stream_t      *s;
    flow_stats_t   stats;

    for (shard = 0; shard < 2; shard++) {
        for (after_us = 0; after_us < 20000; after_us += 370) {
            scene_begin(after_us, PLENTY);
            two_by_two();
            scene.latency = 50000;
            s = scene_stream(100, 40);
            scene_at(scene.now + after_us * 1000, fake_kill,
                     &scene.shards[shard]);
            scene_run();
            stream_check_done(s);
            flows_stats(scene.flows, &stats);
            assert_int_equal(stats.failovers, 1);
            scene_end();
        }
    }
}


/* The first hop's rows are computed again, the other sessions stay. */
static void
only_the_shard_that_was_lost_computes_again(void **state)
{
    stream_t      *s;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    two_by_two();
    s = scene_stream(64, 40);
    scene_at(scene.now + 8 * MS, fake_kill, &scene.shards[0]);
    scene_run();
    stream_check_done(s);
    assert_int_equal(s->rewinds, 1);
    assert_int_equal(scene.opens, 3);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.replays, 1);
    assert_int_equal(stats.rewinds, 1);
    scene_end();

    scene_begin(1, PLENTY);
    two_by_two();
    s = scene_stream(64, 40);
    scene_at(scene.now + 8 * MS, fake_kill, &scene.shards[1]);
    scene_run();
    stream_check_done(s);
    assert_int_equal(s->rewinds, 0);
    assert_int_equal(scene.opens, 3);
    scene_end();
}


static void
a_replacement_may_have_other_inner_boundaries(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 3);
    scene_shard("b", 4, 11);
    scene_shard("c", 12, 15);
    scene_shard("d", 4, 6);
    scene_shard("e", 7, 9);
    scene_shard("f", 10, 13);
    s = scene_stream(64, 40);
    scene_at(scene.now + 8 * MS, fake_kill, &scene.shards[1]);
    scene_run();
    stream_check_done(s);
    assert_int_equal(s->rewinds, 0);
    assert_int_equal(scene.opens, 3 + 3);
    scene_end();
}


/*
 * With fp16 on the wire each cut rounds, so the cuts belong to the numerics.
 */
static void
a_stream_of_fp16_keeps_its_cuts(void **state)
{
    int        has_same;
    stream_t  *s;

    for (has_same = 0; has_same < 2; has_same++) {
        scene_begin(1, PLENTY);
        scene.flows->options.is_rounded = 1;
        scene_shard("a", 0, 7);
        scene_shard("b", 8, 15);
        scene_shard("c", 8, 11);
        scene_shard("d", 12, 15);
        if (has_same) {
            scene_shard("e", 8, 15)->sessions = 9;
        }
        s = scene_stream(64, 40);
        scene_at(scene.now + 8 * MS, fake_kill, &scene.shards[1]);
        scene_run();
        if (has_same) {
            stream_check_done(s);
        } else {
            stream_check(s);
            assert_string_equal(s->reason, "shard_unavailable");
        }
        scene_end();
    }
}


/*
 * No shard begins where the lost one began, but one begins a boundary before.
 */
static void
a_stretch_grows_until_somebody_covers_it(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 3);
    scene_shard("b", 4, 7);
    scene_shard("c", 8, 11);
    scene_shard("d", 12, 15);
    scene_shard("e", 4, 11);
    scene.shards[4].is_unlisted = 1;
    s = scene_stream(64, 40);
    scene_run_until(scene.now + 5 * MS);
    scene.shards[4].is_unlisted = 0;
    fake_kill(&scene.shards[2]);
    scene_run();
    stream_check_done(s);
    assert_int_equal(s->rewinds, 0);
    assert_int_equal(scene.opens, 4 + 1);
    scene_end();
}


static void
a_boundary_without_history_begins_from_the_tokens(void **state)
{
    stream_t      *old, *young;
    flow_stats_t   stats;

    scene_begin(1, 90 * WIDTH * sizeof(float));
    two_by_two();
    old = scene_stream(64, 40);
    scene_run_until(scene.now + 1 * MS);
    young = scene_stream(30, 20);
    scene_run_until(scene.now + 4 * MS);
    fake_kill(&scene.shards[1]);
    scene_run();
    stream_check_done(old);
    stream_check_done(young);
    flows_stats(scene.flows, &stats);
    assert_true(stats.evictions > 0);
    assert_int_equal(old->rewinds, 1);
    assert_int_equal(young->rewinds, 0);
    scene_end();
}


/* Only rows that are still to be sent may exceed the budget. */
static void
histories_have_a_budget(void **state)
{
    size_t          i;
    uint64_t        ms, most;
    flow_stats_t    stats;
    const uint64_t  max = 500 * WIDTH * sizeof(float);

    scene_begin(1, max);
    two_by_two();
    for (i = 0; i < 10; i++) {
        scene_stream(150, 60);
    }
    most = 0;
    for (ms = 0; ms < 200; ms++) {
        scene_run_until(scene.now + MS / 2);
        flows_stats(scene.flows, &stats);
        most = stats.history_bytes > most ? stats.history_bytes : most;
    }
    scene_run();
    for (i = 0; i < 10; i++) {
        stream_check_done(&scene.streams[i]);
    }
    flows_stats(scene.flows, &stats);
    assert_true(most > max / 2);
    /* each of 20 hops has a block that is in use, and the first ones have rows
       that wait: eight steps and a block */
    assert_true(most <= max + (20 + 10 * 9) * 32 * WIDTH * sizeof(float));
    assert_in_range(stats.evictions, 1, 10);
    scene_end();
}


/*
 * The session opens late: nothing had been sent to it when the history was
 * given up.
 */
static void
a_history_that_is_given_up_is_not_begun_again(void **state)
{
    uint32_t      i, most;
    stream_t     *s;
    const size_t  block = 32 * WIDTH * sizeof(float);

    scene_begin(1, 0);
    two_by_two();
    scene.shards[1].open_ns = 10 * MS;
    scene.shards[3].is_unlisted = 1;
    s = scene_stream(100, 300);
    scene_run_until(scene.now + 20 * MS);
    most = 0;
    for (i = 0; i < 100 && s->flow != NULL; i++) {
        scene_run_until(scene.now + MS / 2);
        if (scene.flows->history_bytes > most) {
            most = scene.flows->history_bytes;
        }
    }
    assert_true(s->nids > 200);
    assert_true(most <= 3 * block);
    scene_run();
    stream_check_done(s);
    scene_end();
}


static void
the_third_shard_that_is_lost_ends_the_stream(void **state)
{
    size_t     i, kills;
    stream_t  *s;

    for (kills = 2; kills <= 3; kills++) {
        scene_begin(1, PLENTY);
        scene_shard("a", 0, 7);
        for (i = 0; i < 4; i++) {
            scene_shard(&"b\0c\0d\0e"[2 * i], 8, 15);
        }
        s = scene_stream(32, 90);
        for (i = 0; i < kills; i++) {
            scene_at(scene.now + (4 + 4 * i) * MS, fake_kill,
                     &scene.shards[1 + i]);
        }
        scene_run();
        if (kills == 2) {
            stream_check_done(s);
        } else {
            stream_check(s);
            assert_string_equal(s->reason, "shard_unavailable");
        }
        scene_end();
    }
}


static void
a_layer_that_nobody_else_covers_ends_the_stream(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    s = scene_stream(32, 60);
    scene_at(scene.now + 8 * MS, fake_kill, &scene.shards[1]);
    scene_run();
    stream_check(s);
    assert_string_equal(s->reason, "shard_unavailable");
    assert_true(s->nids > s->nprompt);
    scene_end();
}


static void
a_full_fleet_is_told_from_one_with_a_gap(void **state)
{
    size_t         i;
    stream_t      *a, *b;
    const fault_t  faults[] = { REFUSES_FULL, REFUSES_MEMORY };

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15)->sessions_max = 1;
    a = scene_stream(32, 60);
    scene_run_until(scene.now + 5 * MS);
    b = scene_stream(32, 10);
    scene_run();
    stream_check_done(a);
    assert_string_equal(b->reason, "shard_full");
    scene_end();

    /* the fleet did not know yet that the shard was full */
    for (i = 0; i < 2; i++) {
        scene_begin(1, PLENTY);
        scene_shard("a", 0, 7);
        scene_shard("b", 8, 15)->open_fault = faults[i];
        a = scene_stream(32, 60);
        scene_run();
        assert_string_equal(a->reason, "shard_full");
        assert_int_equal(scene.shards[1].exclusions, 0);
        scene_end();
    }

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    a = scene_stream(32, 60);
    scene_run();
    assert_string_equal(a->reason, "shard_unavailable");
    scene_end();
}


/*
 * A shard's refusal that it cannot serve now does not count against it
 * elsewhere.
 */
static void
a_busy_shard_is_passed_over_and_not_blamed(void **state)
{
    size_t         i;
    stream_t      *s;
    flow_stats_t   stats;
    const fault_t  faults[] = { REFUSES_FULL, REFUSES_DRAINING,
                                REFUSES_MEMORY };

    for (i = 0; i < 3; i++) {
        scene_begin(1, PLENTY);
        two_by_two();
        scene.shards[0].open_fault = faults[i];
        scene.shards[1].open_fault = faults[i];
        s = scene_stream(32, 10);
        scene_run();
        stream_check_done(s);
        flows_stats(scene.flows, &stats);
        assert_int_equal(stats.failovers, 0);
        assert_int_equal(scene.shards[0].exclusions, 0);
        scene_end();
    }
}


/* The shard's places were taken, which after 5 s says nothing any more. */
static void
a_busy_shard_is_asked_again_later(void **state)
{
    size_t     i;
    stream_t  *s;
    const struct { fault_t fault; uint64_t ms; int is_over; } cases[] = {
        { REFUSES_FULL, 4900, 0 }, { REFUSES_FULL, 5000, 1 },
        { REFUSES_MEMORY, 4900, 0 }, { REFUSES_MEMORY, 5000, 1 },
        { REFUSES_DRAINING, 4900, 0 }, { REFUSES_DRAINING, 5000, 1 }
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_begin(1, PLENTY);
        scene_shard("a", 0, 15)->open_fault = cases[i].fault;
        scene_shard("b", 0, 15)->sessions = 1;
        s = scene_stream(32, 60);
        s->pause_at = 50;
        scene_run_until(scene.now + 10 * MS);
        scene.shards[0].open_fault = GOOD;
        scene_run_until(scene.now + cases[i].ms * MS);
        assert_int_equal(scene.shards[1].sessions, 2);
        fake_kill(&scene.shards[1]);
        stream_unpause(s);
        scene_run();
        scene.shards[1].sessions = 0;

        if (cases[i].is_over) {
            stream_check_done(s);
        } else {
            stream_check(s);
            assert_string_equal(s->reason, "shard_unavailable");
        }

        scene_end();
    }
}


static void
a_lie_is_found_and_its_shard_excluded(void **state)
{
    size_t         i, shard;
    stream_t      *s;
    flow_stats_t   stats;
    const fault_t  lies[] = { LIE_NAN, LIE_INFINITE, LIE_LONG };

    for (shard = 0; shard < 2; shard++) {
        for (i = 0; i < 3; i++) {
            if (shard == 1 && lies[i] == LIE_LONG) {
                continue;       /* norms of logits are not known */
            }
            scene_begin(1, PLENTY);
            two_by_two();
            scene.shards[shard].fault = lies[i];
            scene.shards[shard].fault_at = 70;
            scene.shards[shard].faults = 1;
            s = scene_stream(64, 40);
            scene_run();
            stream_check_done(s);
            flows_stats(scene.flows, &stats);
            assert_int_equal(stats.corruptions, 1);
            assert_int_equal(scene.shards[shard].exclusions, 1);
            scene_end();
        }
    }
}


static void
an_idle_session_that_expires_is_missed_when_it_is_needed(void **state)
{
    stream_t      *s;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    s = scene_stream(32, 60);
    s->pause_at = 50;
    scene_run();
    assert_true(s->is_paused);
    fake_expire(&scene.shards[0]);
    fake_expire(&scene.shards[1]);
    scene_run();
    assert_int_equal(scene.nsessions, 0);
    assert_int_equal(scene.opens, 2);
    stream_unpause(s);
    scene_run();
    stream_check_done(s);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.failovers, 0);
    assert_int_equal(s->rewinds, 1);
    assert_int_equal(scene.opens, 4);
    scene_end();
}


/* The session would be opened and expire again and again. */
static void
a_session_that_expires_at_once_is_a_fault(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 15);
    scene.shards[0].fault = REFUSES_EXPIRED;
    scene.shards[0].faults = 1000;
    s = scene_stream(32, 10);
    scene_run();
    stream_check(s);
    assert_string_equal(s->reason, "shard_unavailable");
    scene_end();
}


static void
a_flow_may_be_closed_at_any_time(void **state)
{
    uint64_t   us;
    stream_t  *s;

    for (us = 0; us < 30000; us += 97) {
        scene_begin(us, PLENTY);
        two_by_two();
        scene.latency = 100000;
        s = scene_stream(100, 40);
        scene_at(scene.now + us * 500, fake_kill, &scene.shards[us % 2]);
        scene_run_until(scene.now + us * 1000);
        if (s->flow != NULL) {
            stream_end(s);
        }
        scene_end();
    }
}


static void
rows_that_are_not_next_end_the_flow(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    two_by_two();
    s = scene_stream(10, 10);
    scene_run_until(scene.now + MS / 2);
    flow_step(s->flow, 77, 1, 0, calloc(WIDTH, sizeof(float)));
    scene_run();
    assert_string_equal(s->reason, "failed");
    scene_end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(the_text_is_that_of_the_whole_model),
        cmocka_unit_test(chunks_of_a_prompt_overlap_over_the_shards),
        cmocka_unit_test(a_shard_that_dies_is_replaced_and_no_bit_changes),
        cmocka_unit_test(only_the_shard_that_was_lost_computes_again),
        cmocka_unit_test(a_replacement_may_have_other_inner_boundaries),
        cmocka_unit_test(a_stream_of_fp16_keeps_its_cuts),
        cmocka_unit_test(a_stretch_grows_until_somebody_covers_it),
        cmocka_unit_test(a_boundary_without_history_begins_from_the_tokens),
        cmocka_unit_test(histories_have_a_budget),
        cmocka_unit_test(a_history_that_is_given_up_is_not_begun_again),
        cmocka_unit_test(the_third_shard_that_is_lost_ends_the_stream),
        cmocka_unit_test(a_layer_that_nobody_else_covers_ends_the_stream),
        cmocka_unit_test(a_full_fleet_is_told_from_one_with_a_gap),
        cmocka_unit_test(a_busy_shard_is_passed_over_and_not_blamed),
        cmocka_unit_test(a_busy_shard_is_asked_again_later),
        cmocka_unit_test(a_lie_is_found_and_its_shard_excluded),
        cmocka_unit_test(
            an_idle_session_that_expires_is_missed_when_it_is_needed),
        cmocka_unit_test(a_session_that_expires_at_once_is_a_fault),
        cmocka_unit_test(a_flow_may_be_closed_at_any_time),
        cmocka_unit_test(rows_that_are_not_next_end_the_flow),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
