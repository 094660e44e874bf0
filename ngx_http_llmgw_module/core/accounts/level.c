
/* Buckets of accounts, in whole numbers.  accounts.h has the rules. */

#include "core/accounts/accounts_inner.h"


/* Of tokens: a debt is no greater, and fits into 64 bits with all limits. */
#define LEVEL_DEBT_MAX  ((int64_t) LLMGW_LIMIT_MAX * LEVEL_UNIT)


void
level_fill(llmgw_level_t *level, uint64_t limit, uint64_t now_ms)
{
    int64_t   full;
    uint64_t  missing, elapsed;

    if (now_ms <= level->filled_ms) {
        return;
    }

    elapsed = now_ms - level->filled_ms;
    level->filled_ms = now_ms;
    full = (int64_t) limit * LEVEL_UNIT;

    if (level->level >= full) {
        return;
    }

    missing = (uint64_t) (full - level->level);

    if (elapsed > missing / limit) {
        level->level = full;

    } else {
        level->level += (int64_t) (elapsed * limit);
    }
}


void
level_take(llmgw_level_t *level, uint64_t limit, int64_t n)
{
    int64_t  full;

    if (limit == 0) {
        return;
    }

    full = (int64_t) limit * LEVEL_UNIT;
    level->level -= n * LEVEL_UNIT;

    if (level->level > full) {
        level->level = full;

    } else if (level->level < -LEVEL_DEBT_MAX) {
        level->level = -LEVEL_DEBT_MAX;
    }
}


llmgw_rate_t
level_rate(const llmgw_level_t *level, uint64_t limit)
{
    llmgw_rate_t  rate = { 0 };

    if (limit == 0) {
        return rate;
    }

    rate.limit = limit;
    rate.remaining = level->level > 0 ? (uint64_t) level->level / LEVEL_UNIT
                                      : 0;
    rate.reset_ms = ((uint64_t) ((int64_t) limit * LEVEL_UNIT - level->level)
                     + limit - 1) / limit;

    return rate;
}
