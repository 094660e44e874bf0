
/* Hedge: the budget and the saturated pool.  hedge.h has the reasons. */

#include "core/admission/hedge.h"


#define HEDGE_PERMILLE  1000    /* the price of a hedge */
#define LOAN_PERMILLE   (LLMGW_HEDGE_LOAN * HEDGE_PERMILLE)
#define BURST_PERMILLE  (LLMGW_HEDGE_BURST * HEDGE_PERMILLE)


void
llmgw_hedge_note_request(llmgw_hedge_budget_t *budget,
    uint32_t budget_permille)
{
    uint32_t  earned, owed;

    earned = budget_permille;
    owed = LOAN_PERMILLE - budget->repaid_permille;

    if (earned <= owed) {
        budget->repaid_permille += earned;
        return;
    }

    budget->repaid_permille = LOAN_PERMILLE;
    earned -= owed;

    /* The credit is at least -LOAN_PERMILLE, so this does not overflow. */
    if (earned > BURST_PERMILLE
        || budget->credit_permille
           > BURST_PERMILLE - LOAN_PERMILLE - (int32_t) earned)
    {
        budget->credit_permille = BURST_PERMILLE - LOAN_PERMILLE;
        return;
    }

    budget->credit_permille += (int32_t) earned;
}


int
llmgw_hedge_may_hedge(const llmgw_hedge_budget_t *budget,
    uint32_t budget_permille)
{
    return budget_permille != 0
           && budget->credit_permille + LOAN_PERMILLE >= HEDGE_PERMILLE;
}


void
llmgw_hedge_note_hedge(llmgw_hedge_budget_t *budget)
{
    budget->credit_permille -= HEDGE_PERMILLE;

    if (budget->credit_permille < -LOAN_PERMILLE) {
        budget->credit_permille = -LOAN_PERMILLE;
    }
}


int
llmgw_hedge_is_saturated(const llmgw_pick_pool_t *pool, uint64_t now_ms)
{
    int                       has_capacity;
    size_t                    i;
    uint64_t                  places, taken;
    const llmgw_pick_peer_t  *peer;

    places = 0;
    taken = 0;

    for (i = 0; i < pool->npeers; i++) {
        peer = &pool->peers[i];

        if (peer->state != LLMGW_PEER_ALIVE
            || !llmgw_peer_is_admitted(pool, peer, now_ms))
        {
            continue;
        }

        has_capacity = llmgw_peer_has_capacity(peer, now_ms);

        if (has_capacity && peer->max_capacity == 0) {
            return 0;
        }

        places += peer->max_capacity;

        if (!has_capacity) {
            taken += peer->max_capacity;

        } else if (peer->counts != NULL) {
            taken += __atomic_load_n(&peer->counts->in_flight,
                                     __ATOMIC_RELAXED);
        }
    }

    return taken * 1000 >= places * LLMGW_HEDGE_SATURATED_PERMILLE;
}
