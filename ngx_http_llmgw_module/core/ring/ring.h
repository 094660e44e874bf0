
/*
 * The hash ring: which replica a prompt's prefix belongs to.
 *
 * Each node stands at vnodes x weight points of a 64-bit circle, point i of
 * node "id" at xxh3_64(id "#" i).  A key belongs to the first point clockwise
 * (greater or equal, wrapping).  When a node leaves, its keys go to their next
 * points and no other key moves (Karger and others, 1997).
 *
 * A ring is built in slices, off the request path, and never changes once it
 * is whole: a change of membership builds a new one while the old one serves,
 * out of the old one where most of its points stay.
 * Points are kept as a sorted array with an index of buckets over the high
 * bits of the circle, so that a lookup touches one bucket entry and some
 * neighbouring points; no tree, no binary search.  Equal points (never seen,
 * but possible) are ordered by node id, so that every gateway draws the same
 * ring from the same members, in whatever order it was told of them.
 */

#ifndef LLMGW_RING_H
#define LLMGW_RING_H

#include <stddef.h>
#include <stdint.h>


typedef struct llmgw_ring_s  llmgw_ring_t;

typedef struct {
    const char  *id;            /* need not outlive the call */
    size_t       id_len;
    uint32_t     weight;        /* >= 1 */
} llmgw_ring_node_t;

/* Memory comes from the caller; size is exact, zero-filling not needed. */
typedef struct {
    void  *(*alloc)(void *data, size_t size);   /* NULL: none left */
    void   (*free)(void *data, void *p);
    void    *data;
} llmgw_ring_memory_t;

/* Limits: above them weights are scaled down alike, at least one point each */
#define LLMGW_RING_MAX_NODES   65536
#define LLMGW_RING_MAX_POINTS  (16u * 1024 * 1024)

#define LLMGW_RING_NEW         UINT32_MAX   /* before: in no older ring */


/*
 * Begins a ring of n nodes; node k of the answers is nodes[k].  NULL: out of
 * memory, or over a limit.  memory == NULL: malloc and free.  n may be 0.
 */
llmgw_ring_t *llmgw_ring_create(const llmgw_ring_node_t *nodes, size_t n,
    uint32_t vnodes, const llmgw_ring_memory_t *memory);

/*
 * The same ring, at a fraction of the price where it differs little from a
 * whole one: what stands sorted in `old` is merged with the points of those
 * that joined.  nodes[i] is node before[i] of `old`, which has the same id, or
 * LLMGW_RING_NEW; weights and vnodes may differ.  old must stay until the ring
 * is whole or destroyed; before need not outlive the call.
 */
llmgw_ring_t *llmgw_ring_create_from(const llmgw_ring_t *old,
    const uint32_t *before, const llmgw_ring_node_t *nodes, size_t n,
    uint32_t vnodes, const llmgw_ring_memory_t *memory);

void llmgw_ring_destroy(llmgw_ring_t *ring);

/*
 * Does about `budget` points' worth of work (one unit is some 20-50 ns; no
 * slice costs more than a small multiple of its budget, sorting included).
 * Returns 1 when the ring is whole, 0 when there is more to do.
 */
int llmgw_ring_build(llmgw_ring_t *ring, size_t budget);

int llmgw_ring_is_whole(const llmgw_ring_t *ring);

/* The hash of a key; the caller cuts the prompt to its prefix. */
uint64_t llmgw_ring_hash(const void *key, size_t len);

size_t llmgw_ring_npoints(const llmgw_ring_t *ring);

/* The n of llmgw_ring_create(); each of them has at least one point. */
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
