
/*
 * The builder's memory: what a ring needs only while ring_build.c builds it.
 *
 * It keeps its own copy of the ids, since the caller's need not last, and, but
 * for a merge, the bins, and one hash a point, so that none is computed twice.
 */

#include <stdint.h>
#include <string.h>

#include "core/ring/ring.h"
#include "core/ring/ring_inner.h"


/* "#" and the digits of a 32-bit number */
#define SUFFIX_MAX  11


/*
 * Scaling halves until all fit: exact in integers, the same for any order of
 * nodes, and never coarser than half of the limit.
 */
static uint32_t
node_points(const llmgw_ring_node_t *node, uint32_t vnodes, unsigned shift)
{
    uint64_t  n;

    n = ((uint64_t) vnodes * node->weight) >> shift;

    if (n > LLMGW_RING_MAX_POINTS) {
        return LLMGW_RING_MAX_POINTS + 1;
    }

    return n == 0 ? 1 : (uint32_t) n;
}


static uint64_t
all_points(const llmgw_ring_node_t *nodes, size_t n, uint32_t vnodes,
    unsigned shift)
{
    size_t    i;
    uint64_t  sum;

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += node_points(&nodes[i], vnodes, shift);
    }

    return sum;
}


/* 0: more than an address space holds. */
static size_t
builder_size(const llmgw_ring_node_t *nodes, size_t n, size_t *text_size)
{
    size_t  i, ids, longest;

    ids = 0;
    longest = 0;

    for (i = 0; i < n; i++) {

        if (nodes[i].id_len > SIZE_MAX / 2 / LLMGW_RING_MAX_NODES) {
            return 0;
        }

        ids += nodes[i].id_len;

        if (nodes[i].id_len > longest) {
            longest = nodes[i].id_len;
        }
    }

    *text_size = longest + SUFFIX_MAX;

    return sizeof(llmgw_ring_builder_t) + n * sizeof(llmgw_ring_member_t)
           + LLMGW_RING_BATCH * *text_size + ids;
}


static void
copy_nodes(llmgw_ring_t *ring, llmgw_ring_builder_t *builder,
    const llmgw_ring_node_t *nodes, uint32_t vnodes, unsigned shift)
{
    char    *ids;
    size_t   i;

    ids = builder->texts + LLMGW_RING_BATCH * builder->text_size;

    for (i = 0; i < ring->nnodes; i++) {
        ring->counts[i] = node_points(&nodes[i], vnodes, shift);

        builder->nodes[i].id = ids;
        builder->nodes[i].id_len = nodes[i].id_len;

        if (nodes[i].id_len != 0) {
            memcpy(ids, nodes[i].id, nodes[i].id_len);
        }

        ids += nodes[i].id_len;
    }
}


llmgw_ring_builder_t *
llmgw_ring_builder_create(llmgw_ring_t *ring, const llmgw_ring_node_t *nodes,
    size_t n, uint32_t vnodes, int *scaled)
{
    size_t                      size, text_size;
    unsigned                    shift;
    llmgw_ring_builder_t       *builder;
    const llmgw_ring_memory_t  *memory;

    memory = &ring->memory;

    size = builder_size(nodes, n, &text_size);
    if (size == 0) {
        return NULL;
    }

    builder = memory->alloc(memory->data, size);
    if (builder == NULL) {
        return NULL;
    }

    memset(builder, 0, sizeof(llmgw_ring_builder_t));

    for (shift = 0; /* void */; shift++) {
        ring->npoints = all_points(nodes, n, vnodes, shift);

        if (ring->npoints <= LLMGW_RING_MAX_POINTS) {
            break;
        }
    }

    builder->nodes = (llmgw_ring_member_t *) (builder + 1);
    builder->texts = (char *) (builder->nodes + n);
    builder->text_size = text_size;

    copy_nodes(ring, builder, nodes, vnodes, shift);

    *scaled = shift != 0;

    return builder;
}


int
llmgw_ring_build_init(llmgw_ring_t *ring)
{
    size_t                      size;
    llmgw_ring_builder_t       *builder;
    const llmgw_ring_memory_t  *memory;

    memory = &ring->memory;
    builder = ring->builder;
    builder->step = llmgw_ring_build_steps;

    size = (ring->npoints == 0 ? 1 : ring->npoints) * sizeof(uint64_t);

    builder->hashes = memory->alloc(memory->data, size);
    if (builder->hashes == NULL) {
        return -1;
    }

    size = (builder->nbins + 2) * sizeof(uint32_t);

    builder->bins = memory->alloc(memory->data, size);
    if (builder->bins == NULL) {
        return -1;
    }

    builder->bins[0] = 0;       /* CLEAR begins with the third */
    builder->bins[1] = 0;

    return 0;
}


void
llmgw_ring_builder_destroy(llmgw_ring_t *ring)
{
    llmgw_ring_builder_t  *builder;

    builder = ring->builder;

    if (builder == NULL) {
        return;
    }

    if (builder->hashes != NULL) {
        ring->memory.free(ring->memory.data, builder->hashes);
    }

    if (builder->bins != NULL) {
        ring->memory.free(ring->memory.data, builder->bins);
    }

    if (builder->numbers != NULL) {
        ring->memory.free(ring->memory.data, builder->numbers);
    }

    llmgw_ring_destroy(builder->joined);

    ring->memory.free(ring->memory.data, builder);

    ring->builder = NULL;
}
