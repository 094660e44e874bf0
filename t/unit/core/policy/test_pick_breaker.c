
/* The pick among peers with breakers: admitted ones, and forced ones. */

#include "t/unit/core/policy/pick_scene.h"


static void
assert_opens(scene_t *scene, uint32_t peer, llmgw_route_t route)
{
    scene->picked.peer = NOBODY;

    assert_int_equal(llmgw_pick(&scene->pool, &scene->key, &scene->picked),
                     LLMGW_PICK_OPEN);
    assert_int_equal(scene->picked.peer, peer);
    assert_int_equal(scene->picked.route, route);
}


static void
open_circuit_spills_until_its_cooldown_ends(void **state)
{
    scene_t  s;

    scene_init(&s, 3);

    s.peers[s.order[0]].breaker = &s.breakers[s.order[0]];
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    scene_open(&s, s.order[0], 600);
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    s.pool.breaker_conf = NULL;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);
    s.pool.breaker_conf = &s.breaker_conf;

    s.key.now_ms = 1100;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    /* its circuit is being probed, by one attempt at a time */
    s.breakers[s.order[0]].state = LLMGW_BREAKER_HALF_OPEN;
    s.breakers[s.order[0]].probing = 1;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    s.breaker_conf.probes = 2;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    scene_done(&s);
}


static void
open_circuits_count_in_no_mean(void **state)
{
    scene_t  s;

    scene_init(&s, 3);
    s.pool.min_load = 0;

    /* with the third, whose streams still run, the mean would be 340 */
    s.counts[s.order[0]].in_flight = 20;
    s.counts[s.order[2]].in_flight = 1000;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    scene_open(&s, s.order[2], s.key.now_ms);
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


static void
all_open_names_the_one_that_closes_first(void **state)
{
    scene_t  s;

    scene_init(&s, 4);

    scene_open(&s, 0, 900);
    scene_open(&s, 1, 700);
    scene_open(&s, 2, 800);
    s.peers[3].state = UNUSABLE;
    assert_opens(&s, 1, s.order[0] == 1 ? LLMGW_ROUTE_AFFINITY
                                        : LLMGW_ROUTE_SPILL);

    scene_exclude(&s, 1);
    assert_opens(&s, 2, s.order[0] == 2 ? LLMGW_ROUTE_AFFINITY
                                        : LLMGW_ROUTE_SPILL);

    /* the pick waits for the peer that is being probed */
    s.breakers[0].state = LLMGW_BREAKER_HALF_OPEN;
    s.breakers[0].probing = 1;
    assert_opens(&s, 0, s.order[0] == 0 ? LLMGW_ROUTE_AFFINITY
                                        : LLMGW_ROUTE_SPILL);

    s.pool.ring = NULL;
    assert_opens(&s, 0, LLMGW_ROUTE_LEAST_CONN);

    scene_exclude(&s, 0);
    scene_exclude(&s, 2);
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);

    scene_done(&s);
}


static void
full_peer_that_is_admitted_means_waiting(void **state)
{
    scene_t  s;

    scene_init(&s, 3);

    scene_open(&s, 0, 900);
    scene_open(&s, 1, 900);
    s.fulls[2].until_ms = s.key.now_ms + 1;
    assert_refuses(&s, LLMGW_PICK_FULL);

    /* a peer that is full and has an open circuit cannot be forced */
    scene_open(&s, 2, 100);
    s.breakers[2].cooldown_ms = 901;
    assert_opens(&s, 0, s.order[0] == 0 ? LLMGW_ROUTE_AFFINITY
                                        : LLMGW_ROUTE_SPILL);

    s.fulls[0].until_ms = s.key.now_ms + 1;
    s.peers[1].max_capacity = 1;
    s.counts[1].in_flight = 1;
    assert_refuses(&s, LLMGW_PICK_FULL_OPEN);

    scene_done(&s);
}


static void
excluded_peer_with_an_open_circuit_makes_nothing_skippable(void **state)
{
    scene_t  s;

    scene_init(&s, 2);

    scene_exclude(&s, 0);
    s.fulls[1].until_ms = s.key.now_ms + 1;
    assert_refuses(&s, LLMGW_PICK_SKIPPABLE);

    scene_open(&s, 0, 900);
    assert_refuses(&s, LLMGW_PICK_FULL);

    /* a peer that is full and has an open circuit is not merely full */
    s.peers[0].breaker = NULL;
    scene_open(&s, 1, 900);
    assert_refuses(&s, LLMGW_PICK_FULL_OPEN);

    scene_done(&s);
}


static void
suspects_serve_when_all_living_circuits_are_open(void **state)
{
    scene_t   s;
    uint32_t  living, suspect;

    scene_init(&s, 2);

    living = s.order[0];
    suspect = s.order[1];

    scene_open(&s, living, 900);
    s.peers[suspect].state = SUSPECT;
    assert_picks(&s, suspect, LLMGW_ROUTE_SPILL);

    s.fulls[suspect].until_ms = s.key.now_ms + 1;
    assert_refuses(&s, LLMGW_PICK_FULL);

    /* the live peer comes first, though its cooldown ends later */
    s.fulls[suspect].until_ms = 0;
    scene_open(&s, suspect, 600);
    assert_opens(&s, living, LLMGW_ROUTE_AFFINITY);

    s.fulls[living].until_ms = s.key.now_ms + 1;
    assert_opens(&s, suspect, LLMGW_ROUTE_SPILL);

    s.fulls[living].until_ms = 0;
    scene_exclude(&s, living);
    assert_opens(&s, suspect, LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(open_circuit_spills_until_its_cooldown_ends),
        cmocka_unit_test(open_circuits_count_in_no_mean),
        cmocka_unit_test(all_open_names_the_one_that_closes_first),
        cmocka_unit_test(full_peer_that_is_admitted_means_waiting),
        cmocka_unit_test(
            excluded_peer_with_an_open_circuit_makes_nothing_skippable),
        cmocka_unit_test(suspects_serve_when_all_living_circuits_are_open)
    };

    return cmocka_run_group_tests_name("pick breaker", tests, NULL, NULL);
}
