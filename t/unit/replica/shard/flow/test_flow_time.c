
/*
 * Deadlines, turns and places: when a flow acts, and when not yet.
 */

#include "t/unit/replica/shard/flow/flow_scene_streams.h"

#define PLENTY  (1ULL << 40)


/* Before Started a step may wait behind other steps; after it the step has to
   end. */
static void
a_stall_is_found_by_its_deadline(void **state)
{
    size_t         i;
    uint64_t       at;
    stream_t      *s;
    flow_stats_t   stats;
    const struct { fault_t fault; uint64_t ms; } stalls[] = {
        { SILENT, 30000 }, { STARTED_ONLY, 1000 }
    };

    for (i = 0; i < 2; i++) {
        scene_begin(1, PLENTY);
        two_by_two();
        scene.shards[1].fault = stalls[i].fault;
        scene.shards[1].fault_at = 70;
        scene.shards[1].faults = 1;
        s = scene_stream(64, 40);
        at = scene.now;
        scene_run();
        stream_check_done(s);
        assert_in_range((s->done_ns - at) / MS, stalls[i].ms,
                        stalls[i].ms + 200);
        flows_stats(scene.flows, &stats);
        assert_int_equal(stats.stalls, 1);
        assert_int_equal(stats.failovers, 1);
        scene_end();
    }
}


/* A stream over one shard, which answers Started at position 70, and no more.
   */
static stream_t *
one_that_stalls(void)
{
    scene_begin(1, PLENTY);
    scene_shard("a", 0, 15);
    scene.shards[0].fault = STARTED_ONLY;
    scene.shards[0].fault_at = 70;
    scene.shards[0].faults = 1;

    return scene_stream(64, 40);
}


/* The stream has no other shard, so it waits as long as for a Started. */
static void
a_stall_without_a_replacement_is_called_so(void **state)
{
    uint64_t   at;
    stream_t  *s;

    s = one_that_stalls();
    at = scene.now;
    scene_run();
    stream_check(s);
    assert_string_equal(s->reason, "pipeline_stalled");
    assert_in_range((s->done_ns - at) / MS, 30000, 30200);
    assert_int_equal(scene.shards[0].exclusions, 1);
    scene_end();
}


/* The fallback takes over at once, and does not wait. */
static void
a_stall_with_a_fallback_ends_at_its_deadline(void **state)
{
    uint64_t   at;
    stream_t  *s;

    s = one_that_stalls();
    scene.flows->options.has_fallback = 1;
    at = scene.now;
    scene_run();
    stream_check(s);
    assert_string_equal(s->reason, "pipeline_stalled");
    assert_in_range((s->done_ns - at) / MS, 1000, 1200);
    scene_end();
}


static void
shard_join(void *data)
{
    scene_shard("c", 8, 15);
}


/* The late result loses nothing, and the shard is not blamed. */
static void
a_late_result_is_taken_where_nobody_else_computes_it(void **state)
{
    stream_t      *s;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    s = scene_stream(64, 40);
    scene_run_until(scene.now + 5 * MS);
    scene.shards[1].step_ns = 29000 * MS;
    scene_run_until(scene.now + 500 * MS);
    scene.shards[1].step_ns = MS / 10;
    scene_run();
    stream_check_done(s);
    assert_true(s->done_ns > 29000 * MS);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.stalls, 0);
    assert_int_equal(stats.failovers, 0);
    assert_int_equal(scene.shards[1].exclusions, 0);
    assert_int_equal(scene.opens, 2);
    scene_end();
}


/* The result is late as before, and another shard joins at 5 s. */
static void
a_late_result_is_not_waited_for_once_there_is_another_way(void **state)
{
    uint64_t       at;
    stream_t      *s;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    s = scene_stream(64, 40);
    at = scene.now;
    scene_run_until(at + 5 * MS);
    scene.shards[1].step_ns = 29000 * MS;
    scene_at(at + 5000 * MS, shard_join, NULL);
    scene_run();
    stream_check_done(s);
    assert_in_range((s->done_ns - at) / MS, 5000, 5200);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.stalls, 1);
    assert_int_equal(scene.shards[1].exclusions, 1);
    scene_end();
}


/* Two shards of a flow fail at once.  While the flow waits for its turn to
   replace the first, the second is late: asking for the second's replacement
   must not change the plan for the first. */
static void
a_plan_that_waits_is_not_changed_by_a_late_result(void **state)
{
    flow_shard_t  *held;
    stream_t      *s;
    fleet_hop_t    hop = { .id = "c", .first = 0, .last = 7 };

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    s = scene_stream(64, 40);
    scene_run_until(scene.now + 5 * MS);
    scene.shards[1].step_ns = 4000 * MS;
    scene_run_until(scene.now + 10 * MS);
    scene_shard("c", 0, 7);
    held = flow_shards_enter(&scene.flows->shards, &hop);
    held->turn = scene.flows;
    fake_kill(&scene.shards[0]);
    scene_run_until(scene.now + 2000 * MS);
    assert_true(s->flow->is_waiting);
    assert_int_equal(s->flow->from, 0);
    assert_int_equal(s->flow->to, 1);
    assert_string_equal(s->flow->path.hops[0].id, "c");

    held->turn = NULL;
    flow_shard_leave(held);
    scene.flows->is_turn_due = 1;
    scene.shards[1].step_ns = MS / 10;
    scene_run();
    stream_check_done(s);
    assert_int_equal(scene.shards[1].exclusions, 0);
    scene_end();
}


