
/* The pick: each tier and each code, in pools made by hand. */

#include "t/unit/core/policy/pick_scene.h"


/* --- tier 1 */

static void
idle_pool_picks_the_keys_own_peer(void **state)
{
    int      i;
    scene_t  s;

    scene_init(&s, 5);

    for (i = 0; i < 100; i++) {
        scene_set_key(&s, (uint64_t) i * 0x9e3779b97f4a7c15ull);
        assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);
    }

    scene_done(&s);
}


static void
peers_that_cannot_serve_spill_to_the_next(void **state)
{
    scene_t  s;

    scene_init(&s, 6);

    s.peers[s.order[0]].state = UNUSABLE;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    s.peers[s.order[1]].state = SUSPECT;
    assert_picks(&s, s.order[2], LLMGW_ROUTE_SPILL);

    scene_exclude(&s, s.order[2]);
    assert_picks(&s, s.order[3], LLMGW_ROUTE_SPILL);

    s.counts[s.order[3]].in_flight = 2;
    s.peers[s.order[3]].max_capacity = 2;
    assert_picks(&s, s.order[4], LLMGW_ROUTE_SPILL);

    s.fulls[s.order[4]].until_ms = s.key.now_ms + 1;
    assert_picks(&s, s.order[5], LLMGW_ROUTE_SPILL);

    s.key.now_ms++;
    assert_picks(&s, s.order[4], LLMGW_ROUTE_SPILL);

    s.counts[s.order[3]].in_flight = 1;
    assert_picks(&s, s.order[3], LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


static void
capacity_is_of_own_requests_alone(void **state)
{
    scene_t  s;

    scene_init(&s, 2);

    s.peers[s.order[0]].max_capacity = 2;
    s.peers[s.order[0]].foreign = 5;
    s.counts[s.order[0]].in_flight = 1;

    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    s.peers[s.order[0]].counts = NULL;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    scene_done(&s);
}


/*
 * Two peers, factor 1.25: the bound is ceil(1.25 x (total + 1) / 2), where 1
 * is this request.
 */
static void
load_bound_counts_the_request_and_rounds_up(void **state)
{
    scene_t  s;

    scene_init(&s, 2);
    s.pool.min_load = 0;

    s.counts[s.order[0]].in_flight = 6;
    s.counts[s.order[1]].in_flight = 3;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);   /* 7 <= ceil 6.25 */

    s.counts[s.order[1]].in_flight = 2;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);      /* 7 > ceil 5.63 */

    s.counts[s.order[0]].in_flight = 5;
    s.counts[s.order[1]].in_flight = 2;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);      /* 6 > 5 */

    s.counts[s.order[0]].in_flight = 4;
    s.counts[s.order[1]].in_flight = 3;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);   /* 5 <= 5 */

    s.peers[s.order[0]].foreign = 1;                      /* 6 > ceil 5.63: */
    s.counts[s.order[1]].in_flight = 3;                   /* no, 6 <= 6 */
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    s.peers[s.order[0]].foreign = 2;                      /* 7 <= 7 */
    s.peers[s.order[1]].foreign = 0;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    s.peers[s.order[0]].foreign = 20;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


static void
one_idle_peer_passes_any_bound(void **state)
{
    scene_t  s;

    scene_init(&s, 1);
    s.pool.min_load = 0;

    s.pool.load_factor_permille = 1000;
    assert_picks(&s, 0, LLMGW_ROUTE_AFFINITY);

    s.pool.load_factor_permille = 1;
    assert_picks(&s, 0, LLMGW_ROUTE_AFFINITY);

    s.counts[0].in_flight = 1000;
    assert_picks(&s, 0, LLMGW_ROUTE_LEAST_CONN);

    s.pool.load_factor_permille = 1000;
    assert_picks(&s, 0, LLMGW_ROUTE_AFFINITY);

    scene_done(&s);
}


static void
bound_is_ignored_below_min_load_and_at_factor_zero(void **state)
{
    scene_t  s;

    scene_init(&s, 4);

    s.counts[s.order[0]].in_flight = 7;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    s.counts[s.order[0]].in_flight = 8;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    s.pool.load_factor_permille = 0;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    scene_done(&s);
}


