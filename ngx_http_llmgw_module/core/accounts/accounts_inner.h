
/* Shared by the files of accounts: changes, buckets, periods. */

#ifndef LLMGW_ACCOUNTS_INNER_H
#define LLMGW_ACCOUNTS_INNER_H

#include "core/accounts/accounts.h"


/* Of a level in one token or request: limit x 1 ms is a whole number. */
#define LEVEL_UNIT       60000

/* Number of slots or accounts that are examined for one to be reused. */
#define LOOK_AT_MOST     256


/*
 * A change: between begin() and commit() stand the stores to that account, that
 * slot, *link and the words, and to nothing else.  The lock orders them for
 * other processors, also when the process dies; so only the compiler must be
 * kept from reordering them.
 */
void accounts_begin(llmgw_accounts_t *accounts, uint32_t account,
    uint32_t slot, uint32_t *link);
void accounts_commit(llmgw_accounts_t *accounts);

/*
 * The account of that name, found or added; LLMGW_NO_ACCOUNT: no room is left.
 */
uint32_t accounts_attach(llmgw_accounts_t *accounts,
    llmgw_accounts_text_t name, const llmgw_moment_t *now);

/* A FREE slot, which stays where it is; LLMGW_NO_USAGE_SLOT: none is left. */
uint32_t accounts_free_slot(llmgw_accounts_t *accounts);

/* In a change of the words: that slot, which was the free one, is used. */
void accounts_use_slot(llmgw_accounts_t *accounts, uint32_t slot);

/* Both sums have the period of now, or their own if that is later. */
void account_roll(llmgw_account_t *account, const llmgw_moment_t *now);

/* As it is now, by the limit that it was filled by. */
void level_fill(llmgw_level_t *level, uint64_t limit, uint64_t now_ms);

/* Takes n, or returns -n if n is negative; without a limit it does nothing. */
void level_take(llmgw_level_t *level, uint64_t limit, int64_t n);

/* Of one that was filled. */
llmgw_rate_t level_rate(const llmgw_level_t *level, uint64_t limit);

#endif /* LLMGW_ACCOUNTS_INNER_H */
