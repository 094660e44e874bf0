
/* Rings of numbered nodes, for the tests of the ring. */

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

#include "core/ring/ring.h"


#define VNODES   150
#define ID_SIZE  32

typedef struct {
    size_t              n;
    char              (*ids)[ID_SIZE];
    llmgw_ring_node_t  *nodes;
} fleet_t;


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
whole_ring(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    size_t budget)
{
    llmgw_ring_t  *ring;

    ring = llmgw_ring_create(nodes, n, vnodes, NULL);
    assert_non_null(ring);
    assert_false(llmgw_ring_is_whole(ring));

    while (!llmgw_ring_build(ring, budget)) {
        assert_false(llmgw_ring_is_whole(ring));
    }

    assert_true(llmgw_ring_is_whole(ring));
    assert_int_equal(llmgw_ring_build(ring, budget), 1);

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


typedef struct {
    int  left;          /* allocations until the one that fails */
    int  standing;      /* not yet freed */
} scarce_t;


static inline void *
scarce_alloc(void *data, size_t size)
{
    scarce_t  *scarce = data;

    if (scarce->left-- == 0) {
        return NULL;
    }

    scarce->standing++;

    return malloc(size);
}


static inline void
scarce_free(void *data, void *p)
{
    scarce_t  *scarce = data;

    assert_non_null(p);

    scarce->standing--;
    free(p);
}

#endif /* RING_FLEET_H */
