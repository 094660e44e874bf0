
/*
 * The order in which a request prefers the peers of one state: clockwise on the
 * ring (ring_walk.c), or by rank (ranked.c).
 *
 * Eligibility is judged apart from it (peer.h), and so is what follows when no
 * peer is eligible (pick.h).  Each order has three functions, which the pick
 * calls under the lock of the counts:
 *
 *     first()   looks at the most preferred peers one by one; nearly always
 *               one of these is eligible, and is the answer
 *     note()    otherwise is called for each eligible peer, in ascending order
 *     best()    then names the most preferred of those, or none: an order need
 *               not contain all peers
 *
 * first() and best() return 1 and set *picked, or return 0.  An order has no
 * memory from one round to the next, no clock and no random source but the
 * key's.
 */

#ifndef LLMGW_ROUND_H
#define LLMGW_ROUND_H

#include "core/policy/pick.h"


/* The state of ring_walk.c. */
typedef struct {
    size_t    first;            /* position of the key's point */
    size_t    nnodes;           /* of the ring */
    size_t    nbelow;           /* eligible, on the ring, within the bound */
    uint32_t  below;            /* the last of those */
    int       have_mean;
    double    load_side;        /* 1000 W */
    double    mean_side;        /* 1000 factor (T + 1) */
} llmgw_walk_t;

/* The state of ranked.c. */
typedef struct {
    uint32_t  next;             /* candidates before it have been passed */
    uint32_t  best;             /* position of the best eligible one */
} llmgw_find_t;

/* A round: one look at the peers of one state. */
typedef struct {
    const llmgw_pick_pool_t  *pool;
    const llmgw_pick_key_t   *key;
    llmgw_peer_state_t        state;
    union {
        llmgw_walk_t          walk;
        llmgw_find_t          find;
    };
} llmgw_round_t;


int llmgw_walk_first(llmgw_round_t *round, llmgw_picked_t *picked);
void llmgw_walk_note(llmgw_round_t *round, uint32_t peer);
int llmgw_walk_best(llmgw_round_t *round, llmgw_picked_t *picked);

/*
 * By which route a request with that key comes to that peer, as far as the ring
 * knows.
 */
llmgw_route_t llmgw_walk_route(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key, uint32_t peer);

int llmgw_find_first(llmgw_round_t *round, llmgw_picked_t *picked);
void llmgw_find_note(llmgw_round_t *round, uint32_t peer);
int llmgw_find_best(llmgw_round_t *round, llmgw_picked_t *picked);

#endif /* LLMGW_ROUND_H */