/* A shard that is 19 times as slow as before is slow, and not stalled. */
static void
a_slow_shard_is_not_a_stalled_one(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[1].step_ns = 100 * MS;
    s = scene_stream(32, 30);
    scene_run_until(scene.now + 1500 * MS);
    scene.shards[1].step_ns = 1900 * MS;
    scene_run_until(scene.now + 1900 * MS);
    scene.shards[1].step_ns = 100 * MS;
    scene_run();
    stream_check_done(s);
    assert_int_equal(scene.shards[1].exclusions, 0);
    scene_end();
}


/* The process itself stood still: it first reads what came meanwhile. */
static void
a_deadline_is_looked_at_twice(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    two_by_two();
    s = scene_stream(32, 60);
    scene_run_until(scene.now + 4 * MS);
    scene.now += 60000 * MS;
    flows_tick(scene.flows);
    scene_run();
    stream_check_done(s);
    assert_int_equal(scene.shards[0].exclusions, 0);
    assert_int_equal(scene.shards[1].exclusions, 0);
    scene_end();
}


/* The flow's own look is late: a step that it waited for is not stalled. */
static void
a_look_that_comes_late_itself_proves_nothing(void **state)
{
    uint64_t   at;
    stream_t  *s;

    scene_begin(1, PLENTY);
    two_by_two();
    s = scene_stream(64, 40);
    at = scene.now;
    scene_run_until(at + 5 * MS);
    scene.shards[1].free_ns = scene.now + 5000 * MS;
    scene_run_until(at + 3000 * MS);
    scene.now += 60000 * MS;
    flows_tick(scene.flows);
    scene_run();
    stream_check_done(s);
    assert_int_equal(scene.shards[1].exclusions, 0);
    scene_end();
}


/* 64 streams lose one shard, and get one replacement, which has streams of its
   own. */
static void
a_replacement_is_not_buried_by_the_streams_of_the_dead(void **state)
{
    size_t         i;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[3].sessions = 100;         /* it is not chosen at first */
    for (i = 0; i < 64; i++) {
        scene_stream(200 + i, 60);
    }
    scene_run_until(scene.now + 400 * MS);
    scene.shards[3].sessions = 0;
    fake_kill(&scene.shards[1]);
    scene_run();
    for (i = 0; i < 64; i++) {
        stream_check_done(&scene.streams[i]);
    }
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.failovers, 64);
    assert_int_equal(scene.shards[3].exclusions, 0);
    assert_int_equal(scene.shards[0].exclusions, 0);
    assert_int_equal(scene.shards[3].replays_most, 1);
    scene_end();
}


/* 64 replays of 3 s each: a long wait for one's turn is no fault. */
static void
streams_wait_for_as_long_as_others_replay_in_turn(void **state)
{
    size_t  i;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[3].sessions = 100;
    for (i = 0; i < 64; i++) {
        scene_stream(200, 60);
    }
    scene_run_until(scene.now + 400 * MS);
    scene.shards[3].sessions = 0;
    scene.shards[3].row_ns = 15 * MS;
    fake_kill(&scene.shards[1]);
    scene_run_until(scene.now + 150000 * MS);
    assert_non_null(scene.flows->queue);
    scene_run();
    for (i = 0; i < 64; i++) {
        stream_check_done(&scene.streams[i]);
    }
    assert_int_equal(scene.shards[3].replays_most, 1);
    scene_end();
}


/* 640 rows of a second each: a step has a time limit, a replay has none. */
static void
a_stream_waits_for_as_long_as_one_replay_goes_on(void **state)
{
    uint64_t  at;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[1].step_ns = 10 * MS;
    scene.shards[3].sessions = 100;
    scene_stream(640, 60);
    scene_stream(640, 60);
    scene_run_until(scene.now + 800 * MS);
    at = scene.now;
    scene.shards[3].sessions = 0;
    scene.shards[3].rows_max = 16;
    scene.shards[3].row_ns = 1000 * MS;
    fake_kill(&scene.shards[1]);
    scene_run_until(at + 500000 * MS);
    assert_non_null(scene.flows->queue);
    assert_int_equal(scene.shards[3].sessions, 1);
    scene.shards[3].row_ns = MS / 100;
    scene_run();
    stream_check_done(&scene.streams[0]);
    stream_check_done(&scene.streams[1]);
    scene_end();
}


