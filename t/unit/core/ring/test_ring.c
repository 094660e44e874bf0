
/*
 * The ring compared with its definition (ring_fleet.h), however its build was
 * sliced; and edge cases of limits and weights.
 */

#include "t/unit/core/ring/ring_fleet.h"


static void
ring_is_the_plain_sorted_one(void **state)
{
    size_t               i, n;
    fleet_t              fleet;
    llmgw_ring_t        *ring;
    static const size_t  sizes[] = { 1, 2, 3, 4, 5, 7, 8, 9, 64, 100, 1000 };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        n = sizes[i];
        fleet = fleet_make("replica-%d", n);

        ring = whole_ring(fleet.nodes, n, VNODES, SIZE_MAX);
        assert_is_naive(ring, fleet.nodes, n, VNODES);
        free(ring);

        /* as few buckets as nodes, long ones, and empty ones */
        ring = whole_ring(fleet.nodes, n, 1, SIZE_MAX);
        assert_is_naive(ring, fleet.nodes, n, 1);
        free(ring);

        fleet_done(&fleet);
    }
}


static void
slices_of_any_budget_give_the_same_ring(void **state)
{
    size_t               i;
    fleet_t              fleet;
    llmgw_ring_t        *ring;
    static const size_t  budgets[] = { 1, 2, 3, 10, 1000, SIZE_MAX };

    fleet = fleet_make("r%d", 37);
    fleet.nodes[5].weight = 9;

    for (i = 0; i < sizeof(budgets) / sizeof(budgets[0]); i++) {
        ring = whole_ring(fleet.nodes, fleet.n, VNODES, budgets[i]);
        assert_is_naive(ring, fleet.nodes, fleet.n, VNODES);
        free(ring);
    }

    fleet_done(&fleet);
}


/* 4 units to hash a point, 6 to sort it, 1 to merge it; a copy costs 1. */
static void
small_budgets_need_many_slices(void **state)
{
    size_t         slices;
    uint32_t       i, before[101];
    fleet_t        fleet;
    llmgw_ring_t  *ring, *next;

    fleet = fleet_make("r%d", 101);

    ring = begin_ring(NULL, NULL, fleet.nodes, 100, VNODES);
    assert_int_equal(llmgw_ring_build(ring, 0), 0);
    slices = make_whole(ring, 100);
    assert_in_range(slices, 15000 * 11 / 100, 15000 * 11 / 100 + 10);

    for (i = 0; i < 100; i++) {
        before[i] = i;
    }

    before[100] = LLMGW_RING_NEW;

    next = begin_ring(ring, before, fleet.nodes, 101, VNODES);
    slices = make_whole(next, 100);
    assert_in_range(slices, 15000 / 100, (15000 + 150 * 11) / 100 + 10);

    free(ring);
    free(next);
    fleet_done(&fleet);
}


static void
weight_multiplies_points_and_share(void **state)
{
    fleet_t        fleet;
    llmgw_ring_t  *ring;

    fleet = fleet_make("r%d", 4);
    fleet.nodes[1].weight = 2;
    fleet.nodes[3].weight = 7;

    ring = whole_ring(fleet.nodes, 4, VNODES, 100);

    assert_int_equal(llmgw_ring_npoints(ring), 11 * VNODES);
    assert_is_naive(ring, fleet.nodes, 4, VNODES);

    assert_in_range(llmgw_ring_share_ppm(ring, 1), 2 * 75000, 2 * 110000);
    assert_in_range(llmgw_ring_share_ppm(ring, 3), 7 * 82000, 7 * 100000);

    free(ring);
    fleet_done(&fleet);
}


/* Shares from the naive points, in doubles; they add up to the circle. */
static void
shares_are_the_arcs_and_fill_the_circle(void **state)
{
    size_t          i, n;
    double          arcs[20];
    int64_t         sum, ppm;
    fleet_t         fleet;
    llmgw_ring_t   *ring;
    naive_point_t  *points;

    fleet = fleet_make("replica-%d", 20);
    ring = whole_ring(fleet.nodes, 20, VNODES, 1000);
    n = naive_points(fleet.nodes, 20, VNODES, &points);

    memset(arcs, 0, sizeof(arcs));

    for (i = 0; i < n; i++) {
        arcs[points[i].node] += (double) (points[i].hash
                                          - points[(i + n - 1) % n].hash);
    }

    sum = 0;

    for (i = 0; i < 20; i++) {
        ppm = llmgw_ring_share_ppm(ring, (uint32_t) i);
        sum += ppm;

        assert_in_range(ppm + 1 - (int64_t) (arcs[i] * 1e6 / 0x1p64), 0, 2);
    }

    assert_in_range(sum, 1000000 - 20, 1000000 + 20);
    assert_int_equal(llmgw_ring_share_ppm(ring, 20), 0);

    free(points);
    free(ring);
    fleet_done(&fleet);
}


