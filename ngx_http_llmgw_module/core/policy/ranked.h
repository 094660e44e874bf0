
/*
 * Candidates that were ranked, for the pick: the one with the highest rank
 * that is eligible.
 *
 * A policy that reads the fleet (rank.h) looks at all candidates, which takes
 * as long as there are replicas.  So they are ranked before the lock is taken,
 * and the best few are put in order; under the lock the pick draws from the
 * best down and asks about each whether it is eligible.  Other claims may have
 * taken a replica's last place since it was ranked; the pick then draws once
 * more, and its result is still right.
 *
 * Where none of the best few is eligible, most of them probably are not.  Then
 * the pick surveys all peers once, as it does on the ring, and takes the
 * eligible candidate with the highest rank.
 *
 * All candidates are in one state.  Other peers are chosen by the least load,
 * and only if no candidate is eligible.
 */

#ifndef LLMGW_RANKED_H
#define LLMGW_RANKED_H

#include "core/policy/order.h"
#include "core/policy/peer.h"


/*
 * Of 1,000 candidates a heap of all takes twice as long to make, 4 us, and a
 * draw from it ten comparisons, under the lock.
 */
#define LLMGW_RANKED_BEST  8

/* A candidate that was drawn and was not eligible. */
typedef struct {
    uint32_t       position;
    llmgw_lacks_t  lacks;
} llmgw_draw_t;

/* For one claim, which may ask more than once. */
struct llmgw_ranked_s {
    const double        *ranks;     /* of each candidate */
    const uint64_t      *random;    /* see order.h */
    const uint32_t      *peers;     /* of each candidate, ascending */
    uint32_t             n;
    llmgw_peer_state_t   state;
    uint32_t             nbest;
    uint32_t             best[LLMGW_RANKED_BEST];   /* positions */
    int                  is_drawn;
    uint32_t             ndraws;    /* the first of `best` */
    llmgw_draw_t         draws[LLMGW_RANKED_BEST];
};


/* ranks, peers and *random stay the caller's. */
void llmgw_ranked_init(llmgw_ranked_t *ranked, llmgw_peer_state_t state,
    const uint32_t *peers, const double *ranks, uint32_t n,
    const uint64_t *random);

/* 1: position a comes before b. */
static inline int
llmgw_ranked_is_before(const llmgw_ranked_t *ranked, uint32_t a, uint32_t b)
{
    return llmgw_order_is_before(ranked->ranks, ranked->random, a, b);
}

/*
 * 1: one of the best few is eligible, so pool->ranked will name the replica, if
 * any is picked; 0: the pick has to look at all peers.  Changes nothing.
 */
int llmgw_ranked_has_eligible(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key);

/* A peer's position among the candidates; UINT32_MAX: it is not a candidate. */
uint32_t llmgw_ranked_position(const llmgw_ranked_t *ranked, uint32_t peer);

#endif /* LLMGW_RANKED_H */
