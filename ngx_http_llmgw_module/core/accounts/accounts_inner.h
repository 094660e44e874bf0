
/* Shared by the files of accounts: changes, buckets, periods. */

#ifndef LLMGW_ACCOUNTS_INNER_H
#define LLMGW_ACCOUNTS_INNER_H

#include "core/accounts/accounts.h"


/*
 * Units of a level for one token or request: limit x 1 ms is a whole number of
 * them.
 */
#define LEVEL_UNIT       60000

/* Number of slots or accounts that are examined for one to be reused. */
#define LOOK_AT_MOST     256


/*
 * A change: all its stores are between begin() and commit(), and go to that
 * account, that slot, *link and the words only.  The lock orders them for other
 * processors, also when the process dies; so only the compiler must be kept
 * from reordering them.
 */
void accounts_begin(llmgw_accounts_t *accounts, uint32_t account,
    uint32_t slot, uint32_t *link);
void accounts_commit(llmgw_accounts_t *accounts);

/*
 * The account of that name, found or added; LLMGW_NO_ACCOUNT: no room is left.
 */
uint32_t accounts_attach(llmgw_accounts_t *accounts,
    llmgw_accounts_text_t name, const llmgw_moment_t *now);

/*
 * A FREE slot, which stays on the free list; LLMGW_NO_USAGE_SLOT: none is left.
 */
uint32_t accounts_free_slot(llmgw_accounts_t *accounts);

/*
 * To be called within a change of the words: takes that slot, which
 * accounts_free_slot() returned, off the free list.
 */
void accounts_use_slot(llmgw_accounts_t *accounts, uint32_t slot);

/* Moves both sums to the period of now, or their own if that is later. */
void account_roll(llmgw_account_t *account, const llmgw_moment_t *now);

/* Fills the level up to now, by the limit by which it was filled before. */
void level_fill(llmgw_level_t *level, uint64_t limit, uint64_t now_ms);

/* Takes n, or returns -n if n is negative; without a limit it does nothing. */
void level_take(llmgw_level_t *level, uint64_t limit, int64_t n);

/* Of a level that was filled up to now. */
llmgw_rate_t level_rate(const llmgw_level_t *level, uint64_t limit);

#endif /* LLMGW_ACCOUNTS_INNER_H */
