
/*
 * Hedge: whether a request may be sent to a second replica, too.
 *
 * A hedge cuts the tail of the time to the first token, and costs some
 * replica's work (Dean, Barroso: The Tail at Scale, 2013).  When everything is
 * slow, every request would be sent twice and all become slower.  Two guards
 * prevent it.
 *
 * The budget is a token bucket that requests fill.  Each brings
 * budget_permille thousandths of a hedge; unused credit is kept up to BURST
 * hedges, so that several slow starts in a row can all be hedged.  LOAN hedges
 * are lent at the start, so that light traffic is hedged, too; the first
 * requests pay them back before they earn more.  So of n requests in a row,
 * counted from the start,
 *
 *     hedges <= max(LOAN, n x budget)
 *
 * and of any n in a row: hedges <= BURST + n x budget.
 *
 * A saturated pool is not hedged at all: the second attempt would take the
 * place of another request's first.
 *
 * The budget lives in memory that processes share, under its lock; zeroed
 * memory is a new one.
 */

#ifndef LLMGW_HEDGE_H
#define LLMGW_HEDGE_H

#include <stdint.h>

#include "core/policy/peer.h"


#define LLMGW_HEDGE_LOAN   2
#define LLMGW_HEDGE_BURST  10

/* Nine places in ten are taken or, with fewer than ten, all of them. */
#define LLMGW_HEDGE_SATURATED_PERMILLE  900

typedef struct {
    int32_t   credit_permille;  /* thousandths of a hedge, less the loan */
    uint32_t  repaid_permille;  /* how much of the loan */
} llmgw_hedge_budget_t;


/* A request begins: once for each, whatever the number of its attempts. */
void llmgw_hedge_note_request(llmgw_hedge_budget_t *budget,
    uint32_t budget_permille);

/* 1: the budget has a hedge left; never with budget_permille 0. */
int llmgw_hedge_may_hedge(const llmgw_hedge_budget_t *budget,
    uint32_t budget_permille);

/* To be called when a hedge is sent, after may_hedge() under the same lock. */
void llmgw_hedge_note_hedge(llmgw_hedge_budget_t *budget);

/*
 * 1: the living peers that their breakers admit have no places to spare: this
 * gateway's attempts take too many.  A peer that is marked full has no free
 * place, one without a limit always has some.
 */
int llmgw_hedge_is_saturated(const llmgw_pick_pool_t *pool, uint64_t now_ms);

#endif /* LLMGW_HEDGE_H */
