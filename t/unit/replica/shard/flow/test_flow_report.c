
/*
 * What flows report of themselves to the agent.
 */

#include "t/unit/replica/shard/flow/flow_scene_streams.h"

#define PLENTY  (1ULL << 40)


static void
a_report_says_what_was_counted(void **state)
{
    json_t    *json, *shard;
    stream_t  *s;

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("b", 8, 15);
    scene_shard("c", 8, 15)->sessions = 9;
    scene.shards[1].fault = LIE_NAN;
    scene.shards[1].fault_at = 40;
    scene.shards[1].faults = 1;
    s = scene_stream(32, 20);
    scene_run();
    stream_check_done(s);

    json = flows_report(scene.flows, 1, 5);
    assert_non_null(json);
    assert_true(json_is_true(json_object_get(json, "ready")));
    assert_int_equal(json_integer_value(json_object_get(json, "tokens")), 20);
    assert_int_equal(json_integer_value(json_object_get(json, "fallbacks")),
                     5);
    assert_int_equal(json_integer_value(json_object_get(json_object_get(
        json, "failovers"), "shard_corruption")), 1);
    assert_int_equal(json_array_size(json_object_get(json, "shards")), 3);
    shard = json_array_get(json_object_get(json, "shards"), 1);
    assert_string_equal(json_string_value(json_object_get(shard, "id")),
                        "m:8-15@b");
    assert_int_equal(json_integer_value(json_object_get(shard,
                                                        "corruptions")), 1);
    json_decref(json);
    scene_end();
}


static flow_failure_t  told;

static void
keep_failure(const flow_t *flow)
{
    told = *flow_failure(flow);
}


/*
 * A client reads which layers failed and what their shard did, but not its
 * name.
 */
static void
a_client_is_told_layers_and_what_their_shard_did(void **state)
{
    size_t     i;
    stream_t  *s;

    static const struct {
        fault_t      open_fault;
        const char  *text;
    } cases[] = {
        { REFUSES_MEMORY, "the shard of layers 8-15 is out of memory, and no "
          "other shard can compute layer 0" },
        { REFUSES_DRAINING, "the shard of layers 8-15 is draining, and no "
          "other shard can compute layer 0" },
    };

    for (i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        scene_begin(1, PLENTY);
        scene_shard("a", 0, 7);
        scene_shard("secret", 8, 15)->open_fault = cases[i].open_fault;
        scene.on_lost = keep_failure;
        scene_stream(32, 20);
        scene_run();
        assert_string_equal(told.text, cases[i].text);
        assert_int_equal(told.count, 0);
        scene_end();
    }

    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene.on_lost = keep_failure;
    scene_stream(32, 20);
    scene_run();
    assert_string_equal(told.text, "no shard can compute layer 0");
    scene_end();

    /* another shard takes over */
    scene_begin(1, PLENTY);
    scene_shard("a", 0, 7);
    scene_shard("secret", 8, 15);
    scene_shard("c", 8, 15)->sessions = 9;
    scene.shards[1].fault = LIE_NAN;
    scene.shards[1].fault_at = 40;
    scene.shards[1].faults = 1;
    s = scene_stream(32, 100);

    for (i = 0; i < 100000 && (s->flow == NULL
                               || flow_failure(s->flow)->count == 0); i++)
    {
        scene_run_until(scene.now + MS);
    }

    assert_non_null(s->flow);
    assert_string_equal(flow_failure(s->flow)->text, "the shard of layers 8-15 "
                        "computed impossible values");
    scene_run();
    stream_check_done(s);
    scene_end();
}


/* A report that is too long would be refused as a whole. */
static void
a_report_has_a_limit_whatever_names_are_like(void **state)
{
    int            i;
    char          *text;
    json_t        *json;
    flow_shard_t  *shard;
    fleet_hop_t    hop = { .first = 4000, .last = 4095 };

    scene_begin(1, PLENTY);
    scene.flows->options.model = "sixty-three-characters-are-the-most-that-a"
                                 "-model's-name-may-have-";

    for (i = 0; i < FLOW_REPORT_SHARDS + 10; i++) {
        snprintf(hop.id, sizeof(hop.id), "%063d", i);
        shard = flow_shards_enter(&scene.flows->shards, &hop);
        histogram_record_recent(&shard->latency, UINT64_MAX);
        shard->latency.sum = 1ULL << 60;
        shard->steps = shard->failovers = shard->corruptions = 1ULL << 60;
        flow_shard_leave(shard);
    }

    json = flows_report(scene.flows, 1, 0);
    assert_int_equal(json_array_size(json_object_get(json, "shards")),
                     FLOW_REPORT_SHARDS);
    text = json_dumps(json, JSON_COMPACT);
    assert_in_range(strlen(text), 8192, 32768 - 1);
    free(text);
    json_decref(json);
    scene_end();
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_report_says_what_was_counted),
        cmocka_unit_test(a_client_is_told_layers_and_what_their_shard_did),
        cmocka_unit_test(a_report_has_a_limit_whatever_names_are_like),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
