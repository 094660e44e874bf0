
/*
 * The hash ring: where its parts lie, and lookup.  ring_inner.h has the format
 * of a point, build.c the construction.
 *
 * A lookup is one word of the index, and then one or two neighbouring cache
 * lines of points.  From some hundred nodes on, caches determine its time.  The
 * points of 10000 nodes are 12 MB, and a lookup waits for them; if it is to
 * wait only once, the index must be so small that it stays in the second-level
 * cache.  Hence long buckets there, in which a guess gives the place to look
 * at, as hashes are uniform (interpolation search; Peterson, 1957).
 */

#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/ring/ring.h"
#include "core/ring/ring_inner.h"


/* A bucket has between half of this number of points and this number. */
#define BUCKET_POINTS  2

/*
 * From this many points on, a bucket has 16 times as many.  At 10000 nodes a
 * lookup is 249 ns with short buckets and 4 MB of index, 164 with 8 times as
 * many points, 138 with 16 times and 256 kB, hardly less with 32.  The guess
 * costs 6 ns where the first-level cache holds all, 1.5 at 500 nodes, and pays
 * from 700 on.
 */
#define MANY_POINTS       100000
#define LONG_BUCKET_BITS  4

/*
 * A lookup counts, without a branch, which of the bucket's first points are
 * below the key; a loop that ends at the right one is mispredicted half of the
 * time: 6 instead of 11 ns at 10 nodes, 19 instead of 22 at 1000.  It may read
 * this many words beyond the last point.
 */
#define PEEKED_POINTS  4

/*
 * And this many around the guess in a longer bucket: in a bucket of n points,
 * the right one is on average at most half of the square root of n away: 2.4 of
 * 23.
 */
#define GUESSED_POINTS  10


/*
 * Enough bits to distinguish n things, at least one: a shift by 64 is
 * undefined.
 */
static unsigned
bits_for(size_t n)
{
    unsigned  bits;

    for (bits = 1; ((size_t) 1 << bits) < n; bits++) { /* void */ }

    return bits;
}


/*
 * Weights are halved until all points fit: exact in integers, the same for any
 * order of nodes, and never coarser than half of the limit.
 */
static size_t
node_points(const llmgw_ring_node_t *node, uint32_t vnodes, unsigned shift)
{
    uint64_t  n;

    n = ((uint64_t) vnodes * node->weight) >> shift;

    return n == 0 ? 1 : n;
}


static size_t
all_points(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    unsigned *shift)
{
    size_t  i, sum;

    for (*shift = 0; /* void */; (*shift)++) {
        sum = 0;

        for (i = 0; i < n && sum <= LLMGW_RING_MAX_POINTS; i++) {
            sum += node_points(&nodes[i], vnodes, *shift);
        }

        if (sum <= LLMGW_RING_MAX_POINTS) {
            return sum;
        }
    }
}


static int
is_within_limits(const llmgw_ring_node_t *nodes, size_t n)
{
    size_t  i;

    for (i = 0; i < n && i < LLMGW_RING_MAX_NODES; i++) {
        if (nodes[i].id_len > LLMGW_RING_MAX_ID) {
            return 0;
        }
    }

    return n <= LLMGW_RING_MAX_NODES;
}


static unsigned
bucket_bits(size_t npoints)
{
    unsigned  bits;

    bits = bits_for((npoints + BUCKET_POINTS - 1) / BUCKET_POINTS);

    return npoints > MANY_POINTS ? bits - LONG_BUCKET_BITS : bits;
}


llmgw_ring_bytes_t
llmgw_ring_bytes(const llmgw_ring_t *old, const llmgw_ring_node_t *nodes,
    size_t n, uint32_t vnodes)
{
    size_t              npoints, nbuckets;
    unsigned            shift;
    llmgw_ring_bytes_t  bytes = { 0, 0 };

    if (!is_within_limits(nodes, n)) {
        return bytes;
    }

    npoints = all_points(nodes, n, vnodes, &shift);
    nbuckets = (size_t) 1 << bucket_bits(npoints);

    bytes.ring = sizeof(llmgw_ring_t)
                 + (npoints + PEEKED_POINTS + n) * sizeof(uint64_t)
                 + (n + nbuckets + 1) * sizeof(uint32_t);
    bytes.builder = llmgw_ring_builder_bytes(old, n, npoints);

    return bytes;
}


