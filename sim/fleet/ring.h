
/*
 * The ring of a simulated fleet: node i is replica i, with the id "instance_i".
 */

#ifndef FLEET_RING_H
#define FLEET_RING_H

#include "core/policy/pick.h"
#include "core/policy/score.h"
#include "core/ring/ring.h"
#include "sim/work/request.h"


/* The result is freed by free(); NULL: no memory. */
llmgw_ring_t *fleet_ring(uint32_t replicas, uint32_t vnodes);

/*
 * The key of a request: a hash of the whole blocks in the first `tokens` of its
 * prompt, but of one block at least.  A prompt without a whole block has a key
 * of its own.
 */
uint64_t fleet_key(const work_request_t *w, uint32_t tokens,
    uint32_t block_tokens);

/*
 * Ranks candidates by the ring with bounded load, with the requests in flight
 * as load: the ring's choice gets 1, all others 0.  peers: memory for one item
 * per node of the ring.
 */
void fleet_ring_rank(const llmgw_ring_t *ring, llmgw_pick_peer_t *peers,
    uint64_t key, const llmgw_scoring_t *scoring, double *ranks);

#endif /* FLEET_RING_H */