static void
bound_is_by_share_of_weight(void **state)
{
    scene_t  s;

    scene_init(&s, 2);
    s.pool.min_load = 0;

    /* 1.25 x 40 x 3/4 = 37.5, and 12.5 for the other */
    s.peers[s.order[0]].weight = 3;

    s.counts[s.order[0]].in_flight = 37;
    s.counts[s.order[1]].in_flight = 2;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    s.counts[s.order[0]].in_flight = 38;
    s.counts[s.order[1]].in_flight = 1;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


static void
unusable_and_suspect_peers_count_in_no_mean(void **state)
{
    scene_t  s;

    scene_init(&s, 4);
    s.pool.min_load = 0;

    /* with the other two, the mean would be 255 */
    s.counts[s.order[0]].in_flight = 20;
    s.counts[s.order[2]].in_flight = 1000;
    s.peers[s.order[2]].state = UNUSABLE;
    s.peers[s.order[3]].state = SUSPECT;

    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


/* --- tier 2 */

static void
least_load_by_weight_serves_when_all_are_over_the_bound(void **state)
{
    scene_t  s;

    scene_init(&s, 3);

    s.pool.min_load = 0;
    s.pool.load_factor_permille = 100;

    s.counts[0].in_flight = 10;
    s.counts[1].in_flight = 9;
    s.counts[2].in_flight = 11;
    assert_picks(&s, 1, LLMGW_ROUTE_LEAST_CONN);

    s.peers[2].weight = 2;
    assert_picks(&s, 2, LLMGW_ROUTE_LEAST_CONN);

    s.peers[2].foreign = 10;
    assert_picks(&s, 1, LLMGW_ROUTE_LEAST_CONN);

    scene_exclude(&s, 1);
    assert_picks(&s, 0, LLMGW_ROUTE_LEAST_CONN);

    scene_done(&s);
}


static void
pool_without_points_uses_least_connections(void **state)
{
    scene_t  s;

    scene_init(&s, 3);

    s.counts[0].in_flight = 1;
    s.counts[2].in_flight = 1;

    s.pool.ring = NULL;
    assert_picks(&s, 1, LLMGW_ROUTE_LEAST_CONN);

    s.pool.ring = ring_of(0, s.peers, 150);
    assert_picks(&s, 1, LLMGW_ROUTE_LEAST_CONN);
    free((llmgw_ring_t *) s.pool.ring);

    scene_done(&s);
}


static void
ties_are_drawn_evenly(void **state)
{
    int       i, drawn[7] = { 0 };
    scene_t   s;
    uint64_t  seed;

    scene_init(&s, 7);

    seed = 4;
    s.pool.ring = NULL;
    s.peers[3].state = UNUSABLE;
    s.counts[5].in_flight = 1;

    for (i = 0; i < 50000; i++) {
        s.key.random = i % 2 ? next_random(&seed) : (uint64_t) i;

        assert_int_equal(llmgw_pick(&s.pool, &s.key, &s.picked),
                         LLMGW_PICK_OK);
        drawn[s.picked.peer]++;
    }

    for (i = 0; i < 7; i++) {
        if (i == 3 || i == 5) {
            assert_int_equal(drawn[i], 0);

        } else {
            assert_in_range(drawn[i], 9600, 10400);     /* 4.5 sigma */
        }
    }

    scene_done(&s);
}


/* --- suspects and refusals */

static void
suspects_serve_only_when_no_living_peer_is_left(void **state)
{
    scene_t   s;
    uint32_t  living;

    scene_init(&s, 3);

    living = s.order[2];
    s.peers[s.order[0]].state = SUSPECT;
    s.peers[s.order[1]].state = SUSPECT;
    assert_picks(&s, living, LLMGW_ROUTE_SPILL);

    s.peers[living].max_capacity = 1;
    s.counts[living].in_flight = 1;
    assert_refuses(&s, LLMGW_PICK_FULL);

    scene_exclude(&s, living);
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    s.key.nexcluded = 0;
    s.peers[living].state = UNUSABLE;
    assert_picks(&s, s.order[0], LLMGW_ROUTE_AFFINITY);

    /* the mean is that of suspects only */
    s.counts[s.order[0]].in_flight = 20;
    assert_picks(&s, s.order[1], LLMGW_ROUTE_SPILL);

    scene_done(&s);
}


static void
codes_tell_full_from_excluded_from_none(void **state)
{
    scene_t  s;

    scene_init(&s, 3);

    s.peers[0].state = UNUSABLE;
    s.peers[1].state = UNUSABLE;
    s.peers[2].state = UNUSABLE;
    assert_refuses(&s, LLMGW_PICK_NONE);

    scene_exclude(&s, 0);
    assert_refuses(&s, LLMGW_PICK_NONE);        /* it is unusable anyway */

    s.peers[0].state = ALIVE;
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);

    s.peers[1].state = SUSPECT;
    s.fulls[1].until_ms = s.key.now_ms + 1;
    assert_refuses(&s, LLMGW_PICK_SKIPPABLE);       /* peer 0 is not full */

    s.fulls[0].until_ms = s.key.now_ms + 1;
    assert_refuses(&s, LLMGW_PICK_FULL);
    s.fulls[0].until_ms = 0;

    scene_exclude(&s, 1);
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);

    s.peers[0].state = UNUSABLE;
    assert_refuses(&s, LLMGW_PICK_EXCLUDED);    /* only a suspect is left */

    s.pool.npeers = 0;
    assert_refuses(&s, LLMGW_PICK_NONE);

    scene_done(&s);
}


