
/*
 * The hash ring: memory and lookup.  ring_impl.h says how a point is kept,
 * ring_build.c and ring_merge.c how the points get there.
 *
 * A lookup is one word of the index and, nearly always, one cache line of
 * points; the words of both arrays are small so that as much of them as can
 * be stays in the caches, which decide from 1000 nodes on.
 */

#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "ring.h"
#include "ring_impl.h"


/*
 * Points per bucket are between half of this and this.  With 4 the index
 * needs half of the memory, and a lookup 2 ns more where all is in the
 * first-level cache; with 1 the index itself falls out of the caches.
 */
#define BUCKET_POINTS  2

/*
 * A lookup counts, without a branch, which of the bucket's first points are
 * below the key; a loop that ends at the right one is guessed wrong half of
 * the time: 6 instead of 11 ns at 10 nodes, 19 instead of 22 at 1000.  It may
 * read so many words behind the last point.
 */
#define PEEKED_POINTS  4


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


/* At least as many bits as a node's number has; see ring_impl.h. */
static unsigned
bucket_bits(size_t npoints, unsigned node_bits)
{
    unsigned  bits;

    bits = bits_for((npoints + BUCKET_POINTS - 1) / BUCKET_POINTS);

    if (bits < node_bits) {
        bits = node_bits;
    }

    return bits == 0 ? 1 : bits;    /* a shift by 64 is not defined */
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

    ring->index = ring_alloc(ring, ring->nbuckets + 2, sizeof(uint32_t));
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

    ring->index[0] = 0;     /* the builder clears from the third on */
    ring->index[1] = 0;

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
    unsigned       bits;
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
        || ring_begin(ring, old, before, nodes, vnodes) != 0)
    {
        goto failed;
    }

    bits = bucket_bits(ring->npoints, ring->node_bits);

    ring->nbuckets = (size_t) 1 << bits;
    ring->bucket_shift = (uint8_t) (64 - bits);

    if (ring_alloc_arrays(ring) != 0) {
        goto failed;
    }

    return ring;

failed:

    llmgw_ring_destroy(ring);

    return NULL;
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


/*
 * A hash shifted like a point is not above a point of the same hash,
 * whichever node stands there: so words compare like hashes.
 */
size_t
llmgw_ring_find(const llmgw_ring_t *ring, uint64_t hash)
{
    size_t           i, n, below, position;
    uint64_t         key;
    const uint32_t  *bucket;
    const uint64_t  *points;

    bucket = &ring->index[hash >> ring->bucket_shift];
    key = hash << ring->node_bits;

    points = &ring->points[bucket[0]];
    n = bucket[1] - bucket[0];

    below = 0;

    for (i = 0; i < PEEKED_POINTS; i++) {
        below += (size_t) (i < n) & (size_t) (points[i] < key);
    }

    if (below == PEEKED_POINTS) {
        while (below < n && points[below] < key) {
            below++;
        }
    }

    position = bucket[0] + below;

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
