
#include <stdio.h>
#include <stdlib.h>

#include "sim/fleet/ring.h"


#define RING_NAME_BYTES  24


static llmgw_ring_t *
ring_build(const llmgw_ring_node_t *nodes, uint32_t n, uint32_t vnodes)
{
    void                *memory, *builder;
    llmgw_ring_t        *ring;
    llmgw_ring_bytes_t   bytes;

    bytes = llmgw_ring_bytes(NULL, nodes, n, vnodes);
    memory = malloc(bytes.ring);
    builder = malloc(bytes.builder);

    if (memory == NULL || builder == NULL) {
        free(memory);
        free(builder);
        return NULL;
    }

    ring = llmgw_ring_init(memory, builder, NULL, NULL, nodes, n, vnodes);
    while (!llmgw_ring_build(ring, SIZE_MAX / 2)) { /* void */ }

    free(builder);

    return ring;
}


llmgw_ring_t *
fleet_ring(uint32_t replicas, uint32_t vnodes)
{
    char               *names, *name;
    uint32_t            i;
    llmgw_ring_t       *ring;
    llmgw_ring_node_t  *nodes;

    ring = NULL;
    names = calloc(replicas, RING_NAME_BYTES);
    nodes = calloc(replicas, sizeof(llmgw_ring_node_t));

    for (i = 0; names != NULL && nodes != NULL && i < replicas; i++) {
        name = names + (size_t) i * RING_NAME_BYTES;
        nodes[i].id = name;
        nodes[i].id_len = (size_t) snprintf(name, RING_NAME_BYTES,
                                            "instance_%u", i);
        nodes[i].weight = 1;
    }

    if (names != NULL && nodes != NULL) {
        ring = ring_build(nodes, replicas, vnodes);
    }

    free(names);
    free(nodes);

    return ring;
}


uint64_t
fleet_key(const work_request_t *w, uint32_t tokens, uint32_t block_tokens)
{
    uint32_t  blocks, all;

    all = w->input_tokens / block_tokens;
    blocks = tokens < block_tokens ? 1 : tokens / block_tokens;
    blocks = blocks < all ? blocks : all;

    return blocks == 0 ? w->body_origin
                       : work_block_hash(w, block_tokens, blocks - 1);
}
