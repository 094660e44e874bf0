
/*
 * Shards that were late or failed, and those that gossip doubts: which is
 * asked if no other is left.
 */

#include "t/unit/replica/shard/fleet/test_fleet_support.h"


static int
setup(void **state)
{
    *state = malloc(sizeof(scene_t));
    scene_init(*state);

    return 0;
}


static int
teardown(void **state)
{
    scene_done(*state);
    free(*state);

    return 0;
}


static void
a_late_shard_is_asked_if_nobody_else_has_its_layers(void **state)
{
    scene_t        *s = *state;
    fleet_query_t   sure = { .to_layer = SCENE_LAYERS - 1,
                             .avoid = FLEET_WITH_LATE };

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    scene_add(s, "s3", 4, 7);
    scene_open(s);
    fleet_exclude(s->fleet, key_of(s, "s2"), SHARD_LATE);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");

    s->members[2].service = LLMGW_SERVICE_STALLED;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");
    assert_int_equal(fleet_find(s->fleet, &sure, &s->found), FLEET_GAP);
    assert_non_null(strstr(s->found.why, "\"s2\" is excluded (late)"));
    assert_true(fleet_is_doubted(s->fleet, key_of(s, "s3")));
    assert_false(fleet_is_doubted(s->fleet, key_of(s, "s2")));

    /* A late shard comes before one whose agent is SUSPECT; one that failed
       comes after it. */

    s->members[2].service = LLMGW_SERVICE_READY;
    s->members[2].liveness = LLMGW_LIVENESS_SUSPECT;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");
    assert_true(fleet_is_ready(s->fleet));

    fleet_exclude(s->fleet, key_of(s, "s2"), SHARD_FAILED);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");
}


/* Requests that a SUSPECT shard cannot help may leave those out: the rest of
   the order stays. */
static void
a_shard_that_failed_is_asked_without_those_that_are_suspect(void **state)
{
    scene_t        *s = *state;
    fleet_query_t   other = { .to_layer = SCENE_LAYERS - 1,
                              .avoid = FLEET_WITH_SUSPECT };

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    scene_add(s, "s3", 4, 7)->liveness = LLMGW_LIVENESS_SUSPECT;
    scene_add(s, "s4", 4, 7);
    scene_open(s);
    fleet_exclude(s->fleet, key_of(s, "s2"), SHARD_FAILED);
    fleet_exclude(s->fleet, key_of(s, "s4"), SHARD_LATE);
    assert_int_equal(fleet_find(s->fleet, &other, &s->found), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s4");

    s->members[3].liveness = LLMGW_LIVENESS_DEAD;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");
    assert_int_equal(fleet_find(s->fleet, &other, &s->found), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");
}


/* A shard that failed may be up again, for all that is known. */
static void
a_shard_that_failed_is_asked_if_nobody_else_is_left(void **state)
{
    scene_t        *s = *state;
    fleet_query_t   sure = { .to_layer = SCENE_LAYERS - 1,
                             .avoid = FLEET_WITH_FAILED };

    scene_add(s, "s1", 0, 3);
    scene_add(s, "s2", 4, 7);
    scene_add(s, "s3", 4, 7)->liveness = LLMGW_LIVENESS_SUSPECT;
    scene_open(s);
    fleet_exclude(s->fleet, key_of(s, "s2"), SHARD_FAILED);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s3");

    s->members[2].liveness = LLMGW_LIVENESS_DEAD;
    scene_publish(s);
    assert_int_equal(scene_find(s, 0), FLEET_FOUND);
    assert_string_equal(s->found.hops[1].id, "s2");
    assert_int_equal(fleet_find(s->fleet, &sure, &s->found), FLEET_GAP);
    assert_non_null(strstr(s->found.why, "\"s2\" is excluded (failed)"));

    /* The replica stays ready; but not with a shard that lied, whatever it did
       before that. */

    ev_run(s->loop, EVRUN_ONCE);
    assert_true(fleet_is_ready(s->fleet));
    fleet_exclude(s->fleet, key_of(s, "s2"), SHARD_CORRUPTION);
    assert_int_equal(scene_find(s, 0), FLEET_GAP);
    ev_run(s->loop, EVRUN_ONCE);
    assert_false(fleet_is_ready(s->fleet));
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test_setup_teardown(
            a_late_shard_is_asked_if_nobody_else_has_its_layers, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_shard_that_failed_is_asked_if_nobody_else_is_left, setup,
            teardown),
        cmocka_unit_test_setup_teardown(
            a_shard_that_failed_is_asked_without_those_that_are_suspect, setup,
            teardown)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
