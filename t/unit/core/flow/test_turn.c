
/*
 * Looking up whose turn it is before taking it; requests that come back.
 */

#include "t/unit/core/flow/flow_scene.h"


/* Looking up the next one changes nothing; a removal is not a turn. */
static void
turn_moves_with_the_one_that_is_taken(void **state)
{
    double    ceiling;
    scene_t   scene;
    uint32_t  next;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN);
    scene.conf.usage_limit = 0.5;
    scene_start(&scene);
    assert_int_equal(llmgw_flow_next(scene.flow, &ceiling), 0);

    add(&scene, 0, 3, 1);
    add(&scene, 1, 3, 1);
    add(&scene, 2, 3, 2);
    add(&scene, 3, -1, 1);

    next = llmgw_flow_next(scene.flow, &ceiling);
    assert_int_equal(next, scene.entries[0]);
    assert_int_equal(llmgw_flow_next(scene.flow, &ceiling), next);
    assert_true(ceiling == 1);

    assert_true(llmgw_flow_remove(scene.flow, next, 0));
    next = llmgw_flow_next(scene.flow, &ceiling);
    assert_int_equal(llmgw_flow_request(scene.flow, next), 1);

    assert_int_equal(llmgw_flow_take(scene.flow, next), 1);
    assert_leave(&scene, 2);

    (void) llmgw_flow_next(scene.flow, &ceiling);
    assert_true(ceiling == 0.5);
    assert_leave(&scene, 3);
    scene_done(&scene);
}


/*
 * Two tenants that always send one more request still leave the third its
 * turn.
 */
static void
kept_turns_starve_nobody(void **state)
{
    scene_t  scene;

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN);
    scene.conf.keeps_turns = 1;
    scene_start(&scene);

    add(&scene, 0, 3, 1);
    add(&scene, 1, 3, 2);
    add(&scene, 2, 3, 3);
    add(&scene, 3, 3, 3);

    assert_leave(&scene, 0, 1);
    add(&scene, 4, 3, 1);
    assert_leave(&scene, 2);
    add(&scene, 5, 3, 2);
    assert_leave(&scene, 4, 5, 3);
    scene_done(&scene);
}


/*
 * Requests that are removed and come back under their own numbers keep their
 * places.
 */
static void
one_that_comes_back_stands_where_it_stood(void **state)
{
    uint32_t              i, victim;
    scene_t               scene;
    llmgw_flow_arrival_t  arrival = { .deadline_us = 7 };

    static const uint32_t  comes[] = { 3, 1, 6, 0, 2, 5, 4 };

    scene_init(&scene, LLMGW_FLOW_SLO_DEADLINE, LLMGW_FLOW_GLOBAL_STRICT);
    scene_start(&scene);

    for (i = 0; i < 7; i++) {
        arrival.request = comes[i];
        arrival.number = 10 + comes[i];
        arrival.tenant = comes[i] % 2;
        assert_int_equal(llmgw_flow_enqueue(scene.flow, &arrival,
                                            &scene.entries[comes[i]],
                                            &victim),
                         LLMGW_FLOW_QUEUED);
    }

    assert_leave(&scene, 0, 1, 2, 3, 4, 5, 6);
    scene_done(&scene);
}


static void
firm_ones_are_not_shed(void **state)
{
    uint32_t              i;
    scene_t               scene;
    llmgw_flow_arrival_t  arrival = { .priority = -1, .is_firm = 1 };

    scene_init(&scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT);
    scene.conf.has_shedding = 1;
    scene.conf.size = 3;
    scene_start(&scene);

    add(&scene, 0, -1, 1);

    for (i = 1; i < 3; i++) {
        arrival.request = i;
        (void) llmgw_flow_enqueue(scene.flow, &arrival, &scene.entries[i],
                                  &scene.victim);
    }

    assert_int_equal(add(&scene, 3, 4, 1), LLMGW_FLOW_SHED);
    assert_int_equal(scene.victim, 0);
    assert_int_equal(add(&scene, 4, 4, 1), LLMGW_FLOW_REJECTED);
    assert_leave(&scene, 3, 1, 2);
    scene_done(&scene);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(turn_moves_with_the_one_that_is_taken),
        cmocka_unit_test(kept_turns_starve_nobody),
        cmocka_unit_test(one_that_comes_back_stands_where_it_stood),
        cmocka_unit_test(firm_ones_are_not_shed)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
