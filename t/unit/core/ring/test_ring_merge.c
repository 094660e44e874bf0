
/*
 * A ring made out of an older one is the ring that a full build makes, word
 * for word, whatever has happened between the two.
 */

#include "t/unit/core/ring/ring_fleet.h"
#include "core/ring/ring_inner.h"


#define NODES_MAX  70       /* past a power of two, both ways */

/* Members that come and go; before[i] is where nodes[i] stood last. */
typedef struct {
    fleet_t             all;            /* of whom some are in */
    size_t              n;
    uint64_t            seed;
    llmgw_ring_node_t   nodes[NODES_MAX];
    uint32_t            before[NODES_MAX];
} crowd_t;


static size_t
random_below(crowd_t *crowd, size_t n)
{
    return (size_t) (next_random(&crowd->seed) % n);
}


static void
crowd_join(crowd_t *crowd)
{
    size_t                    i;
    const llmgw_ring_node_t  *node;

    node = &crowd->all.nodes[random_below(crowd, NODES_MAX)];

    for (i = 0; i < crowd->n; i++) {
        if (crowd->nodes[i].id == node->id) {
            return;
        }
    }

    crowd->nodes[crowd->n] = *node;
    crowd->before[crowd->n++] = LLMGW_RING_NEW;
}


/* The others move up, or the last one takes the place. */
static void
crowd_leave(crowd_t *crowd)
{
    size_t  i, k;

    if (crowd->n == 0) {
        return;
    }

    i = random_below(crowd, crowd->n);
    crowd->n--;

    if (random_below(crowd, 2)) {
        crowd->nodes[i] = crowd->nodes[crowd->n];
        crowd->before[i] = crowd->before[crowd->n];
        return;
    }

    for (k = i; k < crowd->n; k++) {
        crowd->nodes[k] = crowd->nodes[k + 1];
        crowd->before[k] = crowd->before[k + 1];
    }
}


static void
crowd_swap(crowd_t *crowd)
{
    size_t             i, k;
    uint32_t           before;
    llmgw_ring_node_t  node;

    if (crowd->n == 0) {
        return;
    }

    i = random_below(crowd, crowd->n);
    k = random_below(crowd, crowd->n);

    node = crowd->nodes[i];
    crowd->nodes[i] = crowd->nodes[k];
    crowd->nodes[k] = node;

    before = crowd->before[i];
    crowd->before[i] = crowd->before[k];
    crowd->before[k] = before;
}


static void
crowd_change(crowd_t *crowd)
{
    switch (random_below(crowd, 8)) {

    case 0:
    case 1:
    case 2:
        crowd_join(crowd);
        break;

    case 3:
    case 4:
        crowd_leave(crowd);
        break;

    case 5:
        if (crowd->n != 0) {
            crowd->nodes[random_below(crowd, crowd->n)].weight
                = 1 + (uint32_t) random_below(crowd, 4);
        }
        break;

    default:
        crowd_swap(crowd);
        break;
    }
}


static void
assert_same_rings(const llmgw_ring_t *a, const llmgw_ring_t *b)
{
    assert_int_equal(a->npoints, b->npoints);
    assert_int_equal(a->nnodes, b->nnodes);
    assert_int_equal(a->nbuckets, b->nbuckets);
    assert_int_equal(a->node_bits, b->node_bits);
    assert_int_equal(a->bucket_shift, b->bucket_shift);

    assert_memory_equal(a->points, b->points, a->npoints * sizeof(uint64_t));
    assert_memory_equal(a->index, b->index,
                        (a->nbuckets + 1) * sizeof(uint32_t));
    assert_memory_equal(a->shares, b->shares, a->nnodes * sizeof(uint64_t));
    assert_memory_equal(a->counts, b->counts, a->nnodes * sizeof(uint32_t));
}


/* The crowd's ring, out of the one before; *merged counts true merges. */
static llmgw_ring_t *
crowd_ring(crowd_t *crowd, const llmgw_ring_t *old, uint32_t vnodes,
    size_t *merged)
{
    size_t         i, budget;
    llmgw_ring_t  *ring, *plain;

    budget = 1 + random_below(crowd, random_below(crowd, 2) ? 10 : 5000);

    ring = llmgw_ring_create_from(old, crowd->before, crowd->nodes, crowd->n,
                                  vnodes, NULL);
    assert_non_null(ring);
    assert_false(llmgw_ring_is_whole(ring));

    *merged += ring->builder->joined != NULL;

    while (!llmgw_ring_build(ring, budget)) { /* void */ }

    plain = whole_ring(crowd->nodes, crowd->n, vnodes, SIZE_MAX);
    assert_same_rings(ring, plain);
    llmgw_ring_destroy(plain);

    for (i = 0; i < crowd->n; i++) {
        crowd->before[i] = (uint32_t) i;
    }

    return ring;
}


/* Whether the next ring of the crowd is a merge: 1, or built in full: 0. */
static size_t
crowd_merges(crowd_t *crowd, const llmgw_ring_t *old)
{
    size_t  merged;

    merged = 0;
    llmgw_ring_destroy(crowd_ring(crowd, old, VNODES, &merged));

    return merged;
}


