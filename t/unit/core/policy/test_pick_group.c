
/* The pick for a stream that resumes: within its group, or not at all. */

#include "t/unit/core/policy/pick_scene.h"


#define GROUP  7
#define OTHER  8


/* The first two peers are of the other group, and far less loaded. */
static void
group_init(scene_t *s)
{
    size_t  i;

    scene_init(s, 5);

    for (i = 0; i < 5; i++) {
        s->peers[s->order[i]].resume_group = i < 2 ? OTHER : GROUP;
        s->counts[s->order[i]].in_flight = i < 2 ? 0 : 5;
    }

    s->key.resumes = 1;
    s->key.resume_group = GROUP;
}


static void
first_of_the_group_clockwise_is_picked(void **state)
{
    scene_t  s;

    group_init(&s);
    assert_picks(&s, s.order[2], LLMGW_ROUTE_SPILL);

    /* A request that does not resume ignores groups. */
    s.key.resumes = 0;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);
    scene_done(&s);
}


static void
least_loaded_of_the_group_is_picked_where_all_are_over_the_bound(
    void **state)
{
    scene_t  s;

    group_init(&s);
    s.counts[s.order[2]].in_flight = 100;
    s.counts[s.order[3]].in_flight = 90;
    s.counts[s.order[4]].in_flight = 95;
    assert_picks(&s, s.order[3], LLMGW_ROUTE_LEAST_CONN);
    scene_done(&s);
}


/* The stream's group is full, so it waits; others may go elsewhere. */
static void
stream_that_waits_for_a_full_group_is_skippable(void **state)
{
    size_t   i;
    scene_t  s;

    group_init(&s);

    for (i = 2; i < 5; i++) {
        s.peers[s.order[i]].max_capacity = 5;
    }

    assert_refuses(&s, LLMGW_PICK_SKIPPABLE);

    for (i = 0; i < 2; i++) {
        s.fulls[s.order[i]].until_ms = s.key.now_ms + 1;
    }

    assert_refuses(&s, LLMGW_PICK_FULL);
    scene_done(&s);
}


static void
group_that_is_gone_is_as_if_each_was_tried(void **state)
{
    size_t   i;
    scene_t  s;

    group_init(&s);

    for (i = 2; i < 5; i++) {
        s.peers[s.order[i]].state = UNUSABLE;
    }

    assert_refuses(&s, LLMGW_PICK_EXCLUDED);

    /* A suspect of the group is better than none. */
    s.peers[s.order[4]].state = SUSPECT;
    assert_picks(&s, s.order[4], LLMGW_ROUTE_SPILL);

    scene_exclude(&s, s.order[4]);
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);

    for (i = 0; i < 5; i++) {
        s.peers[s.order[i]].state = UNUSABLE;
    }

    assert_refuses(&s, LLMGW_PICK_NONE);
    scene_done(&s);
}


static void
open_circuit_of_another_group_is_not_forced(void **state)
{
    size_t   i;
    scene_t  s;

    group_init(&s);

    for (i = 0; i < 5; i++) {
        scene_open(&s, s.order[i], i < 2 ? 500 : 900);
    }

    s.picked.peer = NOBODY;
    assert_int_equal(llmgw_pick(&s.pool, &s.key, &s.picked), LLMGW_PICK_OPEN);
    assert_int_equal(s.peers[s.picked.peer].resume_group, GROUP);
    scene_done(&s);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(first_of_the_group_clockwise_is_picked),
        cmocka_unit_test(
            least_loaded_of_the_group_is_picked_where_all_are_over_the_bound),
        cmocka_unit_test(stream_that_waits_for_a_full_group_is_skippable),
        cmocka_unit_test(group_that_is_gone_is_as_if_each_was_tried),
        cmocka_unit_test(open_circuit_of_another_group_is_not_forced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
