
/*
 * Which node owns which keys: shares are even, and a change of membership
 * moves only the keys that it must.
 */

#include "t/unit/core/ring/ring_fleet.h"


static void
leaving_moves_only_the_keys_of_the_one_that_left(void **state)
{
    int            i;
    size_t         n, lost;
    fleet_t        fleet;
    uint32_t       was, is;
    uint64_t       seed, hash;
    llmgw_ring_t  *before, *after;

    n = 20;
    lost = 7;
    seed = 2;
    fleet = fleet_make("replica-%d", n);
    before = whole_ring(fleet.nodes, n, VNODES, 1000);

    memmove(&fleet.nodes[lost], &fleet.nodes[lost + 1],
            (n - lost - 1) * sizeof(llmgw_ring_node_t));
    after = whole_ring(fleet.nodes, n - 1, VNODES, 1000);

    for (i = 0; i < 100000; i++) {
        hash = next_random(&seed);
        was = owner(before, hash);
        is = owner(after, hash);

        if (was != lost) {
            assert_int_equal(is, was > lost ? was - 1 : was);
        }
    }

    free(before);
    free(after);
    fleet_done(&fleet);
}


/* Node `n` + 1 of the fleet joins; returns the keys that moved, all to it. */
static int
keys_moved_by_a_join(const fleet_t *fleet, size_t n, int keys)
{
    int            i, moved;
    uint64_t       seed, hash;
    llmgw_ring_t  *before, *after;

    seed = 3;
    moved = 0;
    before = whole_ring(fleet->nodes, n - 1, VNODES, SIZE_MAX);
    after = whole_ring(fleet->nodes, n, VNODES, SIZE_MAX);

    for (i = 0; i < keys; i++) {
        hash = next_random(&seed);

        if (owner(before, hash) != owner(after, hash)) {
            assert_int_equal(owner(after, hash), n - 1);
            moved++;
        }
    }

    free(before);
    free(after);

    return moved;
}


static void
joining_moves_one_part_in_n(void **state)
{
    int                  expected, moved;
    size_t               i;
    fleet_t              fleet;
    static const size_t  sizes[] = { 10, 100, 1000 };

    for (i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        fleet = fleet_make("replica-%d", sizes[i]);
        expected = 1000000 / (int) sizes[i];

        moved = keys_moved_by_a_join(&fleet, sizes[i], 1000000);

        assert_in_range(moved, expected * 8 / 10, expected * 12 / 10);

        fleet_done(&fleet);
    }
}


static void
count_prompts(const llmgw_ring_t *ring, int n, int counts[3])
{
    int   i, len;
    char  prompt[64];

    memset(counts, 0, 3 * sizeof(int));

    for (i = 0; i < n; i++) {
        len = snprintf(prompt, sizeof(prompt), "prompt %d", i);
        counts[owner(ring, llmgw_ring_hash(prompt, (size_t) len))]++;
    }
}


/*
 * With 30 keys, chance alone leaves some node with fewer than 5 for one set of
 * ids and prompts in thirty; the most obvious sets do well.
 */
static void
three_replicas_share_prompts_evenly(void **state)
{
    int                 k, counts[3];
    size_t              i;
    fleet_t             fleet;
    llmgw_ring_t       *ring;
    static const char  *formats[] = { "r%d", "replica-%d" };

    for (i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        fleet = fleet_make(formats[i], 3);
        ring = whole_ring(fleet.nodes, 3, VNODES, 1000);

        count_prompts(ring, 3000, counts);

        for (k = 0; k < 3; k++) {
            assert_in_range(counts[k], 840, 1170);
        }

        count_prompts(ring, 30, counts);

        for (k = 0; k < 3; k++) {
            assert_in_range(counts[k], 5, 20);
        }

        free(ring);
        fleet_done(&fleet);
    }
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(leaving_moves_only_the_keys_of_the_one_that_left),
        cmocka_unit_test(joining_moves_one_part_in_n),
        cmocka_unit_test(three_replicas_share_prompts_evenly)
    };

    return cmocka_run_group_tests_name("ring keys", tests, NULL, NULL);
}
