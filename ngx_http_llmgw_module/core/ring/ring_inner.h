
/*
 * Shared by ring.c (memory, lookup) and build.c (construction).
 *
 * A point is one word: the upper 48 bits of its hash, and the number of its
 * node.  So words compare like the places of their points.  index[b] is the
 * position of the first point of bucket b or of a later one.
 */

#ifndef LLMGW_RING_INNER_H
#define LLMGW_RING_INNER_H

#include <stddef.h>
#include <stdint.h>

#include "core/ring/ring.h"


#define LLMGW_RING_NODE_BITS  16
#define LLMGW_RING_NODE_MASK  ((UINT64_C(1) << LLMGW_RING_NODE_BITS) - 1)

typedef struct llmgw_ring_builder_s  llmgw_ring_builder_t;

/* One block of memory, followed by its arrays. */
struct llmgw_ring_s {
    uint64_t              *points;      /* some words longer than npoints */
    uint64_t              *shares;      /* of each node, in 2^-44 circles */
    uint32_t              *counts;      /* points of each node */
    uint32_t              *index;       /* nbuckets + 1 words */
    size_t                 npoints;
    size_t                 nbuckets;    /* a power of two */
    size_t                 nnodes;
    uint8_t                bucket_shift;
    llmgw_ring_builder_t  *builder;     /* NULL: the ring is whole */
};


size_t llmgw_ring_builder_bytes(const llmgw_ring_t *old, size_t nnodes,
    size_t npoints);

/* To be called for a ring that has its arrays, counts and npoints. */
void llmgw_ring_builder_init(llmgw_ring_builder_t *builder,
    const llmgw_ring_t *ring, const llmgw_ring_t *old, const uint32_t *before,
    const llmgw_ring_node_t *nodes);

#endif /* LLMGW_RING_INNER_H */
