
/*
 * Full: how long a replica that has refused an attempt is passed over.
 *
 * Two different things follow from a refusal.  Other requests leave the replica
 * alone for a moment, by a mark that all workers share: 100 ms, and twice as
 * long with each refusal that follows, up to 1 s.  A refusal may concern one
 * tenant alone, so the mark ends early: with a first token that the replica
 * sends, or when it reports less load than it had.  The request that was
 * refused stays away for longer: as long as the replica asks for, 10 s at most.
 *
 *              refused                      refused, once the mark is over
 *     none --------------> marked, 100 ms ---------------> marked, 200 ms ...
 *       ^                      |
 *       '----------------------'
 *         a first token, or less load
 *
 * Attempts that are refused while the mark is set had begun before it, so they
 * add nothing.
 *
 * Lives beside the counts in shared memory and changes under its lock; zeroed
 * memory is no mark.  now_ms is monotonic.
 */

#ifndef LLMGW_FULL_H
#define LLMGW_FULL_H

#include <stdint.h>


#define LLMGW_FULL_MS           100     /* doubles with each refusal */
#define LLMGW_FULL_MAX_MS       1000
#define LLMGW_PUSHBACK_MAX_MS   10000   /* whatever the replica asks for */
#define LLMGW_PUSHBACK_NONE     INT64_MIN   /* it asked for nothing */

typedef struct {
    uint64_t  until_ms;         /* the end of the last mark */
    uint32_t  hold_ms;          /* how long that was; 0: no mark is known */
    uint32_t  load;             /* as last reported; a lower one ends it */
} llmgw_full_t;


/* May be read without the lock. */
static inline int
llmgw_full_stands(const llmgw_full_t *full, uint64_t now_ms)
{
    return now_ms < __atomic_load_n(&full->until_ms, __ATOMIC_RELAXED);
}


/*
 * 1: a refusal is remembered, which a first token would end.  May be read
 * without the lock.
 */
static inline int
llmgw_full_is_known(const llmgw_full_t *full)
{
    return __atomic_load_n(&full->hold_ms, __ATOMIC_RELAXED) != 0;
}


/* load: from the replica's last report; 0: it has none. */
void llmgw_full_refused(llmgw_full_t *full, uint32_t load, uint64_t now_ms);

/* A first token has come. */
void llmgw_full_serves(llmgw_full_t *full);

/* The replica reports this load now. */
void llmgw_full_reports(llmgw_full_t *full, uint32_t load);

/*
 * How long the refused request itself stays away. said_ms: what the replica
 * asked for, negative for "for good", or PUSHBACK_NONE; refusals: of this
 * request so far, this one included.  At least LLMGW_FULL_MS.
 */
uint32_t llmgw_full_pushback_ms(int64_t said_ms, uint32_t refusals);

#endif /* LLMGW_FULL_H */
