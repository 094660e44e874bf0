
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/fleet/ring.h"


#define RING_NAME_BYTES   24

/* The defaults of nginx's llmgw_hash. */
#define RING_LOAD_FACTOR  1250
#define RING_MIN_LOAD     8


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


/* The pool for a pick: the candidates are eligible, other replicas are not. */
static llmgw_pick_pool_t
ring_pool(const llmgw_ring_t *ring, llmgw_pick_peer_t *peers,
    const llmgw_scoring_t *scoring)
{
    uint32_t            i;
    size_t              n;
    llmgw_pick_peer_t  *peer;

    n = llmgw_ring_nnodes(ring);
    memset(peers, 0, n * sizeof(llmgw_pick_peer_t));

    for (i = 0; i < scoring->n; i++) {
        peer = &peers[scoring->candidates[i].replica];
        peer->state = LLMGW_PEER_ALIVE;
        peer->weight = 1;
        peer->foreign = (uint32_t) scoring->candidates[i].in_flight;
    }

    return (llmgw_pick_pool_t) {
        .ring = ring, .peers = peers, .npeers = n,
        .load_factor_permille = RING_LOAD_FACTOR, .min_load = RING_MIN_LOAD
    };
}


void
fleet_ring_rank(const llmgw_ring_t *ring, llmgw_pick_peer_t *peers,
    uint64_t key, const llmgw_scoring_t *scoring, double *ranks)
{
    uint32_t           i;
    llmgw_picked_t     picked = { .peer = UINT32_MAX };
    llmgw_pick_key_t   pick = { .hash = key, .random = key };
    llmgw_pick_pool_t  pool = ring_pool(ring, peers, scoring);

    (void) llmgw_pick(&pool, &pick, &picked);

    for (i = 0; i < scoring->n; i++) {
        ranks[i] = scoring->candidates[i].replica == picked.peer;
    }
}
