
/*
 * A share of sessions is computed at a second shard, too, and compared.
 */

#include "t/unit/replica/shard/flow/flow_scene_streams.h"

#define PLENTY  (1ULL << 40)
#define ALWAYS  1000000


static fake_t *
shard(const char *id, uint32_t first, fault_t fault)
{
    fake_t  *made;

    made = scene_shard(id, first, first + 7);
    made->fault = fault;
    made->fault_at = 40;
    made->faults = ALWAYS;

    return made;
}


static void
begin(uint32_t ppm)
{
    scene_begin(1, PLENTY);
    scene.flows->options.audit_ppm = ppm;
}


/* Runs streams; audits never have more than their share of rows. */
static void
run(int streams)
{
    int        i;
    stream_t  *s;

    for (i = 0; i < streams; i++) {
        s = scene_stream(32, 60);

        while (!s->is_done && s->reason == NULL) {
            scene_run_until(scene.now + MS);
            assert_true(scene.flows->audit_stats.rows * 1000000
                        <= scene.flows->rows
                           * scene.flows->options.audit_ppm);
        }

        stream_check_done(s);
    }

    scene_run();
    assert_null(scene.flows->audits);
    assert_int_equal(scene.nsessions, 0);
    assert_int_equal(scene.flows->history_bytes, 0);
}


static void
a_healthy_fleet_has_no_difference(void **state)
{
    uint64_t  spent;

    begin(250000);
    shard("a", 0, GOOD);
    shard("b", 0, GOOD);
    shard("c", 8, GOOD);
    shard("d", 8, GOOD);
    run(20);
    assert_int_equal(scene.flows->audit_stats.differed, 0);
    assert_int_equal(scene.flows->audit_stats.skipped, 0);
    assert_in_range(scene.flows->audit_stats.rows, 500, 1000);
    assert_string_equal(scene.flows->audit_alert, "");

    /* the share that streams did not need is given back */
    spent = scene.flows->audit_spent;
    assert_int_equal(spent, scene.flows->audit_stats.rows);
    scene_end();
}


static void
nothing_is_computed_twice_unless_it_is_asked_for(void **state)
{
    begin(0);
    shard("a", 0, GOOD);
    shard("b", 0, GOOD);
    shard("c", 8, GOOD);
    run(5);
    assert_int_equal(scene.opens, 10);
    scene_end();
}


/* The liar is the shard that served the stream, or the one that audited it. */
static void
of_three_the_one_that_differs_from_two_is_named(void **state)
{
    int  liar;

    for (liar = 0; liar < 2; liar++) {
        begin(500000);
        shard("a", 0, liar == 0 ? LIE_BIT : GOOD);
        shard("b", 0, liar == 1 ? LIE_BIT : GOOD);
        shard("c", 0, GOOD);
        shard("d", 8, GOOD);
        run(8);
        assert_true(scene.flows->audit_stats.differed > 0);
        assert_string_equal(scene.flows->audit_alert, liar == 0
            ? "layers 0-7: shard \"a\" differs from \"b\" and \"c\""
            : "layers 0-7: shard \"b\" differs from \"a\" and \"c\"");
        assert_int_equal(flow_shards_find(&scene.flows->shards, liar == 0
                                          ? "a" : "b")->differed,
                         scene.flows->audit_stats.differed);
        assert_int_equal(flow_shards_find(&scene.flows->shards, "c")
                         ->differed, 0);
        scene_end();
    }
}


static void
of_two_it_cannot_be_told_which_is_wrong(void **state)
{
    begin(500000);
    shard("a", 0, LIE_BIT);
    shard("b", 0, GOOD);
    shard("d", 8, GOOD);
    run(8);
    assert_true(scene.flows->audit_stats.differed > 0);
    assert_string_equal(scene.flows->audit_alert, "layers 0-7: shards \"a\" "
                        "and \"b\" differ, and no third one can tell which is "
                        "wrong");
    assert_int_equal(flow_shards_find(&scene.flows->shards, "a")->differed,
                     0);
    scene_end();
}


