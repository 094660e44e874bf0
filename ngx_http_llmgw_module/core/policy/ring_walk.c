
/*
 * The ring with bounded load: clockwise from the key, the first eligible peer
 * that is not over the bound (Mirrokni, Thorup, Zadimoghaddam: Consistent
 * Hashing with Bounded Loads, 2018).
 *
 * Nearly always the peer of one of the first points passes.  But when most
 * peers are full or over the bound, a walk over 150 points of each of 10000
 * peers would take milliseconds to learn that no peer has capacity.  So the
 * walk stops after WALK_POINTS points and examines each peer once: this counts
 * the peers that pass, and the walk continues only if there are two or more.
 * It then ends, on average, after as many points as there are peers to each
 * that passes.
 *
 * The walk keeps no set of the peers that it has seen.  Refusing one again
 * costs less than looking it up.
 *
 * The bound counts the request that is to be placed and is rounded up: with T
 * in flight on peers of total weight W, a peer of weight w may come to hold
 *
 *     ceil(factor x (T + 1) x w / W)
 *
 * requests, this one included.  So a peer that holds `load` passes when
 * load + 1 <= ceil(x), and as load is whole, when load < x.  An idle peer
 * always passes, since x > 0; with a factor of at least 1 some peer always
 * does.  T and W are those of the round's own state, and are added up, over
 * all peers, only when one with capacity has min_load or more.  Where peers are
 * many, that is done once a millisecond, and requests placed meanwhile are
 * added: at 10000 peers adding up takes 20 us.
 */

#include "core/policy/round.h"


/*
 * With a factor of 1.25 at least a fifth of the weight is below the bound, so
 * that fewer than one walk in a million gets this far because of the bound.
 */
#define WALK_POINTS  64

/* With so many peers or more, sums are kept for a millisecond. */
#define MANY_PEERS  256


static void
sums_add_up(llmgw_pick_sums_t *sums, const llmgw_round_t *round)
{
    size_t                    i;
    const llmgw_pick_peer_t  *peer;

    *sums = (llmgw_pick_sums_t) { .now_ms = round->key->now_ms,
                                  .state = (uint8_t) round->state };

    for (i = 0; i < round->pool->npeers; i++) {
        peer = &round->pool->peers[i];

        if (peer->state == round->state
            && llmgw_peer_is_admitted(round->pool, peer, round->key->now_ms))
        {
            sums->load += llmgw_peer_load(peer);
            sums->weight += llmgw_peer_weight(peer);
        }
    }
}


/* After this, sums->load counts the request that is to be placed, too. */
static void
walk_sum(llmgw_round_t *round)
{
    llmgw_walk_t       *walk = &round->walk;
    llmgw_pick_sums_t  *sums, own = { 0 };

    sums = round->pool->sums;

    if (sums == NULL || round->pool->npeers < MANY_PEERS) {
        sums = &own;
    }

    if (sums->state != round->state || sums->now_ms != round->key->now_ms) {
        sums_add_up(sums, round);
    }

    sums->load++;

    walk->load_side = 1000.0 * (double) sums->weight;
    walk->mean_side = (double) round->pool->load_factor_permille
                      * (double) sums->load;
    walk->have_mean = 1;
}


/*
 * In doubles, as the products may exceed 64 bits if a peer reports a false
 * load; below 2^53 they are exact.
 */
static int
walk_is_below(llmgw_round_t *round, uint32_t i)
{
    uint64_t                  load;
    llmgw_walk_t             *walk = &round->walk;
    const llmgw_pick_peer_t  *peer;

    peer = &round->pool->peers[i];
    load = llmgw_peer_load(peer);

    if (round->pool->load_factor_permille == 0
        || load < round->pool->min_load)
    {
        return 1;
    }

    if (!walk->have_mean) {
        walk_sum(round);
    }

    return (double) load * walk->load_side
           < walk->mean_side * (double) llmgw_peer_weight(peer);
}


static int
walk_answer(const llmgw_round_t *round, uint32_t peer, llmgw_picked_t *picked)
{
    picked->peer = peer;
    picked->route = LLMGW_ROUTE_SPILL;

    if (peer == llmgw_ring_node(round->pool->ring, round->walk.first)) {
        picked->route = LLMGW_ROUTE_AFFINITY;
    }

    return 1;
}


/* Looks at points `from` to `to` clockwise of the key's.  Returns 1: found. */
static int
walk_points(llmgw_round_t *round, size_t from, size_t to,
    llmgw_picked_t *picked)
{
    size_t               position, npoints;
    uint32_t             node;
    const llmgw_ring_t  *ring;

    ring = round->pool->ring;
    npoints = llmgw_ring_npoints(ring);

    for ( /* void */ ; from < to && from < npoints; from++) {
        position = round->walk.first + from;

        if (position >= npoints) {
            position -= npoints;
        }

        node = llmgw_ring_node(ring, position);

        if (node < round->pool->npeers
            && llmgw_peer_lacks(round->pool, round->key, round->state, node)
               == LLMGW_LACKS_NOTHING
            && walk_is_below(round, node))
        {
            return walk_answer(round, node, picked);
        }
    }

    return 0;
}


int
llmgw_walk_first(llmgw_round_t *round, llmgw_picked_t *picked)
{
    llmgw_walk_t        *walk = &round->walk;
    const llmgw_ring_t  *ring;

    ring = round->pool->ring;

    walk->nnodes = ring == NULL ? 0 : llmgw_ring_nnodes(ring);
    walk->nbelow = 0;
    walk->have_mean = 0;

    if (walk->nnodes == 0) {
        return 0;
    }

    walk->first = llmgw_ring_find(ring, round->key->hash);

    return walk_points(round, 0, WALK_POINTS, picked);
}


void
llmgw_walk_note(llmgw_round_t *round, uint32_t peer)
{
    if (peer < round->walk.nnodes && walk_is_below(round, peer)) {
        round->walk.nbelow++;
        round->walk.below = peer;
    }
}


int
llmgw_walk_best(llmgw_round_t *round, llmgw_picked_t *picked)
{
    if (round->walk.nbelow == 1) {
        return walk_answer(round, round->walk.below, picked);
    }

    return round->walk.nbelow > 1
           && walk_points(round, WALK_POINTS, SIZE_MAX, picked);
}


llmgw_route_t
llmgw_walk_route(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key, uint32_t peer)
{
    const llmgw_ring_t  *ring;

    ring = pool->ring;

    if (ring == NULL || peer >= llmgw_ring_nnodes(ring)) {
        return LLMGW_ROUTE_LEAST_CONN;
    }

    return peer == llmgw_ring_node(ring, llmgw_ring_find(ring, key->hash))
           ? LLMGW_ROUTE_AFFINITY : LLMGW_ROUTE_SPILL;
}
