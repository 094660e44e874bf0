
/*
 * A policy: which of the eligible peers is best for a request.
 *
 * Eligibility is judged before the policy (peer.h), and what follows when no
 * peer is eligible is decided after it (pick.h), so a policy is one file of
 * three functions.  The pick asks the policies of its list one after the
 * other:
 *
 *     begin()   may answer at once, from a few peers that it looks at itself
 *               with llmgw_peer_lacks(); the ring does so nearly always
 *     note()    otherwise each policy is told of all eligible peers, each
 *               once, in ascending order, in batches
 *     choose()  names the best, or leaves the choice to the next policy; it
 *               is asked only when some peer is eligible
 *
 * A policy keeps what it needs from begin() to choose() in its scratch memory,
 * LLMGW_POLICY_SCRATCH bytes, aligned for uint64_t.  It has no memory from one
 * request to the next, no clock and no random source but the key's.
 */

#ifndef LLMGW_POLICY_H
#define LLMGW_POLICY_H

#include "core/policy/peer.h"


#define LLMGW_POLICY_SCRATCH  64

typedef enum {
    LLMGW_ROUTE_AFFINITY = 0,   /* the peer of the key's first point */
    LLMGW_ROUTE_SPILL,          /* a later one on the ring */
    LLMGW_ROUTE_LEAST_CONN,
    LLMGW_ROUTE_POLICY,         /* by its rank */
    LLMGW_ROUTE_COLD            /* the same, and the policy reads prefixes, and
                                   nothing of the prompt is there */
} llmgw_route_t;

typedef struct {
    uint32_t       peer;
    llmgw_route_t  route;
} llmgw_picked_t;


/* In logs. */
const char *llmgw_route_name(llmgw_route_t route);


/* A look at the peers of one state. */
typedef struct {
    const llmgw_pick_pool_t  *pool;
    const llmgw_pick_key_t   *key;
    llmgw_peer_state_t        state;
} llmgw_policy_round_t;

typedef struct {
    /* Returns 1 and sets *picked: the answer; 0: look at all peers. */
    int   (*begin)(const llmgw_policy_round_t *round, void *scratch,
                   llmgw_picked_t *picked);

    void  (*note)(const llmgw_policy_round_t *round, void *scratch,
                  const uint32_t *peers, size_t n);

    /* Returns 1 and sets *picked; 0: no opinion. */
    int   (*choose)(const llmgw_policy_round_t *round, void *scratch,
                    llmgw_picked_t *picked);
} llmgw_policy_t;


/* ring.c: the key's place on the ring, with bounded load */
extern const llmgw_policy_t  llmgw_policy_ring;

/* ranked.c: the highest rank; asked in place of the ring */
extern const llmgw_policy_t  llmgw_policy_ranked;

/* How a request with that key comes to that peer, as far as the ring knows. */
llmgw_route_t llmgw_policy_ring_route(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key, uint32_t peer);

/* least_load.c: the least load for its weight, ties at random */
extern const llmgw_policy_t  llmgw_policy_least_load;

#endif /* LLMGW_POLICY_H */
