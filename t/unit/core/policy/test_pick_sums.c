
/*
 * The load bound with many peers, whose sums are kept for a millisecond.
 */

#include "t/unit/core/policy/pick_scene.h"


#define MANY  300
#define FEW   200

typedef struct {
    fleet_t              fleet;
    llmgw_pick_pool_t    pool;
    llmgw_pick_key_t     key;
    llmgw_pick_sums_t    sums;
    llmgw_pick_peer_t    peers[MANY];
    llmgw_peer_counts_t  counts[MANY];
    llmgw_ring_t        *ring;
} crowd_t;


static void
crowd_init(crowd_t *crowd, size_t n)
{
    size_t  i;

    memset(crowd, 0, sizeof(crowd_t));

    crowd->fleet = fleet_make("r%d", n);
    crowd->ring = whole_ring(crowd->fleet.nodes, n, VNODES, SIZE_MAX);

    for (i = 0; i < n; i++) {
        crowd->peers[i].counts = &crowd->counts[i];
        crowd->peers[i].weight = 1;
        crowd->peers[i].state = ALIVE;
    }

    crowd->pool.ring = crowd->ring;
    crowd->pool.peers = crowd->peers;
    crowd->pool.npeers = n;
    crowd->pool.load_factor_permille = 1250;
    crowd->pool.min_load = 8;
    crowd->pool.sums = &crowd->sums;
    crowd->key.now_ms = 1000;
}


static void
crowd_done(crowd_t *crowd)
{
    free(crowd->ring);
    fleet_done(&crowd->fleet);
}


static void
crowd_load(crowd_t *crowd, uint32_t in_flight)
{
    size_t  i;

    for (i = 0; i < crowd->pool.npeers; i++) {
        crowd->counts[i].in_flight = in_flight;
    }
}


static llmgw_route_t
crowd_route(crowd_t *crowd)
{
    llmgw_picked_t  picked;

    assert_int_equal(llmgw_pick(&crowd->pool, &crowd->key, &picked),
                     LLMGW_PICK_OK);

    return picked.route;
}


static void
sums_serve_for_a_millisecond_and_count_what_is_placed(void **state)
{
    crowd_t  crowd;

    crowd_init(&crowd, MANY);
    crowd_load(&crowd, 10);

    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);
    assert_int_equal(crowd.sums.load, 10 * MANY + 1);
    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);
    assert_int_equal(crowd.sums.load, 10 * MANY + 2);

    /* all have more than those sums allow, until they are a millisecond old */
    crowd_load(&crowd, 13);
    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_LEAST_CONN);
    assert_int_equal(crowd.sums.load, 10 * MANY + 3);

    crowd.key.now_ms++;
    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);
    assert_int_equal(crowd.sums.load, 13 * MANY + 1);

    crowd_done(&crowd);
}


static void
sums_are_of_one_state(void **state)
{
    size_t   i;
    crowd_t  crowd;

    crowd_init(&crowd, MANY);
    crowd_load(&crowd, 10);
    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);

    for (i = 0; i < MANY; i++) {
        crowd.peers[i].state = SUSPECT;
    }

    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);
    assert_int_equal(crowd.sums.state, SUSPECT);
    assert_int_equal(crowd.sums.load, 10 * MANY + 1);

    crowd_done(&crowd);
}


static void
few_are_added_up_anew_each_time(void **state)
{
    crowd_t  crowd;

    crowd_init(&crowd, FEW);
    crowd_load(&crowd, 10);
    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);

    crowd_load(&crowd, 13);
    assert_int_equal(crowd_route(&crowd), LLMGW_ROUTE_AFFINITY);
    assert_int_equal(crowd.sums.load, 0);

    crowd_done(&crowd);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(sums_serve_for_a_millisecond_and_count_what_is_placed),
        cmocka_unit_test(sums_are_of_one_state),
        cmocka_unit_test(few_are_added_up_anew_each_time)
    };

    return cmocka_run_group_tests_name("pick sums", tests, NULL, NULL);
}