/* A last shard is audited by its logits, since it gives no rows. */
static void
logits_are_compared_too(void **state)
{
    begin(1000000);
    shard("a", 0, GOOD);
    shard("d", 8, LIE_BIT);
    shard("e", 8, GOOD);
    shard("f", 8, GOOD);
    run(6);
    assert_string_equal(scene.flows->audit_alert, "layers 8-15: shard \"d\" "
                        "differs from \"e\" and \"f\"");
    scene_end();
}


/* Whatever happens to the second shard, the stream does not notice it. */
static void
an_audit_that_ends_early_leaves_nothing(void **state)
{
    size_t  i;

    static const fault_t  faults[] = {
        BREAKS, REFUSES_FAILED, SILENT, STARTED_ONLY
    };
    static const fault_t  open_faults[] = {
        REFUSES_FULL, REFUSES_MEMORY, SILENT_OPEN
    };

    for (i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        begin(500000);
        shard("a", 0, GOOD);
        shard("b", 0, faults[i])->sessions = 9;
        shard("d", 8, GOOD);
        run(8);
        assert_true(scene.flows->audit_stats.skipped > 0);
        assert_int_equal(scene.flows->audit_stats.differed, 0);
        scene.shards[1].sessions -= 9;
        scene_end();
    }

    for (i = 0; i < sizeof(open_faults) / sizeof(open_faults[0]); i++) {
        begin(500000);
        shard("a", 0, GOOD);
        shard("b", 0, GOOD)->sessions = 9;
        scene.shards[1].open_fault = open_faults[i];
        shard("d", 8, GOOD);
        run(8);
        assert_true(scene.flows->audit_stats.skipped > 0);
        assert_int_equal(scene.flows->audit_stats.rows, 0);
        scene_end();
    }
}


/* One of the two shards dies during the audit, the first or the second. */
static void
a_shard_that_dies_under_an_audit_is_no_difference(void **state)
{
    int  i;

    for (i = 0; i < 40; i++) {
        begin(1000000);
        shard("a", 0, GOOD);
        shard("b", 0, GOOD);
        shard("d", 8, GOOD);
        shard("e", 8, GOOD);
        run(2);
        scene_at(scene.now + (uint64_t) i * MS, fake_kill,
                 &scene.shards[i % 2]);
        run(2);
        assert_int_equal(scene.flows->audit_stats.differed, 0);
        scene_end();
    }
}


/* Audits drop their rows before the histories of streams are given up. */
static void
an_audit_keeps_no_more_than_there_is_room_for(void **state)
{
    flow_stats_t  stats;

    scene_begin(1, 5 * SHARD_ROWS_MAX * WIDTH * sizeof(float));
    scene.flows->options.audit_ppm = 1000000;
    shard("a", 0, GOOD);
    shard("b", 0, GOOD);
    shard("d", 8, GOOD);
    run(4);
    flows_stats(scene.flows, &stats);
    assert_int_equal(stats.evictions, 0);
    assert_true(scene.flows->audit_stats.skipped > 0);
    scene_end();
}


static void
audits_are_reported(void **state)
{
    json_t  *report;

    begin(0);
    report = flows_report(scene.flows, 1, 0);
    assert_null(json_object_get(report, "audited_rows"));
    json_decref(report);
    scene_end();

    begin(500000);
    shard("a", 0, LIE_BIT);
    shard("b", 0, GOOD);
    shard("d", 8, GOOD);
    run(8);
    report = flows_report(scene.flows, 1, 0);
    assert_int_equal(json_integer_value(json_object_get(report,
                                                        "audited_rows")),
                     scene.flows->audit_stats.rows);
    assert_true(json_integer_value(json_object_get(report, "audits_differed"))
                > 0);
    assert_non_null(json_object_get(report, "audit_alert"));
    json_decref(report);
    scene_end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_healthy_fleet_has_no_difference),
        cmocka_unit_test(nothing_is_computed_twice_unless_it_is_asked_for),
        cmocka_unit_test(of_three_the_one_that_differs_from_two_is_named),
        cmocka_unit_test(of_two_it_cannot_be_told_which_is_wrong),
        cmocka_unit_test(logits_are_compared_too),
        cmocka_unit_test(an_audit_that_ends_early_leaves_nothing),
        cmocka_unit_test(a_shard_that_dies_under_an_audit_is_no_difference),
        cmocka_unit_test(an_audit_keeps_no_more_than_there_is_room_for),
        cmocka_unit_test(audits_are_reported)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
