
/*
 * Shards that were late, and shards that gossip doubts: which are left, and
 * which are asked.
 */

#include "t/unit/replica/shard/flow/flow_scene_streams.h"

#define PLENTY  (1ULL << 40)


static void
shard_doubt(void *data)
{
    ((fake_t *) data)->is_doubted = 1;
}


/* Shards two by two; "b" is silent at a position, and gossip doubts it after 3
   s. */
static stream_t *
one_that_is_silent_at(uint32_t position)
{
    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[1].fault = SILENT;
    scene.shards[1].fault_at = position;
    scene.shards[1].faults = 1;
    scene_at(scene.now + 3000 * MS, shard_doubt, &scene.shards[1]);

    return scene_stream(64, 40);
}


/* Silence before Started moves a stream only if gossip doubts the shard, too.
   */
static void
silence_and_gossip_move_a_stream_that_had_rows(void **state)
{
    uint64_t       at;
    stream_t      *s;
    flow_stats_t   stats;

    s = one_that_is_silent_at(70);
    at = scene.now;
    scene_run();
    stream_check_done(s);
    assert_in_range((s->done_ns - at) / MS, 3000, 3200);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.stalls, 1);
    assert_int_equal(scene.shards[1].exclusions, 1);
    scene_end();
}


/* A shard's first rows may wait for memory pages, and for replays. */
static void
gossip_moves_no_stream_before_its_first_rows(void **state)
{
    uint64_t   at;
    stream_t  *s;

    s = one_that_is_silent_at(0);
    at = scene.now;
    scene_run();
    stream_check_done(s);
    assert_in_range((s->done_ns - at) / MS, 30000, 30200);
    scene_end();
}


/* A shard answers an Open at once, whatever it replays; and one that has to
   load first reports to its agent meanwhile. */
static void
silence_and_gossip_move_a_stream_whose_session_is_not_opened(void **state)
{
    int        is_unloaded;
    uint64_t   at;
    stream_t  *s;

    for (is_unloaded = 0; is_unloaded < 2; is_unloaded++) {
        scene_begin(1, PLENTY);
        two_by_two();
        scene_stream(64, 10);
        scene_run();
        scene.shards[1].open_fault = SILENT_OPEN;
        scene.shards[1].is_unloaded = is_unloaded;
        scene_at(scene.now + 3000 * MS, shard_doubt, &scene.shards[1]);
        s = scene_stream(64, 10);
        at = scene.now;
        scene_run();
        stream_check_done(s);
        assert_in_range((s->done_ns - at) / MS, 3000, 3200);
        scene_end();
    }
}


/* The suspicion may be false. */
static void
a_doubted_shard_that_computes_keeps_its_streams(void **state)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    two_by_two();
    scene.shards[1].step_ns = 900 * MS;
    shard_doubt(&scene.shards[1]);
    scene.shards[3].is_doubted = 1;
    s = scene_stream(64, 20);
    scene_run_until(scene.now + 2000 * MS);
    scene.shards[3].is_doubted = 0;
    scene_run();
    stream_check_done(s);
    assert_int_equal(scene.shards[1].exclusions, 0);
    scene_end();
}


/* A doubted shard may still answer, if no other is sure. */
static void
a_doubted_shard_is_waited_for_where_nobody_else_computes(void **state)
{
    uint64_t   at;
    stream_t  *s;

    s = one_that_is_silent_at(70);
    scene.shards[3].is_doubted = 1;
    at = scene.now;
    scene_run();
    stream_check_done(s);
    assert_in_range((s->done_ns - at) / MS, 30000, 30200);
    scene_end();
}


/* A new stream would ask the failed shard in the end, whether "b" is STALLED
   or SUSPECT: "b" is no better for streams that wait for it. */
static void
a_shard_that_failed_is_asked_rather_than_a_doubted_one_waited_for(
    void **state)
{
    int        is_stalled;
    uint64_t   at;
    stream_t  *s;

    for (is_stalled = 0; is_stalled < 2; is_stalled++) {
        s = one_that_is_silent_at(70);
        scene.shards[3].excluded_ms = 60000;
        scene_exclude(NULL, scene.shards[3].key, SHARD_FAILED);
        at = scene.now;

        if (is_stalled) {
            scene_at(at + 3000 * MS, fake_unlist, &scene.shards[1]);
        }

        scene_run();
        stream_check_done(s);
        assert_in_range((s->done_ns - at) / MS, 3000, 3200);
        assert_int_equal(scene.opens, 3);
        scene_end();
    }
}


/* A stream that left "b", which was late once, and continues at "d". */
static stream_t *
one_that_left_a_late_shard(void)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    two_by_two();
    s = scene_stream(64, 400);
    scene_run_until(scene.now + 5 * MS);
    scene.shards[3].step_ns = 10 * MS;
    scene.shards[1].step_ns = 3000 * MS;
    scene_run_until(scene.now + 1500 * MS);
    scene.shards[1].step_ns = MS / 10;
    assert_int_equal(scene.shards[1].exclusions, 1);
    assert_string_equal(s->flow->hops[1]->at.id, "d");

    return s;
}


