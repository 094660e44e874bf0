
/*
 * Rings of numbered nodes, and the definition that they are compared with: a
 * plain array of all hashes, sorted by qsort().
 */

#ifndef RING_FLEET_H
#define RING_FLEET_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "core/ring/ring.h"
#include "core/ring/ring_inner.h"


#define VNODES   150
#define ID_SIZE  32

#define PLACE(hash)  ((hash) >> 16)

typedef struct {
    size_t              n;
    char              (*ids)[ID_SIZE];
    llmgw_ring_node_t  *nodes;
} fleet_t;

typedef struct {
    uint64_t  hash;
    uint32_t  node;
} naive_point_t;


/* `format` has one number, that of the node, counted from 1 */
static inline fleet_t
fleet_make(const char *format, size_t n)
{
    size_t   i;
    fleet_t  fleet;

    fleet.n = n;
    fleet.ids = calloc(n + 1, ID_SIZE);
    fleet.nodes = calloc(n + 1, sizeof(llmgw_ring_node_t));

    assert_non_null(fleet.ids);
    assert_non_null(fleet.nodes);

    for (i = 0; i < n; i++) {
        fleet.nodes[i].id = fleet.ids[i];
        fleet.nodes[i].id_len = (size_t) snprintf(fleet.ids[i], ID_SIZE,
                                                  format, (int) i + 1);
        fleet.nodes[i].weight = 1;
    }

    return fleet;
}


static inline void
fleet_done(fleet_t *fleet)
{
    free(fleet->ids);
    free(fleet->nodes);
}


static inline llmgw_ring_t *
begin_ring(const llmgw_ring_t *old, const uint32_t *before,
    const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes)
{
    void                *ring, *builder;
    llmgw_ring_bytes_t   bytes;

    bytes = llmgw_ring_bytes(old, nodes, n, vnodes);
    assert_true(bytes.ring != 0 && bytes.builder != 0);

    ring = malloc(bytes.ring);
    builder = malloc(bytes.builder);
    assert_non_null(ring);
    assert_non_null(builder);

    return llmgw_ring_init(ring, builder, old, before, nodes, n, vnodes);
}


/* Returns the number of slices. */
static inline size_t
make_whole(llmgw_ring_t *ring, size_t budget)
{
    void    *builder;
    size_t   slices;

    builder = ring->builder;
    assert_non_null(ring->builder);

    for (slices = 1; !llmgw_ring_build(ring, budget); slices++) {
        assert_non_null(ring->builder);
    }

    assert_null(ring->builder);
    assert_int_equal(llmgw_ring_build(ring, budget), 1);
    free(builder);

    return slices;
}


static inline llmgw_ring_t *
whole_ring(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    size_t budget)
{
    llmgw_ring_t  *ring;

    ring = begin_ring(NULL, NULL, nodes, n, vnodes);
    (void) make_whole(ring, budget);

    return ring;
}


static inline uint32_t
owner(const llmgw_ring_t *ring, uint64_t hash)
{
    return llmgw_ring_node(ring, llmgw_ring_find(ring, hash));
}


static inline uint64_t
next_random(uint64_t *state)
{
    uint64_t  x;

    x = *state += 0x9e3779b97f4a7c15ull;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;

    return x ^ x >> 31;
}



static inline int
naive_compare(const void *a, const void *b)
{
    const naive_point_t  *x = a, *y = b;

    if (PLACE(x->hash) != PLACE(y->hash)) {
        return PLACE(x->hash) < PLACE(y->hash) ? -1 : 1;
    }

    return (int) x->node - (int) y->node;
}


static inline size_t
naive_points(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    naive_point_t **points)
{
    char      text[LLMGW_RING_MAX_ID + 32];
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
            (*points)[total++].node = (uint32_t) i;
        }
    }

    qsort(*points, total, sizeof(naive_point_t), naive_compare);

    return total;
}


/* The first point clockwise, by binary search. */
static inline size_t
naive_find(const naive_point_t *points, size_t n, uint64_t hash)
{
    size_t  low, high, middle;

    low = 0;
    high = n;

    while (low < high) {
        middle = (low + high) / 2;

        if (PLACE(points[middle].hash) < PLACE(hash)) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low == n ? 0 : low;
}


static inline void
assert_naive_finds(const llmgw_ring_t *ring, const naive_point_t *points,
    size_t n, uint64_t hash)
{
    assert_int_equal(llmgw_ring_find(ring, hash),
                     naive_find(points, n, hash));
}


static inline void
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

        assert_naive_finds(ring, points, n, points[i].hash - 1);
        assert_naive_finds(ring, points, n, points[i].hash);
        assert_naive_finds(ring, points, n, points[i].hash + 1);
    }

    seed = 1;

    for (i = 0; n != 0 && i < 2000; i++) {
        assert_naive_finds(ring, points, n, next_random(&seed));
    }

    if (n != 0) {
        assert_naive_finds(ring, points, n, 0);
        assert_naive_finds(ring, points, n, UINT64_MAX);
    }

    free(points);
}

#endif /* RING_FLEET_H */
