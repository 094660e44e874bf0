
/*
 * The ring against its definition: the same points, in the same order, as a
 * plain array of all hashes that qsort() has sorted, whatever the order of the
 * members and the slicing; and its edges: limits, weights, no memory.
 */

#include "t/unit/core/ring/ring_fleet.h"

#define XXH_INLINE_ALL
#include <xxhash.h>


typedef struct {
    uint64_t                  hash;
    uint32_t                  node;
    const llmgw_ring_node_t  *of;
} naive_point_t;


/* --- the definition */

static int
naive_compare(const void *a, const void *b)
{
    int                   rc;
    size_t                len;
    const naive_point_t  *x = a, *y = b;

    if (x->hash != y->hash) {
        return x->hash < y->hash ? -1 : 1;
    }

    len = x->of->id_len < y->of->id_len ? x->of->id_len : y->of->id_len;
    rc = memcmp(x->of->id, y->of->id, len);

    return rc != 0 ? rc : (int) x->of->id_len - (int) y->of->id_len;
}


static size_t
naive_points(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    naive_point_t **points)
{
    char      text[256];      /* room for what XXH3 might read of it */
    size_t    i, total, len;
    uint32_t  k;

    total = 0;

    for (i = 0; i < n; i++) {
        total += (size_t) vnodes * nodes[i].weight;
    }

    *points = calloc(total + 1, sizeof(naive_point_t));
    assert_non_null(*points);

    total = 0;

    for (i = 0; i < n; i++) {
        memcpy(text, nodes[i].id, nodes[i].id_len);

        for (k = 0; k < vnodes * nodes[i].weight; k++) {
            len = nodes[i].id_len;
            len += (size_t) sprintf(text + len, "#%u", k);

            (*points)[total].hash = XXH3_64bits(text, len);
            (*points)[total].node = (uint32_t) i;
            (*points)[total++].of = &nodes[i];
        }
    }

    qsort(*points, total, sizeof(naive_point_t), naive_compare);

    return total;
}


/* The first point clockwise, by bisection. */
static size_t
naive_find(const naive_point_t *points, size_t n, uint64_t hash)
{
    size_t  low, high, middle;

    low = 0;
    high = n;

    while (low < high) {
        middle = (low + high) / 2;

        if (points[middle].hash < hash) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low == n ? 0 : low;
}


static void
assert_finds(const llmgw_ring_t *ring, const naive_point_t *points, size_t n,
    uint64_t hash)
{
    assert_int_equal(llmgw_ring_find(ring, hash),
                     naive_find(points, n, hash));
}


static void
assert_is_naive(const llmgw_ring_t *ring, const llmgw_ring_node_t *nodes,
    size_t nnodes, uint32_t vnodes)
{
    size_t          i, n;
    uint64_t        seed;
    naive_point_t  *points;

    n = naive_points(nodes, nnodes, vnodes, &points);

    assert_int_equal(llmgw_ring_npoints(ring), n);
    assert_int_equal(llmgw_ring_nnodes(ring), nnodes);

    for (i = 0; i < n; i++) {
        assert_int_equal(llmgw_ring_node(ring, i), points[i].node);

        assert_finds(ring, points, n, points[i].hash - 1);
        assert_finds(ring, points, n, points[i].hash);
        assert_finds(ring, points, n, points[i].hash + 1);
    }

    seed = 1;

    for (i = 0; i < 20000; i++) {
        assert_finds(ring, points, n, next_random(&seed));
    }

    assert_finds(ring, points, n, 0);
    assert_finds(ring, points, n, UINT64_MAX);

    free(points);
}


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
        llmgw_ring_destroy(ring);

        /* as few buckets as nodes, long ones, and empty ones */
        ring = whole_ring(fleet.nodes, n, 1, SIZE_MAX);
        assert_is_naive(ring, fleet.nodes, n, 1);
        llmgw_ring_destroy(ring);

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
        llmgw_ring_destroy(ring);
    }

    fleet_done(&fleet);
}


/* A slice of budget b does no more than some b points' work in any step. */
static void
small_budgets_need_many_slices(void **state)
{
    size_t         slices;
    fleet_t        fleet;
    llmgw_ring_t  *ring;

    fleet = fleet_make("r%d", 100);
    ring = llmgw_ring_create(fleet.nodes, fleet.n, VNODES, NULL);
    assert_non_null(ring);

    assert_int_equal(llmgw_ring_build(ring, 0), 0);

    for (slices = 1; !llmgw_ring_build(ring, 10); slices++) { /* void */ }

    assert_in_range(slices, 15000 / 50, 15000);

    llmgw_ring_destroy(ring);
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

    llmgw_ring_destroy(ring);
    fleet_done(&fleet);
}


/* Shares by the naive points, in doubles; the sum is the whole circle. */
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
    llmgw_ring_destroy(ring);
    fleet_done(&fleet);
}


static void
order_of_members_does_not_matter(void **state)
{
    size_t              i, n;
    fleet_t             fleet;
    llmgw_ring_t       *a, *b;
    llmgw_ring_node_t  *turned;

    n = 50;
    fleet = fleet_make("replica-%d", n);
    fleet.nodes[3].weight = 3;

    turned = calloc(n, sizeof(llmgw_ring_node_t));
    assert_non_null(turned);

    for (i = 0; i < n; i++) {
        turned[i] = fleet.nodes[(i * 7 + 11) % n];
    }

    a = whole_ring(fleet.nodes, n, VNODES, 1000);
    b = whole_ring(turned, n, VNODES, 17);

    assert_int_equal(llmgw_ring_npoints(a), llmgw_ring_npoints(b));

    for (i = 0; i < llmgw_ring_npoints(a); i++) {
        assert_ptr_equal(fleet.nodes[llmgw_ring_node(a, i)].id,
                         turned[llmgw_ring_node(b, i)].id);
    }

    llmgw_ring_destroy(a);
    llmgw_ring_destroy(b);
    free(turned);
    fleet_done(&fleet);
}