/* Loading may take longer than a session may wait for the slice. */
static void
streams_wait_for_a_shard_that_loads(void **state)
{
    size_t         i;
    uint64_t       at;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[3].is_unloaded = 1;
    scene.shards[3].sessions = 100;
    for (i = 0; i < 12; i++) {
        scene_stream(64, 200);
    }
    scene_run_until(scene.now + 20 * MS);
    at = scene.now;
    scene.shards[3].sessions = 0;
    scene.shards[3].loaded_ns = at + 150000 * MS;
    fake_kill(&scene.shards[1]);
    fake_unlist(&scene.shards[1]);
    scene_run_until(at + 140000 * MS);
    scene_stream(64, 10);
    scene_run();
    for (i = 0; i < 13; i++) {
        stream_check_done(&scene.streams[i]);
        assert_in_range((scene.streams[i].done_ns - at) / MS, 150000, 152000);
    }
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.failovers, 12);
    scene_end();
}


/* A replay over two shards waits for one of them: the other one is promised to
   it, and streams that need only that one have to wait. */
static void
a_replay_over_several_shards_is_not_overtaken(void **state)
{
    flow_shard_t  *held;
    stream_t      *one, *two;
    fleet_hop_t    hop = { .id = "y", .first = 12, .last = 15 };

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 11);
    scene_shard("c", 12, 15);
    one = scene_stream(64, 200);
    scene_run_until(scene.now + 5 * MS);
    scene_shard("d", 8, 15);
    two = scene_stream(64, 200);
    scene_run_until(scene.now + 5 * MS);
    scene_shard("x", 8, 11);
    scene_shard("y", 12, 15);
    scene.shards[2].sessions += 9;

    held = flow_shards_enter(&scene.flows->shards, &hop);
    held->turn = scene.flows;
    fake_kill(&scene.shards[3]);
    scene_run_until(scene.now + MS);
    fake_kill(&scene.shards[1]);
    scene_run_until(scene.now + 100 * MS);
    assert_true(two->flow->is_waiting && one->flow->is_waiting);
    assert_int_equal(scene.shards[4].sessions, 0);

    held->turn = NULL;
    flow_shard_leave(held);
    scene.flows->is_turn_due = 1;
    flows_tick(scene.flows);
    assert_true(!two->flow->is_waiting && one->flow->is_waiting);
    scene_run();
    stream_check_done(one);
    stream_check_done(two);
    assert_int_equal(scene.shards[4].replays_most, 1);
    scene_end();
}


/* Four are built at a time; those that hang delay others by a second at most.
   */
static void
pipelines_are_built_four_at_a_time(void **state)
{
    size_t         i;
    uint64_t       begun;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.latency = 10 * MS;
    for (i = 0; i < 12; i++) {
        scene_stream(10, 2);
    }
    scene_run_until(scene.now + 15 * MS);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.building, 4);
    assert_int_equal(stats.waiting, 8);
    assert_int_equal(scene.nsessions, 8);
    scene_run();
    scene_end();

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 15)->open_fault = SILENT_OPEN;
    for (i = 0; i < 4; i++) {
        scene_stream(10, 2);
    }
    scene_run_until(scene.now + MS);
    fake_unlist(&scene.shards[0]);
    scene_shard("b", 0, 15);
    begun = scene.now;
    scene_stream(10, 2);
    scene_run();
    stream_check_done(&scene.streams[4]);
    assert_true(scene.streams[4].done_ns - begun < 1100 * MS);
    stream_check_done(&scene.streams[0]);
    scene_end();
}


/* The rows come from a shard that loads for longer than a session may be idle.
   */
static void
a_session_that_got_no_rows_expires_by_rights(void **state)
{
    stream_t      *s;
    flow_stats_t   stats;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    scene.shards[0].is_unloaded = 1;
    scene.shards[0].open_ns = (SHARD_IDLE_MS + 20000) * MS;
    s = scene_stream(32, 10);
    scene_at(scene.now + SHARD_IDLE_MS * MS, fake_expire, &scene.shards[1]);
    scene_run();
    stream_check_done(s);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.failovers, 0);
    assert_int_equal(scene.opens, 3);
    scene_end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_stall_is_found_by_its_deadline),
        cmocka_unit_test(a_stall_without_a_replacement_is_called_so),
        cmocka_unit_test(a_stall_with_a_fallback_ends_at_its_deadline),
        cmocka_unit_test(a_late_result_is_taken_where_nobody_else_computes_it),
        cmocka_unit_test(
            a_late_result_is_not_waited_for_once_there_is_another_way),
        cmocka_unit_test(a_plan_that_waits_is_not_changed_by_a_late_result),
        cmocka_unit_test(a_slow_shard_is_not_a_stalled_one),
        cmocka_unit_test(a_deadline_is_looked_at_twice),
        cmocka_unit_test(a_look_that_comes_late_itself_proves_nothing),
        cmocka_unit_test(
            a_replacement_is_not_buried_by_the_streams_of_the_dead),
        cmocka_unit_test(streams_wait_for_as_long_as_others_replay_in_turn),
        cmocka_unit_test(a_stream_waits_for_as_long_as_one_replay_goes_on),
        cmocka_unit_test(streams_wait_for_a_shard_that_loads),
        cmocka_unit_test(a_replay_over_several_shards_is_not_overtaken),
        cmocka_unit_test(pipelines_are_built_four_at_a_time),
        cmocka_unit_test(a_session_that_got_no_rows_expires_by_rights),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
