
/* Policies that the simulator adds, and which of equal ranks is the best. */

#include "core/policy/order.h"
#include "sim/fleet/policy/policy.h"
#include "sim/fleet/ring.h"
#include "t/unit/core/policy/score_scene.h"


#define KEY  12345


static void
always_busiest_turns_least_loaded_round(void **state)
{
    uint32_t        i;
    score_scene_t   scene;
    fleet_policy_t  least, busiest;

    score_scene_init(&scene, 4);
    scene.candidates[0].in_flight = 3;
    scene.candidates[1].batch_size = 2;
    scene.candidates[3].queue_depth = 9;

    assert_int_equal(fleet_policy_find(&least, "least_loaded", 12), 0);
    assert_int_equal(fleet_policy_find(&busiest, "always_busiest", 14), 0);
    assert_string_equal(fleet_policy_name(&least), "least-loaded");
    assert_string_equal(fleet_policy_name(&busiest), "always-busiest");

    fleet_policy_rank(&least, &scene.scoring, scene.scores, NULL);
    fleet_policy_rank(&busiest, &scene.scoring, scene.more, NULL);
    assert_int_equal(fleet_policy_best(scene.scores, 4, NULL), 2);
    assert_int_equal(fleet_policy_best(scene.more, 4, NULL), 3);
    assert_true(scene.more[3] == 9);

    for (i = 0; i < 4; i++) {
        assert_true(scene.more[i] == -scene.scores[i]);
    }

    assert_int_equal(fleet_policy_find(&least, "busiest", 7), -1);
    assert_string_equal(fleet_policy_name(&least), "least-loaded");
}


static uint32_t
ring_choice(const llmgw_ring_t *ring, score_scene_t *scene)
{
    llmgw_pick_peer_t  peers[3];

    fleet_ring_rank(ring, peers, KEY, &scene->scoring, scene->scores);

    return fleet_policy_best(scene->scores, scene->scoring.n, NULL);
}


/*
 * On a ring of three a key goes to its own replica, until that is over the
 * load bound.
 */
static void
affinity_is_the_rings_choice(void **state)
{
    uint32_t       own;
    llmgw_ring_t  *ring;
    score_scene_t  scene;

    score_scene_init(&scene, 3);
    ring = fleet_ring(3, 10);
    assert_non_null(ring);

    own = llmgw_ring_node(ring, llmgw_ring_find(ring, KEY));
    assert_int_equal(ring_choice(ring, &scene), own);
    scene.candidates[own].in_flight = 30;
    assert_int_not_equal(ring_choice(ring, &scene), own);
    scene.candidates[0].in_flight = 30;
    scene.candidates[1].in_flight = 30;
    scene.candidates[2].in_flight = 30;
    assert_int_equal(ring_choice(ring, &scene), own);

    /* its own replica is no candidate: positions are not numbers */
    scene.candidates[own] = scene.candidates[2];
    scene.scoring.n = 2;
    assert_int_not_equal(scene.candidates[ring_choice(ring, &scene)].replica,
                         own);

    free(ring);
}


static void
ties_go_by_position_or_by_lot(void **state)
{
    uint32_t      i, best, seen;
    uint64_t      random;
    const double  ranks[] = { 0.25, 0.5, 0.5, 0.125, 0.5 };

    assert_int_equal(fleet_policy_best(ranks, 5, NULL), 1);
    assert_int_equal(fleet_policy_best(ranks, 0, NULL), LLMGW_RANK_NONE);
    seen = 0;

    for (random = 0; random < 100; random++) {
        best = fleet_policy_best(ranks, 5, &random);
        assert_true(ranks[best] == 0.5);
        assert_int_equal(fleet_policy_best(ranks, 5, &random), best);
        seen |= 1u << best;
    }

    for (i = 0; i < 5; i++) {
        assert_int_equal(seen >> i & 1, ranks[i] == 0.5);
    }
}


static void
best_is_what_an_order_draws_first(void **state)
{
    double         ranks[7];
    uint32_t       i, heap[7];
    uint64_t       random;
    llmgw_order_t  order;

    for (random = 0; random < 100; random++) {
        for (i = 0; i < 7; i++) {
            ranks[i] = (double) (llmgw_draw(random, i) % 3);
        }

        llmgw_order_init(&order, ranks, 7, heap, &random);
        assert_int_equal(llmgw_order_next(&order),
                         fleet_policy_best(ranks, 7, &random));
        llmgw_order_init(&order, ranks, 7, heap, NULL);
        assert_int_equal(llmgw_order_next(&order),
                         fleet_policy_best(ranks, 7, NULL));
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(always_busiest_turns_least_loaded_round),
        cmocka_unit_test(affinity_is_the_rings_choice),
        cmocka_unit_test(ties_go_by_position_or_by_lot),
        cmocka_unit_test(best_is_what_an_order_draws_first)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