/*
 * Two ids with the same point: the second was made for it, from the text of
 * the first, by setting XXH3's first word to what its multiplication takes
 * for zero.
 */
static void
equal_points_are_ordered_by_id(void **state)
{
    int                k;
    uint64_t           hash;
    llmgw_ring_t      *ring;
    llmgw_ring_node_t  nodes[3];

    static const llmgw_ring_node_t  twins[] = {
        { "ijgqgapfsqexld", 14, 1 },
        { "\271\071\102\352\173\163\202\147\330\005\317\331\324\115", 14, 1 },
        { "other", 5, 1 }
    };

    hash = XXH3_64bits("ijgqgapfsqexld#0", 16);

    for (k = 0; k < 3; k++) {
        nodes[0] = twins[k];
        nodes[1] = twins[(k + 1) % 3];
        nodes[2] = twins[(k + 2) % 3];

        ring = whole_ring(nodes, 3, 1, 1);
        assert_is_naive(ring, nodes, 3, 1);

        assert_string_equal(nodes[owner(ring, hash)].id, "ijgqgapfsqexld");

        llmgw_ring_destroy(ring);
    }
}


/* --- edges */

static void
empty_ring_is_whole_after_one_build(void **state)
{
    llmgw_ring_t  *ring;

    ring = whole_ring(NULL, 0, VNODES, 1000);

    assert_int_equal(llmgw_ring_npoints(ring), 0);
    assert_int_equal(llmgw_ring_nnodes(ring), 0);
    assert_int_equal(llmgw_ring_share_ppm(ring, 0), 0);

    llmgw_ring_destroy(ring);
    llmgw_ring_destroy(NULL);
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

        llmgw_ring_destroy(ring);
    }

    fleet_done(&fleet);
}


static void
ids_need_not_outlive_create_and_may_be_long(void **state)
{
    char               id[300];
    uint64_t           hash;
    llmgw_ring_t      *ring;
    llmgw_ring_node_t  node = { id, sizeof(id), 1 };

    memset(id, 'x', sizeof(id));

    ring = llmgw_ring_create(&node, 1, 2, NULL);
    assert_non_null(ring);

    memset(id, 'y', sizeof(id));

    while (!llmgw_ring_build(ring, 1)) { /* void */ }

    node.id_len = 0;
    llmgw_ring_destroy(ring);

    ring = whole_ring(&node, 1, 1, 1);
    hash = XXH3_64bits("#0", 2);
    assert_int_equal(llmgw_ring_find(ring, hash), 0);
    llmgw_ring_destroy(ring);
}


static void
more_nodes_than_the_limit_are_refused(void **state)
{
    fleet_t        fleet;
    llmgw_ring_t  *ring;

    fleet = fleet_make("%d", LLMGW_RING_MAX_NODES + 1);

    ring = llmgw_ring_create(fleet.nodes, LLMGW_RING_MAX_NODES + 1, 1, NULL);
    assert_null(ring);

    ring = whole_ring(fleet.nodes, LLMGW_RING_MAX_NODES, 1, 100000);
    assert_int_equal(llmgw_ring_npoints(ring), LLMGW_RING_MAX_NODES);
    assert_is_naive(ring, fleet.nodes, LLMGW_RING_MAX_NODES, 1);

    llmgw_ring_destroy(ring);
    fleet_done(&fleet);
}


static size_t
npoints_of(const fleet_t *fleet, uint32_t vnodes)
{
    size_t         n;
    llmgw_ring_t  *ring;

    ring = llmgw_ring_create(fleet->nodes, fleet->n, vnodes, NULL);
    assert_non_null(ring);

    n = llmgw_ring_npoints(ring);
    llmgw_ring_destroy(ring);

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


static void
any_allocation_may_fail(void **state)
{
    int                  i;
    fleet_t              fleet;
    scarce_t             scarce;
    llmgw_ring_t        *ring;
    llmgw_ring_memory_t  memory = { scarce_alloc, scarce_free, &scarce };

    fleet = fleet_make("r%d", 3);
    scarce.standing = 0;

    for (i = 0; /* void */; i++) {
        scarce.left = i;

        ring = llmgw_ring_create(fleet.nodes, 3, VNODES, &memory);

        if (ring != NULL) {
            break;
        }

        assert_int_equal(scarce.standing, 0);
    }

    assert_in_range(i, 3, 10);

    /* half built, it goes as well */
    assert_int_equal(llmgw_ring_build(ring, 10), 0);
    llmgw_ring_destroy(ring);

    assert_int_equal(scarce.standing, 0);
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
        cmocka_unit_test(order_of_members_does_not_matter),
        cmocka_unit_test(equal_points_are_ordered_by_id),
        cmocka_unit_test(empty_ring_is_whole_after_one_build),
        cmocka_unit_test(one_node_owns_the_circle),
        cmocka_unit_test(ids_need_not_outlive_create_and_may_be_long),
        cmocka_unit_test(more_nodes_than_the_limit_are_refused),
        cmocka_unit_test(weights_over_the_limit_are_scaled_down_alike),
        cmocka_unit_test(any_allocation_may_fail)
    };

    return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