static void
empty_ring_is_whole_after_one_build(void **state)
{
    llmgw_ring_t  *ring;

    ring = whole_ring(NULL, 0, VNODES, 1000);

    assert_int_equal(llmgw_ring_npoints(ring), 0);
    assert_int_equal(llmgw_ring_nnodes(ring), 0);
    assert_int_equal(llmgw_ring_share_ppm(ring, 0), 0);

    free(ring);
}


static void
one_node_owns_the_circle(void **state)
{
    fleet_t        fleet;
    uint32_t       vnodes;
    llmgw_ring_t  *ring;

    fleet = fleet_make("r%d", 1);

    for (vnodes = 1; vnodes < 200; vnodes++) {
        ring = whole_ring(fleet.nodes, 1, vnodes, 10);

        assert_int_equal(owner(ring, 0), 0);
        assert_int_equal(owner(ring, UINT64_MAX), 0);
        assert_int_equal(llmgw_ring_share_ppm(ring, 0), 1000000);

        free(ring);
    }

    fleet_done(&fleet);
}


static void
ids_may_be_empty_and_long_but_not_longer(void **state)
{
    char               id[LLMGW_RING_MAX_ID + 1];
    llmgw_ring_t      *ring;
    llmgw_ring_node_t  node = { id, 0, 1 };

    memset(id, 'x', sizeof(id));

    ring = whole_ring(&node, 1, 1, 1);
    assert_is_naive(ring, &node, 1, 1);
    free(ring);

    node.id_len = LLMGW_RING_MAX_ID;
    ring = whole_ring(&node, 1, 11, 1);
    assert_is_naive(ring, &node, 1, 11);
    free(ring);

    node.id_len++;
    assert_int_equal(llmgw_ring_bytes(NULL, &node, 1, 1).ring, 0);
}


static void
more_nodes_than_the_limit_are_refused(void **state)
{
    fleet_t              fleet;
    llmgw_ring_t        *ring;
    llmgw_ring_bytes_t   bytes;

    fleet = fleet_make("%d", LLMGW_RING_MAX_NODES + 1);

    bytes = llmgw_ring_bytes(NULL, fleet.nodes, LLMGW_RING_MAX_NODES + 1, 1);
    assert_int_equal(bytes.ring, 0);

    ring = whole_ring(fleet.nodes, LLMGW_RING_MAX_NODES, 1, 100000);
    assert_int_equal(llmgw_ring_npoints(ring), LLMGW_RING_MAX_NODES);
    assert_is_naive(ring, fleet.nodes, LLMGW_RING_MAX_NODES, 1);

    free(ring);
    fleet_done(&fleet);
}


static size_t
npoints_of(const fleet_t *fleet, uint32_t vnodes)
{
    size_t         n;
    llmgw_ring_t  *ring;

    ring = begin_ring(NULL, NULL, fleet->nodes, fleet->n, vnodes);
    n = llmgw_ring_npoints(ring);

    free(ring->builder);
    free(ring);

    return n;
}


static void
weights_over_the_limit_are_scaled_down_alike(void **state)
{
    fleet_t        fleet;
    const size_t   limit = LLMGW_RING_MAX_POINTS;

    fleet = fleet_make("r%d", 4);

    fleet.nodes[0].weight = (uint32_t) limit - 3;
    assert_int_equal(npoints_of(&fleet, 1), limit);

    fleet.nodes[0].weight = (uint32_t) limit - 2;
    assert_int_equal(npoints_of(&fleet, 1), limit / 2 - 1 + 3);

    fleet.nodes[0].weight = 4000000000u;
    fleet.nodes[1].weight = 1000000000u;
    assert_in_range(npoints_of(&fleet, 1000000), limit / 2, limit);

    fleet.nodes[0].weight = 0;
    fleet.nodes[1].weight = 1;
    assert_int_equal(npoints_of(&fleet, 0), 4);

    fleet_done(&fleet);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(ring_is_the_plain_sorted_one),
        cmocka_unit_test(slices_of_any_budget_give_the_same_ring),
        cmocka_unit_test(small_budgets_need_many_slices),
        cmocka_unit_test(weight_multiplies_points_and_share),
        cmocka_unit_test(shares_are_the_arcs_and_fill_the_circle),
        cmocka_unit_test(empty_ring_is_whole_after_one_build),
        cmocka_unit_test(one_node_owns_the_circle),
        cmocka_unit_test(ids_may_be_empty_and_long_but_not_longer),
        cmocka_unit_test(more_nodes_than_the_limit_are_refused),
        cmocka_unit_test(weights_over_the_limit_are_scaled_down_alike)
    };

    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
