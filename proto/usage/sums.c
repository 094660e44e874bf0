
/* Sums by period.  sums.h has the rules. */

#include "proto/date.h"
#include "proto/usage/record.h"
#include "proto/usage/sums.h"


void
llmgw_sums_add(llmgw_sums_t *sums, const llmgw_sums_t *other)
{
    uint32_t  i;

    for (i = 0; i < LLMGW_NPERIODS; i++) {

        if (sums->number[i] < other->number[i]) {
            sums->number[i] = other->number[i];
            sums->used[i] = other->used[i];

        } else if (sums->number[i] == other->number[i]) {
            sums->used[i] += other->used[i];
        }

        if (sums->used[i] > LLMGW_USAGE_NUMBER_MAX) {
            sums->used[i] = LLMGW_USAGE_NUMBER_MAX;
        }
    }
}


void
llmgw_sums_roll(llmgw_sums_t *sums, uint64_t unix_ms)
{
    llmgw_sums_use(sums, unix_ms, 0);
}


void
llmgw_sums_use(llmgw_sums_t *sums, uint64_t unix_ms, uint64_t tokens)
{
    uint32_t      i;
    llmgw_sums_t  now;

    for (i = 0; i < LLMGW_NPERIODS; i++) {
        now.number[i] = llmgw_period_number(i, unix_ms);
        now.used[i] = tokens;
    }

    llmgw_sums_add(sums, &now);
}
