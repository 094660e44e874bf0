
/*
 * A ring made from an older one equals the ring of the definition, whatever
 * has changed between the two.
 */

#include "t/unit/core/ring/ring_fleet.h"


#define NODES_MAX  70

/* Members that come and go; before[i] is where nodes[i] stood last. */
typedef struct {
    fleet_t             all;            /* some of them are members */
    size_t              n;
    uint64_t            seed;
    llmgw_ring_node_t   nodes[NODES_MAX];
    uint32_t            before[NODES_MAX];
} crowd_t;


static void
crowd_init(crowd_t *crowd, uint64_t seed)
{
    memset(crowd, 0, sizeof(crowd_t));
    crowd->seed = seed;
    crowd->all = fleet_make("replica-%d", NODES_MAX);
}


static size_t
random_below(crowd_t *crowd, size_t n)
{
    return (size_t) (next_random(&crowd->seed) % n);
}


/* Inserts at index i; the later ones move up. */
static void
crowd_join(crowd_t *crowd, size_t i, const llmgw_ring_node_t *node)
{
    size_t  k;

    for (k = crowd->n++; k > i; k--) {
        crowd->nodes[k] = crowd->nodes[k - 1];
        crowd->before[k] = crowd->before[k - 1];
    }

    crowd->nodes[i] = *node;
    crowd->before[i] = LLMGW_RING_NEW;
}


static void
crowd_leave(crowd_t *crowd, size_t i)
{
    crowd->n--;

    for ( /* void */ ; i < crowd->n; i++) {
        crowd->nodes[i] = crowd->nodes[i + 1];
        crowd->before[i] = crowd->before[i + 1];
    }
}


static int
crowd_has(const crowd_t *crowd, const llmgw_ring_node_t *node)
{
    size_t  i;

    for (i = 0; i < crowd->n; i++) {
        if (crowd->nodes[i].id == node->id) {
            return 1;
        }
    }

    return 0;
}


static void
crowd_change(crowd_t *crowd)
{
    size_t                    i;
    const llmgw_ring_node_t  *node;

    i = random_below(crowd, crowd->n + 1);
    node = &crowd->all.nodes[random_below(crowd, NODES_MAX)];

    switch (random_below(crowd, 4)) {

    case 0:
    case 1:
        if (!crowd_has(crowd, node)) {
            crowd_join(crowd, i, node);
        }
        break;

    case 2:
        if (i < crowd->n) {
            crowd_leave(crowd, i);
        }
        break;

    default:
        if (i < crowd->n) {
            crowd->nodes[i].weight = 1 + (uint32_t) random_below(crowd, 4);
        }
        break;
    }
}


/* Replaces *ring by one that is made from it, and frees the older one. */
static void
crowd_ring(crowd_t *crowd, llmgw_ring_t **ring, uint32_t vnodes)
{
    size_t         i;
    llmgw_ring_t  *old;

    old = *ring;
    *ring = begin_ring(old, crowd->before, crowd->nodes, crowd->n,
                              vnodes);

    (void) make_whole(*ring, 1 + random_below(crowd, random_below(crowd, 2) ? 10
                                                                     : 5000));
    assert_is_naive(*ring, crowd->nodes, crowd->n, vnodes);

    for (i = 0; i < crowd->n; i++) {
        crowd->before[i] = (uint32_t) i;
    }

    free(old);
}


static void
any_changes_give_the_plain_ring(void **state)
{
    int            round;
    size_t         i, changes;
    crowd_t        crowd;
    llmgw_ring_t  *ring;

    static const uint32_t  choices[] = { 1, 7, VNODES };

    for (i = 0; i < 3; i++) {
        crowd_init(&crowd, 4 + i);
        ring = NULL;

        for (round = 0; round < 100; round++) {
            changes = random_below(&crowd, 6);

            while (changes-- && crowd.n < NODES_MAX) {
                crowd_change(&crowd);
            }

            crowd_ring(&crowd, &ring, choices[i]);
        }

        while (crowd.n != 0) {
            crowd_leave(&crowd, random_below(&crowd, crowd.n));
        }

        crowd_ring(&crowd, &ring, choices[i]);
        crowd_join(&crowd, 0, &crowd.all.nodes[0]);
        crowd_ring(&crowd, &ring, choices[i]);

        free(ring);
        fleet_done(&crowd.all);
    }
}


