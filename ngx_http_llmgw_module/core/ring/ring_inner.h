
/*
 * What ring.c (lookup), ring_build.c (construction), ring_merge.c (out of an
 * older ring) and ring_builder.c (what construction needs) share.
 *
 * A point is one word: the low bits of its hash, shifted up by node_bits,
 * and the node's number in the room that this makes.  The node_bits that
 * fall off at the top are implied by the bucket in which the point lies,
 * since there are never fewer bucket bits than node bits.  So nothing is lost,
 * and points of one bucket compare like their hashes.
 *
 *     hash    [ bucket ................ |  rest ...................... ]
 *     point            [ low 64 - node_bits bits of the hash ][ node   ]
 *
 * index[b] is the position of the first point of bucket b, index[b + 1] that
 * of the next bucket.  What is right for a lookup is too coarse for sorting:
 * a full build divides each bucket into bins; see ring_build.c.
 */

#ifndef LLMGW_RING_IMPL_H
#define LLMGW_RING_IMPL_H

#include <stddef.h>
#include <stdint.h>

#include "core/ring/ring.h"


/*
 * Texts are written in batches and then hashed, since a hash that reads a
 * word of which a byte was just written waits for that write: 6.9 instead
 * of 15.6 ns a point.
 */
#define LLMGW_RING_BATCH  16

typedef struct llmgw_ring_builder_s  llmgw_ring_builder_t;

struct llmgw_ring_s {
    uint64_t              *points;      /* some words longer than npoints */
    uint32_t              *index;       /* nbuckets + 1 words */
    uint64_t              *shares;      /* of each node, in 2^-44 circles;
                                           and one word for the builder */
    uint32_t              *counts;      /* points of each node */
    size_t                 npoints;
    size_t                 nbuckets;    /* a power of two */
    uint32_t               nnodes;
    uint8_t                node_bits;
    uint8_t                bucket_shift;
    llmgw_ring_builder_t  *builder;     /* NULL: the ring is whole */
    llmgw_ring_memory_t    memory;
};

typedef enum {
    LLMGW_RING_BY_BUCKET = 0,
    LLMGW_RING_BY_BIN,
    LLMGW_RING_BY_POINT,
    LLMGW_RING_BY_MERGED                /* points of both rings, gone too */
} llmgw_ring_unit_t;

/* `some` goes on by up to n and returns the work done; NULL: the last step */
typedef struct {
    size_t               (*some)(llmgw_ring_t *ring, size_t n);
    size_t               per_unit;      /* how much a unit of budget buys */
    llmgw_ring_unit_t    by;
} llmgw_ring_step_t;

typedef struct {
    const char  *id;
    size_t       id_len;
} llmgw_ring_member_t;

/*
 * A whole ring, read point by point.  The high node_bits of a hash number
 * its segment; within one, words tell the rest.
 */
typedef struct {
    const llmgw_ring_t  *ring;
    const uint32_t      *numbers;       /* of its nodes in the ring to be */
    size_t               next;
    size_t               end;           /* of the segment in hand */
    size_t               segment;       /* the one after it */
} llmgw_ring_source_t;

/* One block of memory: this, the members, the batch of texts, the ids. */
struct llmgw_ring_builder_s {
    const llmgw_ring_step_t  *step;
    size_t                    next;     /* as the step in hand counts */
    uint32_t                  node;     /* the node of point `next` */
    uint32_t                  replica;  /* and which of its points that is */
    uint64_t                  last_hash;    /* before, for shares */
    uint64_t                 *hashes;   /* by node, then by number */
    uint32_t                 *bins;     /* nbins + 2 words; NULL: a merge */
    size_t                    nbins;    /* a power of two */
    uint8_t                   bin_shift;
    uint32_t                 *numbers;  /* NULL: no merge; of both sources */
    llmgw_ring_t             *joined;   /* a ring of those that joined */
    llmgw_ring_source_t       kept_points;
    llmgw_ring_source_t       joined_points;
    size_t                    merged;   /* points written */
    llmgw_ring_member_t      *nodes;
    char                     *texts;    /* LLMGW_RING_BATCH of text_size */
    size_t                    text_size;
};


extern const llmgw_ring_step_t  llmgw_ring_build_steps[];
extern const llmgw_ring_step_t  llmgw_ring_merge_steps[];

/*
 * NULL: out of memory.  Takes what it needs of nodes; sets ring->npoints and
 * ring->counts.  *scaled: the weights did not fit.
 */
llmgw_ring_builder_t *llmgw_ring_builder_create(llmgw_ring_t *ring,
    const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes, int *scaled);

void llmgw_ring_builder_destroy(llmgw_ring_t *ring);

/* Chooses the steps, and gets what they need.  -1: out of memory. */
int llmgw_ring_build_init(llmgw_ring_t *ring);

/*
 * The same for a merge, of which only ids are taken from nodes.  1: too much
 * differs, nothing was done.
 */
int llmgw_ring_merge_init(llmgw_ring_t *ring, const llmgw_ring_t *old,
    const uint32_t *before, const llmgw_ring_node_t *nodes, uint32_t vnodes);

/* Whether node a's id comes after node b's. */
int llmgw_ring_is_id_after(const llmgw_ring_t *ring, size_t a, size_t b);

#endif /* LLMGW_RING_IMPL_H */
