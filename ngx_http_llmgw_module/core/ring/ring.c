
/*
 * The hash ring: memory and lookup.  ring_impl.h says how a point is kept,
 * ring_build.c and ring_merge.c how the points get there.
 *
 * A lookup is one word of the index, and then one or two neighbouring cache
 * lines of points.  From some hundred nodes on the caches decide.  The points
 * of 10000 are 12 MB, and a lookup waits for them; if it is to wait only once,
 * the index must be so small that it stays in the second-level cache.  Hence
 * long buckets there, in which a guess says where to look, as hashes are
 * uniform (interpolation search; Peterson, 1957).
 */

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/ring/ring.h"
#include "core/ring/ring_inner.h"


/* Points per bin, see ring_build.c, are between half of this and this. */
#define BIN_POINTS  2

/*
 * Where there are so many points, a bucket is 16 bins.  At 10000 nodes a lookup
 * is 249 ns with buckets of one bin and 4 MB of index, 164 with 8, 138 with 16
 * and 256 kB, hardly less with 32.  The guess costs 6 ns where the first-level
 * cache holds all, 1.5 at 500 nodes, and pays from 700 on.
 */
#define MANY_POINTS       100000
#define LONG_BUCKET_BITS  4

/*
 * A lookup counts, without a branch, which of the bucket's first points are
 * below the key; a loop that ends at the right one is guessed wrong half of
 * the time: 6 instead of 11 ns at 10 nodes, 19 instead of 22 at 1000.  It may
 * read so many words behind the last point.
 */
#define PEEKED_POINTS  4

/*
 * And so many around the guess in a longer bucket: one of n points is half of
 * the root of n from where it is looked for, 2.4 of 23, or less.
 */
#define GUESSED_POINTS  10


static void *
ring_malloc(void *data, size_t size)
{
    return malloc(size);
}


static void
ring_free(void *data, void *p)
{
    free(p);
}


static const llmgw_ring_memory_t  ring_heap = { ring_malloc, ring_free, NULL };


/* Bits that tell n things apart. */
static unsigned
bits_for(size_t n)
{
    unsigned  bits;

    for (bits = 0; ((size_t) 1 << bits) < n; bits++) { /* void */ }

    return bits;
}


/*
 * There are at least as many bucket bits as a node's number has, see
 * ring_impl.h, and one, as a shift by 64 is not defined.
 */
static void
ring_divide(llmgw_ring_t *ring)
{
    unsigned  least, bins, buckets;

    least = ring->node_bits == 0 ? 1 : ring->node_bits;

    bins = bits_for((ring->npoints + BIN_POINTS - 1) / BIN_POINTS);
    bins = bins < least ? least : bins;

    buckets = bins;

    if (ring->npoints > MANY_POINTS) {
        buckets -= LONG_BUCKET_BITS;
        buckets = buckets < least ? least : buckets;
    }

    ring->nbuckets = (size_t) 1 << buckets;
    ring->bucket_shift = (uint8_t) (64 - buckets);

    ring->builder->nbins = (size_t) 1 << bins;
    ring->builder->bin_shift = (uint8_t) (64 - bins);
}


static void *
ring_alloc(llmgw_ring_t *ring, size_t n, size_t size)
{
    return ring->memory.alloc(ring->memory.data, n == 0 ? size : n * size);
}


static int
ring_alloc_arrays(llmgw_ring_t *ring)
{
    ring->points = ring_alloc(ring, ring->npoints + PEEKED_POINTS,
                              sizeof(uint64_t));
    if (ring->points == NULL) {
        return -1;
    }

    ring->index = ring_alloc(ring, ring->nbuckets + 1, sizeof(uint32_t));
    if (ring->index == NULL) {
        return -1;
    }

    ring->shares = ring_alloc(ring, (size_t) ring->nnodes + 1,
                              sizeof(uint64_t));
    if (ring->shares == NULL) {
        return -1;
    }

    memset(&ring->points[ring->npoints], 0, PEEKED_POINTS * sizeof(uint64_t));
    memset(ring->shares, 0, ((size_t) ring->nnodes + 1) * sizeof(uint64_t));

    ring->index[0] = 0;     /* the builder writes ends */

    return 0;
}


/* A merge where one is possible and pays. */
static int
ring_begin(llmgw_ring_t *ring, const llmgw_ring_t *old, const uint32_t *before,
    const llmgw_ring_node_t *nodes, uint32_t vnodes)
{
    int  rc, scaled;

    ring->builder = llmgw_ring_builder_create(ring, nodes, ring->nnodes,
                                              vnodes, &scaled);
    if (ring->builder == NULL) {
        return -1;
    }

    ring_divide(ring);

    rc = 1;

    if (old != NULL && !scaled) {
        rc = llmgw_ring_merge_init(ring, old, before, nodes, vnodes);
    }

    return rc == 1 ? llmgw_ring_build_init(ring) : rc;
}


llmgw_ring_t *
llmgw_ring_create(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    const llmgw_ring_memory_t *memory)
{
    return llmgw_ring_create_from(NULL, NULL, nodes, n, vnodes, memory);
}


llmgw_ring_t *
llmgw_ring_create_from(const llmgw_ring_t *old, const uint32_t *before,
    const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    const llmgw_ring_memory_t *memory)
{
    llmgw_ring_t  *ring;

    if (n > LLMGW_RING_MAX_NODES) {
        return NULL;
    }

    if (memory == NULL) {
        memory = &ring_heap;
    }

    ring = memory->alloc(memory->data, sizeof(llmgw_ring_t));
    if (ring == NULL) {
        return NULL;
    }

    memset(ring, 0, sizeof(llmgw_ring_t));

    ring->memory = *memory;
    ring->nnodes = (uint32_t) n;
    ring->node_bits = (uint8_t) bits_for(n);

    ring->counts = ring_alloc(ring, n, sizeof(uint32_t));

    if (ring->counts == NULL
        || ring_begin(ring, old, before, nodes, vnodes) != 0
        || ring_alloc_arrays(ring) != 0)
    {
        llmgw_ring_destroy(ring);
        return NULL;
    }

    return ring;
}


void
llmgw_ring_destroy(llmgw_ring_t *ring)
{
    llmgw_ring_memory_t  memory;

    if (ring == NULL) {
        return;
    }

    memory = ring->memory;

    llmgw_ring_builder_destroy(ring);

    if (ring->points != NULL) {
        memory.free(memory.data, ring->points);
    }

    if (ring->index != NULL) {
        memory.free(memory.data, ring->index);
    }

    if (ring->shares != NULL) {
        memory.free(memory.data, ring->shares);
    }

    if (ring->counts != NULL) {
        memory.free(memory.data, ring->counts);
    }

    memory.free(memory.data, ring);
}


int
llmgw_ring_is_whole(const llmgw_ring_t *ring)
{
    return ring->builder == NULL;
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
 * The same of more than GUESSED_POINTS; `fraction` is how far into the bucket
 * the key lies, in 2^-32 buckets.  Where the window was put wrong the answer is
 * beyond one of its ends.
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


/*
 * A hash shifted like a point is not above a point of the same hash,
 * whichever node stands there: so words compare like hashes.
 */
size_t
llmgw_ring_find(const llmgw_ring_t *ring, uint64_t hash)
{
    size_t           n, position;
    uint64_t         key, fraction;
    const uint32_t  *bucket;
    const uint64_t  *points;

    bucket = &ring->index[hash >> ring->bucket_shift];
    key = hash << ring->node_bits;

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
    return (uint32_t) (ring->points[position]
                       & (((uint64_t) 1 << ring->node_bits) - 1));
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