/* What stays is copied, not hashed again: its id is not even read. */
static void
points_that_stay_are_copied(void **state)
{
    uint32_t            i, before[4];
    fleet_t             fleet;
    llmgw_ring_t       *old, *ring;
    llmgw_ring_node_t   other[4];

    fleet = fleet_make("r%d", 4);
    old = whole_ring(fleet.nodes, 4, VNODES, SIZE_MAX);

    memcpy(other, fleet.nodes, sizeof(other));
    other[2].id = "xx";

    for (i = 0; i < 4; i++) {
        before[i] = i;
    }

    ring = begin_ring(old, before, other, 4, VNODES);
    (void) make_whole(ring, 100);
    assert_is_naive(ring, fleet.nodes, 4, VNODES);

    free(old);
    free(ring);
    fleet_done(&fleet);
}


/* Two nodes with the same `before`: only one of them can be the old one. */
static void
one_old_node_is_taken_once(void **state)
{
    fleet_t        fleet;
    llmgw_ring_t  *old, *ring;

    static const uint32_t  before[] = { 0, 0, 9 };

    fleet = fleet_make("r%d", 3);
    old = whole_ring(fleet.nodes, 1, VNODES, SIZE_MAX);

    ring = begin_ring(old, before, fleet.nodes, 3, VNODES);
    (void) make_whole(ring, 100);
    assert_is_naive(ring, fleet.nodes, 3, VNODES);

    free(old);
    free(ring);
    fleet_done(&fleet);
}


/* From 100000 points on a lookup wants longer buckets, and fewer. */
static void
buckets_grow_longer_and_shorter_again(void **state)
{
    size_t         i, n;
    crowd_t        crowd;
    llmgw_ring_t  *ring;

    static const size_t  sizes[] = { 61, 63, 64, 62 };

    crowd_init(&crowd, 11);
    ring = NULL;

    for (i = 0; i < 4; i++) {
        while (crowd.n > sizes[i]) {
            crowd_leave(&crowd, crowd.n - 1);
        }

        for (n = crowd.n; n < sizes[i]; n++) {
            crowd_join(&crowd, n, &crowd.all.nodes[n]);
        }

        crowd_ring(&crowd, &ring, 1600);
    }

    free(ring);
    fleet_done(&crowd.all);
}


/*
 * Two ids with the same point: the second was made from the text of the first,
 * by setting XXH3's first word to what its multiplication takes for zero.  The
 * lower number owns the point, whichever was there first.
 */
static void
points_at_one_place_are_ordered_by_number(void **state)
{
    size_t         i, first;
    crowd_t        crowd;
    uint64_t       hash;
    llmgw_ring_t  *ring;

    static const llmgw_ring_node_t  twins[] = {
        { "ijgqgapfsqexld", 14, 1 },
        { "\271\071\102\352\173\163\202\147\330\005\317\331\324\115", 14, 1 }
    };

    hash = XXH3_64bits("ijgqgapfsqexld#0", 16);

    for (i = 0; i < 4; i++) {
        crowd_init(&crowd, 8);
        ring = NULL;
        first = i % 2;

        crowd_join(&crowd, 0, &crowd.all.nodes[0]);
        crowd_join(&crowd, 1, &twins[first]);
        crowd_ring(&crowd, &ring, 1);
        assert_int_equal(owner(ring, hash), 1);

        crowd_join(&crowd, i < 2 ? 1 : 2, &twins[1 - first]);
        crowd_ring(&crowd, &ring, 1);
        assert_int_equal(owner(ring, hash), 1);

        crowd_leave(&crowd, 1);
        crowd_join(&crowd, 0, &crowd.all.nodes[1]);
        crowd_ring(&crowd, &ring, 1);
        assert_int_equal(owner(ring, hash), 2);

        free(ring);
        fleet_done(&crowd.all);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(any_changes_give_the_plain_ring),
        cmocka_unit_test(points_that_stay_are_copied),
        cmocka_unit_test(one_old_node_is_taken_once),
        cmocka_unit_test(buckets_grow_longer_and_shorter_again),
        cmocka_unit_test(points_at_one_place_are_ordered_by_number)
    };

    return cmocka_run_group_tests_name("ring change", tests, NULL, NULL);
}