static void
crowd_init(crowd_t *crowd, uint64_t seed)
{
    memset(crowd, 0, sizeof(crowd_t));
    crowd->seed = seed;
    crowd->all = fleet_make("replica-%d", NODES_MAX);
}


static void
any_changes_give_the_ring_of_a_full_build(void **state)
{
    int            round;
    size_t         changes, merged, vnodes;
    crowd_t        crowd;
    llmgw_ring_t  *old, *ring;

    static const uint32_t  choices[] = { 1, 7, VNODES };

    merged = 0;

    for (vnodes = 0; vnodes < 3; vnodes++) {
        crowd_init(&crowd, 4 + vnodes);
        old = NULL;

        for (round = 0; round < 300; round++) {
            changes = random_below(&crowd, 4);

            while (changes-- && crowd.n < NODES_MAX) {
                crowd_change(&crowd);
            }

            ring = crowd_ring(&crowd, old, choices[vnodes], &merged);

            llmgw_ring_destroy(old);
            old = ring;
        }

        llmgw_ring_destroy(old);
        fleet_done(&crowd.all);
    }

    assert_true(merged > 600);
}


/* All leave, one after another, and the last leaves nothing. */
static void
ring_shrinks_to_none_and_grows_again(void **state)
{
    size_t         i, merged;
    crowd_t        crowd;
    llmgw_ring_t  *old, *ring;

    crowd_init(&crowd, 7);
    merged = 0;
    old = NULL;

    for (i = 0; i < 5; i++) {
        crowd_join(&crowd);
    }

    while (crowd.n != 0) {
        ring = crowd_ring(&crowd, old, VNODES, &merged);
        llmgw_ring_destroy(old);
        old = ring;
        crowd_leave(&crowd);
    }

    ring = crowd_ring(&crowd, old, VNODES, &merged);
    assert_int_equal(llmgw_ring_npoints(ring), 0);
    llmgw_ring_destroy(old);
    old = ring;

    crowd_join(&crowd);
    ring = crowd_ring(&crowd, old, VNODES, &merged);
    llmgw_ring_destroy(old);
    llmgw_ring_destroy(ring);

    assert_true(merged > 0);
    fleet_done(&crowd.all);
}


/*
 * Two ids that share a point (test_ring.c says how): whichever of them comes
 * into the ring of the other, and wherever it stands among the nodes.
 */
static void
equal_points_keep_their_order(void **state)
{
    int                 k;
    size_t              i, twin, merged;
    crowd_t             crowd;
    llmgw_ring_t       *old, *ring;

    static const llmgw_ring_node_t  twins[] = {
        { "ijgqgapfsqexld", 14, 1 },
        { "\271\071\102\352\173\163\202\147\330\005\317\331\324\115", 14, 1 }
    };

    for (k = 0; k < 4; k++) {
        crowd_init(&crowd, 8);
        merged = 0;
        twin = (size_t) k % 2;

        for (i = 0; i < 8; i++) {
            crowd.nodes[i] = crowd.all.nodes[i];
        }

        crowd.n = 9;
        crowd.nodes[8] = twins[twin];
        old = crowd_ring(&crowd, NULL, 1, &merged);

        /* the other one joins, before it or behind it */
        crowd.n = 10;
        crowd.nodes[9] = twins[1 - twin];
        crowd.before[9] = LLMGW_RING_NEW;

        if (k >= 2) {
            crowd.nodes[9] = crowd.nodes[0];
            crowd.before[9] = 0;
            crowd.nodes[0] = twins[1 - twin];
            crowd.before[0] = LLMGW_RING_NEW;
        }

        ring = crowd_ring(&crowd, old, 1, &merged);
        llmgw_ring_destroy(old);
        old = ring;

        /* then the first leaves, in the same step that brings another */
        crowd.nodes[8] = crowd.all.nodes[20];
        crowd.before[8] = LLMGW_RING_NEW;

        ring = crowd_ring(&crowd, old, 1, &merged);

        assert_int_equal(merged, 2);
        llmgw_ring_destroy(old);
        llmgw_ring_destroy(ring);
        fleet_done(&crowd.all);
    }
}


static void
much_that_is_new_is_built_in_full(void **state)
{
    size_t         i, merged;
    crowd_t        crowd;
    llmgw_ring_t  *old;

    crowd_init(&crowd, 9);
    merged = 0;

    while (crowd.n < 20) {
        crowd_join(&crowd);
    }

    old = crowd_ring(&crowd, NULL, VNODES, &merged);
    assert_int_equal(merged, 0);

    for (i = 0; i < 6; i++) {
        crowd.before[3 * i] = LLMGW_RING_NEW;
    }

    assert_int_equal(crowd_merges(&crowd, old), 0);

    for (i = 0; i < 5; i++) {
        crowd.before[3 * i] = LLMGW_RING_NEW;
    }

    assert_int_equal(crowd_merges(&crowd, old), 1);

    llmgw_ring_destroy(old);
    fleet_done(&crowd.all);
}


