
/*
 * The lookup in a ring whose points are made by hand, compared with binary
 * search: hashes of real members never make buckets as long, as empty and as
 * uneven as those in which the lookup's guess must be right.
 */

#include "t/unit/core/ring/ring_fleet.h"
#include "core/ring/ring_inner.h"


#define BUCKET_BITS  6
#define NBUCKETS     64
#define POINTS_MAX   (NBUCKETS * 300)
#define SLACK        4      /* what a ring has after its points */

typedef enum {
    UNIFORM = 0,
    LOW,                    /* in the first thousandth of the bucket */
    HIGH,
    TWO_ENDS,
    ONE_HASH,
    LONE_FIRST,             /* and all others high */
    NSHAPES
} shape_t;

typedef struct {
    llmgw_ring_t   ring;
    size_t         n;
    uint64_t       hashes[POINTS_MAX];
    uint64_t      *points;
    uint32_t       index[NBUCKETS + 1];
} made_t;


/* The hash of point k of that bucket. */
static uint64_t
hash_of_shape(shape_t shape, size_t bucket, size_t k, uint64_t *seed)
{
    uint64_t  base, width, low, high;

    width = (uint64_t) 1 << (64 - BUCKET_BITS);
    base = bucket * width;

    low = base + next_random(seed) % (width / 1000);
    high = base + width - 1 - next_random(seed) % (width / 1000);

    switch (shape) {

    case LOW:
        return low;

    case HIGH:
        return high;

    case TWO_ENDS:
        return k % 2 ? low : high;

    case ONE_HASH:
        return base + width / 3;

    case LONE_FIRST:
        return k == 0 ? base : high;

    default:
        return base + next_random(seed) % width;
    }
}


static int
compare_hashes(const void *a, const void *b)
{
    const uint64_t  *x = a, *y = b;

    return *x < *y ? -1 : *x > *y;
}


/* Any bucket may have any shape, and any number of points up to most. */
static void
made_init(made_t *made, size_t most, uint64_t *seed)
{
    size_t   i, k, n;
    shape_t  shape;

    made->n = 0;

    for (i = 0; i < NBUCKETS; i++) {
        made->index[i] = (uint32_t) made->n;
        shape = (shape_t) (next_random(seed) % NSHAPES);
        n = next_random(seed) % (most + 1);

        for (k = 0; k < n; k++) {
            made->hashes[made->n++] = hash_of_shape(shape, i, k, seed)
                                      & ~LLMGW_RING_NODE_MASK;
        }
    }

    made->index[NBUCKETS] = (uint32_t) made->n;
    qsort(made->hashes, made->n, sizeof(uint64_t), compare_hashes);

    made->points = calloc(made->n + SLACK, sizeof(uint64_t));
    assert_non_null(made->points);

    for (i = 0; i < made->n; i++) {
        made->points[i] = made->hashes[i] | i;
    }

    memset(&made->ring, 0, sizeof(llmgw_ring_t));

    made->ring.points = made->points;
    made->ring.index = made->index;
    made->ring.npoints = made->n;
    made->ring.nbuckets = NBUCKETS;
    made->ring.nnodes = LLMGW_RING_NODE_MASK + 1;
    made->ring.bucket_shift = 64 - BUCKET_BITS;
}


static void
assert_finds(const made_t *made, uint64_t hash)
{
    size_t  low, high, middle;

    low = 0;
    high = made->n;

    while (low < high) {
        middle = (low + high) / 2;

        if (made->hashes[middle] < (hash & ~LLMGW_RING_NODE_MASK)) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    assert_int_equal(llmgw_ring_find(&made->ring, hash),
                     low == made->n ? 0 : low);
}


static void
assert_finds_all(const made_t *made, uint64_t *seed)
{
    size_t    i;
    uint64_t  edge;

    for (i = 0; i < made->n; i++) {
        assert_finds(made, made->hashes[i] - 1);
        assert_finds(made, made->hashes[i]);
        assert_finds(made, made->hashes[i] + LLMGW_RING_NODE_MASK);
        assert_finds(made, made->hashes[i] + LLMGW_RING_NODE_MASK + 1);
    }

    for (i = 0; i < NBUCKETS; i++) {
        edge = (uint64_t) i << (64 - BUCKET_BITS);

        assert_finds(made, edge - 1);
        assert_finds(made, edge);
        assert_finds(made, edge + next_random(seed) % (UINT64_MAX / 64));
    }
}


static void
key_is_found_in_buckets_of_any_shape(void **state)
{
    int       round;
    size_t    most;
    made_t   *made;
    uint64_t  seed;

    static const size_t  mosts[] = { 1, 4, 11, 30, 300 };

    seed = 12;
    made = malloc(sizeof(made_t));
    assert_non_null(made);

    for (most = 0; most < sizeof(mosts) / sizeof(mosts[0]); most++) {
        for (round = 0; round < 20; round++) {
            made_init(made, mosts[most], &seed);

            if (made->n != 0) {
                assert_finds_all(made, &seed);
            }

            free(made->points);
        }
    }

    free(made);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        cmocka_unit_test(key_is_found_in_buckets_of_any_shape)
    };

    return cmocka_run_group_tests_name("ring find", tests, NULL, NULL);
}
