
/*
 * An account's usage in a day and in a month of UTC.  A period ends when a
 * later one is named; nothing opens an earlier one again.
 */

#ifndef LLMGW_SUMS_H
#define LLMGW_SUMS_H

#include <stdint.h>

#include "proto/limits.h"


typedef struct {
    uint32_t  number[LLMGW_NPERIODS];   /* of date.h; 0: nothing was used yet */
    uint64_t  used[LLMGW_NPERIODS];     /* tokens: prompt and completion;
                                           LLMGW_USAGE_NUMBER_MAX at most */
} llmgw_sums_t;


/* Ends the periods that are over at that time. */
void llmgw_sums_roll(llmgw_sums_t *sums, uint64_t unix_ms);

/* Adds tokens used at that time; tokens of an earlier period are dropped. */
void llmgw_sums_use(llmgw_sums_t *sums, uint64_t unix_ms, uint64_t tokens);

/*
 * Adds the sums of `others`: of each kind the later period stays, and sums of
 * an earlier one are dropped.
 */
void llmgw_sums_add(llmgw_sums_t *sums, const llmgw_sums_t *other);

#endif /* LLMGW_SUMS_H */
