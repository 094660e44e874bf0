
/*
 * The hash ring: which replica a prompt's prefix belongs to.
 *
 * Each node stands at vnodes x weight points of a circle, point i of node
 * "id" at xxh3_64(id "#" i), of which the upper 48 bits count.  A key belongs
 * to the first point clockwise (greater or equal, wrapping).  When a node
 * leaves, its keys go to their next points and no other key moves (Karger and
 * others, 1997).
 *
 * A ring never changes once it is whole: a change of membership builds a new
 * one out of the old one while the old one serves.  The build is one linear
 * pass, in slices, off the request path: it copies the points without those
 * that went and merges those that came.  A first ring is the same pass with
 * all points new.
 *
 * Points are a sorted array with an index of buckets over the high bits of the
 * circle, so that a lookup touches one bucket entry and some neighbouring
 * points; no tree, no binary search.  Points at one place stand in the order
 * of their nodes' numbers.  So every gateway draws the same ring, provided
 * that each numbers the same members in the same order.
 */

#ifndef LLMGW_RING_H
#define LLMGW_RING_H

#include <stddef.h>
#include <stdint.h>


typedef struct llmgw_ring_s  llmgw_ring_t;

typedef struct {
    const char  *id;
    size_t       id_len;        /* up to LLMGW_RING_MAX_ID */
    uint32_t     weight;        /* >= 1 */
} llmgw_ring_node_t;

/* Limits: above them weights are scaled down alike, at least one point each */
#define LLMGW_RING_MAX_NODES   65536
#define LLMGW_RING_MAX_POINTS  (16u * 1024 * 1024)
#define LLMGW_RING_MAX_ID      1024

#define LLMGW_RING_NEW         UINT32_MAX   /* before: in no older ring */


/* The memory that a ring and its builder need; 0: over a limit. */
typedef struct {
    size_t  ring;
    size_t  builder;
} llmgw_ring_bytes_t;

llmgw_ring_bytes_t llmgw_ring_bytes(const llmgw_ring_t *old,
    const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes);

/*
 * Begins a ring of n nodes in `memory`, with a builder in `builder`, both of
 * the sizes above and aligned as malloc() does; they stay the caller's.
 * Functions name nodes[k] as node k.  The points of `old`, a whole ring, are
 * copied: nodes[i] is its node before[i], of the same id, or LLMGW_RING_NEW.
 * Nodes that stay keep their order among each other; weights and vnodes may
 * differ.  old == NULL: all nodes are new, `before` is not read.  builder,
 * nodes, their ids and old must stay until the ring is whole; before need not.
 */
llmgw_ring_t *llmgw_ring_init(void *memory, void *builder,
    const llmgw_ring_t *old, const uint32_t *before,
    const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes);

/*
 * Does `budget` units of work; a unit is some 2 to 5 ns.  Returns 1 when the
 * ring is whole, 0 when there is more to do.
 */
int llmgw_ring_build(llmgw_ring_t *ring, size_t budget);

/* The hash of a key; the caller cuts the prompt to its prefix. */
uint64_t llmgw_ring_hash(const void *key, size_t len);

size_t llmgw_ring_npoints(const llmgw_ring_t *ring);

/* The n of llmgw_ring_init(); each of them has at least one point. */
size_t llmgw_ring_nnodes(const llmgw_ring_t *ring);

/*
 * The position of the first point clockwise from the hash, in a whole ring
 * with at least one point.
 */
size_t llmgw_ring_find(const llmgw_ring_t *ring, uint64_t hash);

/* The node at a position in 0 .. npoints - 1. */
uint32_t llmgw_ring_node(const llmgw_ring_t *ring, size_t position);

/* The share of the circle that a node owns, in millionths. */
uint32_t llmgw_ring_share_ppm(const llmgw_ring_t *ring, uint32_t node);

#endif /* LLMGW_RING_H */
