
/*
 * What ring.c (lookup), ring_build.c (construction) and ring_builder.c (what
 * construction needs) share.
 *
 * A point is one word: the low bits of its hash, shifted up by node_bits,
 * and the node's number in the room that this makes.  The node_bits that
 * fall off at the top are implied by the bucket in which the point lies,
 * since there are never fewer bucket bits than node bits.  So nothing is lost,
 * points of one bucket compare like their hashes, and a lookup touches one
 * cache line of the index and one of the points.
 *
 *     hash    [ bucket ................ |  rest ...................... ]
 *     point            [ low 64 - node_bits bits of the hash ][ node   ]
 *
 * index[b] is the position of the first point of bucket b, index[b + 1] that
 * of the next bucket.  While the ring is built the same words count and
 * then distribute; see ring_build.c.
 */

#ifndef LLMGW_RING_IMPL_H
#define LLMGW_RING_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "ring.h"


/*
 * Texts are written in batches and then hashed, since a hash that reads a
 * word of which a byte was just written waits for that write: 6.9 instead
 * of 15.6 ns a point.
 */
#define LLMGW_RING_BATCH  16

typedef struct llmgw_ring_builder_s  llmgw_ring_builder_t;

struct llmgw_ring_s {
    uint64_t              *points;      /* some words longer than npoints */
    uint32_t              *index;       /* nbuckets + 2 words */
    uint64_t              *shares;      /* of each node, in 2^-44 circles */
    size_t                 npoints;
    size_t                 nbuckets;    /* a power of two */
    uint32_t               nnodes;
    uint8_t                node_bits;
    uint8_t                bucket_shift;
    llmgw_ring_builder_t  *builder;     /* NULL: the ring is whole */
    llmgw_ring_memory_t    memory;
};

typedef enum {
    LLMGW_RING_CLEAR = 0,
    LLMGW_RING_TOUCH,
    LLMGW_RING_HASH,
    LLMGW_RING_SUM,
    LLMGW_RING_SCATTER,
    LLMGW_RING_SORT,
    LLMGW_RING_DONE
} llmgw_ring_step_t;

typedef struct {
    const char  *id;
    size_t       id_len;
    uint32_t     npoints;
} llmgw_ring_member_t;

/* One block of memory: this, the members, the batch of texts, the ids. */
struct llmgw_ring_builder_s {
    llmgw_ring_step_t     step;
    size_t                next;         /* point or bucket, as steps count */
    uint32_t              node;         /* the node of point `next` */
    uint32_t              replica;      /* and which of its points that is */
    uint64_t              last_hash;    /* of the point before, for SORT */
    uint64_t             *hashes;       /* by node, then by number */
    llmgw_ring_member_t  *nodes;
    char                 *texts;        /* LLMGW_RING_BATCH of text_size */
    size_t                text_size;
};


/* NULL: out of memory.  Takes what it needs of nodes; sets ring->npoints. */
llmgw_ring_builder_t *llmgw_ring_builder_create(llmgw_ring_t *ring,
    const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes);

void llmgw_ring_builder_destroy(llmgw_ring_t *ring);

#endif /* LLMGW_RING_IMPL_H */