/* New streams would ask it, too, before its exclusion ends. */
static void
a_shard_that_was_late_is_asked_where_nobody_else_computes(void **state)
{
    uint64_t   at;
    stream_t  *s, *other;

    s = one_that_left_a_late_shard();
    fake_kill(&scene.shards[3]);
    at = scene.now;
    other = scene_stream(64, 10);
    scene_run();
    stream_check_done(s);
    stream_check_done(other);
    assert_in_range((s->done_ns - at) / MS, 0, 3000);
    assert_in_range((other->done_ns - at) / MS, 0, 3000);
    scene_end();
}


/* The fleet reports of each layer that a shard has it with other ids. */
static void
a_shard_that_was_late_is_asked_in_a_fleet_of_several_weights(void **state)
{
    stream_t  *s;

    s = one_that_left_a_late_shard();
    scene.is_mixed = 1;
    fake_kill(&scene.shards[3]);
    scene_run();
    stream_check_done(s);
    scene_end();
}


/* "b" fails the first of two streams, and the shard that took over both dies.
   Returns the second stream. */
static stream_t *
one_whose_heir_dies(int has_fallback)
{
    stream_t  *s;

    scene_begin(1, PLENTY);
    scene.flows->options.has_fallback = has_fallback;
    two_by_two();
    scene.shards[1].fault = REFUSES_FAILED;
    scene.shards[1].fault_at = 70;
    scene.shards[1].faults = 1;
    scene_stream(64, 400);
    scene_run_until(scene.now + 10 * MS);
    assert_int_equal(scene.shards[1].exclusions, 1);
    s = scene_stream(64, 400);
    scene_run_until(scene.now + 10 * MS);
    assert_string_equal(s->flow->hops[1]->at.id, "d");
    fake_kill(&scene.shards[3]);
    scene_run();
    assert_string_equal(scene.streams[0].reason, "shard_unavailable");

    return s;
}


/* For a stream without another shard, 15 s is too late to ask one again. */
static void
a_shard_that_failed_others_is_asked_where_nobody_else_computes(void **state)
{
    stream_check_done(one_whose_heir_dies(0));
    scene_end();

    assert_string_equal(one_whose_heir_dies(1)->reason, "shard_unavailable");
    scene_end();
}


/* "d", which took over, stands still from its next step on. */
static void
the_heir_stands_still(const stream_t *s)
{
    scene.shards[3].fault = SILENT;
    scene.shards[3].fault_at = s->flow->hops[1]->next + 1;
    scene.shards[3].faults = 1;
    shard_doubt(&scene.shards[3]);
}


/* Any shard of a busy host is late once: that does not use up a failover. */
static void
a_stream_that_left_late_shards_leaves_one_that_stands_still(void **state)
{
    uint64_t   at;
    stream_t  *s;

    s = one_that_left_a_late_shard();
    scene.shards[0].step_ns = 3000 * MS;
    scene_run_until(scene.now + 1500 * MS);
    scene.shards[0].step_ns = MS / 10;
    assert_int_equal(scene.shards[0].exclusions, 1);
    assert_string_equal(s->flow->hops[0]->at.id, "c");
    the_heir_stands_still(s);
    at = scene.now;
    scene_run();
    stream_check_done(s);
    assert_in_range((s->done_ns - at) / MS, 1000, 2000);
    scene_end();
}


static void
a_shard_that_was_late_is_asked_rather_than_a_doubted_one_waited_for(
    void **state)
{
    uint64_t   at;
    stream_t  *s;

    s = one_that_left_a_late_shard();
    the_heir_stands_still(s);
    at = scene.now;
    scene_run();
    stream_check_done(s);
    assert_in_range((s->done_ns - at) / MS, 1000, 2000);
    scene_end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(silence_and_gossip_move_a_stream_that_had_rows),
        cmocka_unit_test(gossip_moves_no_stream_before_its_first_rows),
        cmocka_unit_test(
            silence_and_gossip_move_a_stream_whose_session_is_not_opened),
        cmocka_unit_test(a_doubted_shard_that_computes_keeps_its_streams),
        cmocka_unit_test(
            a_doubted_shard_is_waited_for_where_nobody_else_computes),
        cmocka_unit_test(
            a_shard_that_failed_is_asked_rather_than_a_doubted_one_waited_for
        ),
        cmocka_unit_test(
            a_shard_that_was_late_is_asked_where_nobody_else_computes),
        cmocka_unit_test(
            a_shard_that_was_late_is_asked_in_a_fleet_of_several_weights),
        cmocka_unit_test(
            a_shard_that_failed_others_is_asked_where_nobody_else_computes),
        cmocka_unit_test(
            a_stream_that_left_late_shards_leaves_one_that_stands_still),
        cmocka_unit_test(
            a_shard_that_was_late_is_asked_rather_than_a_doubted_one_waited_for
        ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