static void
little_that_is_left_is_built_in_full(void **state)
{
    size_t         i, merged;
    crowd_t        crowd;
    llmgw_ring_t  *old;

    crowd_init(&crowd, 10);
    crowd.n = 60;
    merged = 0;

    for (i = 0; i < crowd.n; i++) {
        crowd.nodes[i] = crowd.all.nodes[i];
    }

    old = crowd_ring(&crowd, NULL, VNODES, &merged);
    assert_int_equal(merged, 0);

    crowd.n = 9;
    assert_int_equal(crowd_merges(&crowd, old), 0);

    crowd.n = 10;
    assert_int_equal(crowd_merges(&crowd, old), 1);

    llmgw_ring_destroy(old);
    fleet_done(&crowd.all);
}


/* From some number of points on a lookup wants longer buckets, and fewer. */
static void
a_merge_may_lengthen_or_shorten_the_buckets(void **state)
{
    size_t         i, merged, nbuckets;
    crowd_t        crowd;
    llmgw_ring_t  *old, *ring;

    static const size_t    sizes[] = { 61, 63, 64, 62 };
    static const uint32_t  vnodes = 1600;   /* 100000 points lie between */

    crowd_init(&crowd, 11);
    merged = 0;
    old = NULL;
    nbuckets = 0;

    for (i = 0; i < NODES_MAX; i++) {
        crowd.nodes[i] = crowd.all.nodes[i];
    }

    for (i = 0; i < 4; i++) {
        crowd.n = sizes[i];
        crowd.before[61] = LLMGW_RING_NEW;
        crowd.before[62] = LLMGW_RING_NEW;
        crowd.before[63] = LLMGW_RING_NEW;

        ring = crowd_ring(&crowd, old, vnodes, &merged);
        llmgw_ring_destroy(old);
        old = ring;

        if (i == 0 || i == 3) {
            assert_true(nbuckets == 0 || ring->nbuckets == nbuckets);
            nbuckets = ring->nbuckets;

        } else {
            assert_true(ring->nbuckets < nbuckets);
        }
    }

    assert_int_equal(merged, 3);

    llmgw_ring_destroy(old);
    fleet_done(&crowd.all);
}


static void
small_budgets_need_many_slices_in_a_merge(void **state)
{
    size_t         slices;
    uint32_t       i, before[100];
    fleet_t        fleet;
    llmgw_ring_t  *old, *ring;

    fleet = fleet_make("replica-%d", 100);
    old = whole_ring(fleet.nodes, 99, VNODES, SIZE_MAX);

    for (i = 0; i < 99; i++) {
        before[i] = i;
    }

    before[99] = LLMGW_RING_NEW;
    ring = llmgw_ring_create_from(old, before, fleet.nodes, 100, VNODES, NULL);
    assert_non_null(ring);

    assert_int_equal(llmgw_ring_build(ring, 0), 0);

    for (slices = 1; !llmgw_ring_build(ring, 10); slices++) { /* void */ }

    assert_in_range(slices, 15000 / 8 / 10, 15000 / 8 / 2);

    llmgw_ring_destroy(old);
    llmgw_ring_destroy(ring);
    fleet_done(&fleet);
}


static void
any_allocation_of_a_merge_may_fail(void **state)
{
    int                  i;
    fleet_t              fleet;
    scarce_t             scarce;
    llmgw_ring_t        *old, *ring;
    llmgw_ring_memory_t  memory = { scarce_alloc, scarce_free, &scarce };

    static const uint32_t  before[] = { 0, 1, 2, 3, LLMGW_RING_NEW };

    fleet = fleet_make("r%d", 5);
    old = whole_ring(fleet.nodes, 4, VNODES, SIZE_MAX);
    scarce.standing = 0;

    for (i = 0; /* void */; i++) {
        scarce.left = i;

        ring = llmgw_ring_create_from(old, before, fleet.nodes, 5, VNODES,
                                      &memory);
        if (ring != NULL) {
            break;
        }

        assert_int_equal(scarce.standing, 0);
    }

    assert_in_range(i, 10, 16);

    /* half merged, it goes as well */
    assert_int_equal(llmgw_ring_build(ring, 10), 0);
    llmgw_ring_destroy(ring);

    assert_int_equal(scarce.standing, 0);
    llmgw_ring_destroy(old);
    fleet_done(&fleet);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(any_changes_give_the_ring_of_a_full_build),
        cmocka_unit_test(ring_shrinks_to_none_and_grows_again),
        cmocka_unit_test(equal_points_keep_their_order),
        cmocka_unit_test(much_that_is_new_is_built_in_full),
        cmocka_unit_test(little_that_is_left_is_built_in_full),
        cmocka_unit_test(a_merge_may_lengthen_or_shorten_the_buckets),
        cmocka_unit_test(small_budgets_need_many_slices_in_a_merge),
        cmocka_unit_test(any_allocation_of_a_merge_may_fail)
    };

    return cmocka_run_group_tests_name("ring_merge", tests, NULL, NULL);
}