llmgw_ring_t *
llmgw_ring_init(void *memory, void *builder, const llmgw_ring_t *old,
    const uint32_t *before, const llmgw_ring_node_t *nodes, size_t n,
    uint32_t vnodes)
{
    size_t         i;
    unsigned       bits, shift;
    llmgw_ring_t  *ring;

    ring = memory;
    ring->builder = builder;

    ring->nnodes = n;
    ring->npoints = all_points(nodes, n, vnodes, &shift);
    bits = bucket_bits(ring->npoints);
    ring->nbuckets = (size_t) 1 << bits;
    ring->bucket_shift = (uint8_t) (64 - bits);

    ring->points = (uint64_t *) (ring + 1);
    ring->shares = ring->points + ring->npoints + PEEKED_POINTS;
    ring->counts = (uint32_t *) (ring->shares + n);
    ring->index = ring->counts + n;

    memset(&ring->points[ring->npoints], 0, PEEKED_POINTS * sizeof(uint64_t));
    memset(ring->shares, 0, n * sizeof(uint64_t));

    for (i = 0; i < n; i++) {
        ring->counts[i] = (uint32_t) node_points(&nodes[i], vnodes, shift);
    }

    llmgw_ring_builder_init(builder, ring, old, before, nodes);

    return ring;
}


uint64_t
llmgw_ring_hash(const void *key, size_t len)
{
    return XXH3_64bits(key, len);
}


size_t
llmgw_ring_npoints(const llmgw_ring_t *ring)
{
    return ring->npoints;
}


size_t
llmgw_ring_nnodes(const llmgw_ring_t *ring)
{
    return ring->nnodes;
}


/* How many of a bucket's points are below the key. */
static inline size_t
count_short(const uint64_t *points, size_t n, uint64_t key)
{
    size_t  i, below;

    below = 0;

    for (i = 0; i < PEEKED_POINTS; i++) {
        below += (size_t) (i < n) & (size_t) (points[i] < key);
    }

    if (below == PEEKED_POINTS) {
        while (below < n && points[below] < key) {
            below++;
        }
    }

    return below;
}


/*
 * The same for a bucket with more than GUESSED_POINTS points; `fraction` is how
 * far into the bucket the key lies, in 2^-32 buckets.  If the window misses,
 * the answer lies beyond one of its ends.
 */
static inline size_t
count_long(const uint64_t *points, size_t n, uint64_t key, uint64_t fraction)
{
    size_t  i, from, last, below;

    from = (size_t) (fraction * n >> 32);
    from = from < GUESSED_POINTS / 2 ? 0 : from - GUESSED_POINTS / 2;
    last = n - GUESSED_POINTS;
    from = from < last ? from : last;

    below = from;

    for (i = 0; i < GUESSED_POINTS; i++) {
        below += (size_t) (points[from + i] < key);
    }

    while (below < n && points[below] < key) {
        below++;
    }

    while (below != 0 && points[below - 1] >= key) {
        below--;
    }

    return below;
}


/* A word with node 0 is the lowest one at the key's place. */
size_t
llmgw_ring_find(const llmgw_ring_t *ring, uint64_t hash)
{
    size_t           n, position;
    uint64_t         key, fraction;
    const uint32_t  *bucket;
    const uint64_t  *points;

    bucket = &ring->index[hash >> ring->bucket_shift];
    key = hash & ~LLMGW_RING_NODE_MASK;

    points = &ring->points[bucket[0]];
    n = bucket[1] - bucket[0];

    if (n <= GUESSED_POINTS) {
        position = bucket[0] + count_short(points, n, key);

    } else {
        fraction = hash << (64 - ring->bucket_shift) >> 32;
        position = bucket[0] + count_long(points, n, key, fraction);
    }

    return position == ring->npoints ? 0 : position;
}


uint32_t
llmgw_ring_node(const llmgw_ring_t *ring, size_t position)
{
    return (uint32_t) (ring->points[position] & LLMGW_RING_NODE_MASK);
}


uint32_t
llmgw_ring_share_ppm(const llmgw_ring_t *ring, uint32_t node)
{
    const uint64_t  half = (uint64_t) 1 << 43;

    if (node >= ring->nnodes) {
        return 0;
    }

    return (uint32_t) ((ring->shares[node] * 1000000 + half) >> 44);
}
