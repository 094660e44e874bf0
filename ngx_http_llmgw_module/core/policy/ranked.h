
/*
 * Candidates that were ranked, for the pick: the one with the highest rank
 * that is eligible.
 *
 * A policy that reads the fleet (rank.h) looks at all candidates, which takes
 * as long as there are replicas.  So they are ranked before the lock is taken,
 * and put in order (order.h); under the lock the pick draws from the best down
 * and asks about each whether it is eligible.  Others may have taken its last
 * place since, so the answer is right, and costs one draw more.
 *
 * After LLMGW_RANKED_DRAWS that lack something most of them probably do.  Then
 * the pick looks at all peers once, as it does for every policy, and the best
 * of those that are eligible is the answer: for a full pool drawing one by one
 * would cost more.
 *
 * Candidates are in the same state, all of them.  Peers in the other state,
 * and those that are no candidates, are left to the policy behind this one.
 */

#ifndef LLMGW_RANKED_H
#define LLMGW_RANKED_H

#include "core/policy/order.h"
#include "core/policy/policy.h"


#define LLMGW_RANKED_DRAWS  32

/* A candidate that was drawn and was not eligible. */
typedef struct {
    uint32_t       position;
    llmgw_lacks_t  lacks;
} llmgw_draw_t;

/* For one claim, which may ask more than once. */
struct llmgw_ranked_s {
    llmgw_order_t        order;
    const uint32_t      *peers;     /* of each candidate, ascending */
    uint32_t             n;
    llmgw_peer_state_t   state;
    uint32_t             ndraws;
    llmgw_draw_t         draws[LLMGW_RANKED_DRAWS];
};


/*
 * ranks, peers, heap (memory for n positions) and *random stay the caller's;
 * see llmgw_order_init().
 */
void llmgw_ranked_init(llmgw_ranked_t *ranked, llmgw_peer_state_t state,
    const uint32_t *peers, const double *ranks, uint32_t n, uint32_t *heap,
    const uint64_t *random);

/* A peer's position among the candidates; UINT32_MAX: it is none. */
uint32_t llmgw_ranked_position(const llmgw_ranked_t *ranked, uint32_t peer);

#endif /* LLMGW_RANKED_H */