/* Products of load and weight that would overflow, and a weight of 0. */
static void
extreme_figures_of_peers_do_no_harm(void **state)
{
    scene_t  s;

    scene_init(&s, 2);

    s.pool.ring = NULL;
    s.pool.load_factor_permille = UINT32_MAX;

    s.counts[0].in_flight = UINT32_MAX;
    s.peers[0].foreign = UINT32_MAX;
    s.peers[1].foreign = UINT32_MAX;
    s.peers[1].weight = (1u << 31) + 1;
    assert_picks(&s, 1, LLMGW_ROUTE_LEAST_CONN);

    s.counts[0].in_flight = 5;
    s.peers[0].foreign = 0;
    s.peers[0].weight = 0;
    s.peers[1].foreign = 6;
    s.peers[1].weight = 1;
    assert_picks(&s, 0, LLMGW_ROUTE_LEAST_CONN);

    scene_done(&s);
}


static void
ring_and_peers_may_differ_in_number(void **state)
{
    scene_t   s;
    uint32_t  last;

    scene_init(&s, 5);

    /* ring nodes without a peer are skipped */
    s.pool.npeers = 1;
    assert_picks(&s, 0, s.order[0] == 0 ? LLMGW_ROUTE_AFFINITY
                                        : LLMGW_ROUTE_SPILL);

    /* a peer that is not on the ring comes in tier 2 */
    last = 5;
    s.peers[last] = s.peers[0];
    s.peers[last].counts = NULL;
    s.pool.npeers = 6;

    scene_exclude(&s, 0);
    scene_exclude(&s, 1);
    scene_exclude(&s, 2);
    scene_exclude(&s, 3);
    scene_exclude(&s, 4);
    scene_exclude(&s, 1000);
    assert_picks(&s, last, LLMGW_ROUTE_LEAST_CONN);

    scene_done(&s);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(idle_pool_picks_the_keys_own_peer),
        cmocka_unit_test(peers_that_cannot_serve_spill_to_the_next),
        cmocka_unit_test(capacity_is_of_own_requests_alone),
        cmocka_unit_test(load_bound_counts_the_request_and_rounds_up),
        cmocka_unit_test(one_idle_peer_passes_any_bound),
        cmocka_unit_test(bound_is_ignored_below_min_load_and_at_factor_zero),
        cmocka_unit_test(bound_is_by_share_of_weight),
        cmocka_unit_test(unusable_and_suspect_peers_count_in_no_mean),
        cmocka_unit_test(
            least_load_by_weight_serves_when_all_are_over_the_bound),
        cmocka_unit_test(pool_without_points_uses_least_connections),
        cmocka_unit_test(ties_are_drawn_evenly),
        cmocka_unit_test(suspects_serve_only_when_no_living_peer_is_left),
        cmocka_unit_test(codes_tell_full_from_excluded_from_none),
        cmocka_unit_test(extreme_figures_of_peers_do_no_harm),
        cmocka_unit_test(ring_and_peers_may_differ_in_number)
    };

    return cmocka_run_group_tests_name("pick", tests, NULL, NULL);
}
