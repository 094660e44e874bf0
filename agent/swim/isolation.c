
/*
 * Is it the others that died, or are we cut off?
 *
 * When over half of the members that were present in the last 30 s are DEAD, it
 * is more likely that our own gossip is cut.  Shards do not count: they are a
 * few machines that may fail together.  nginx then treats DEAD members like
 * suspects, and its own connections judge them (llmgw_members_publish(),
 * isolated).
 *
 * The members that were present when the isolation began are remembered, by one
 * bit each, and it ends when no more than half of those are DEAD.  Without this
 * memory it would end by itself after 30 s, while the cut still lasts.
 *
 * What is in the segment of an isolated agent outlives the agent (restore.c).
 */

#include "swim/swim_inner.h"


#define ISOLATION_MEMORY_US  (30 * SWIM_S)


static int
isolation_was_there(const swim_t *swim, const member_t *member,
    uint64_t now_us)
{
    uint64_t  from_us;

    if (member->facts.is_shard) {
        return 0;
    }

    if (swim->is_isolated) {
        return member->is_base;
    }

    from_us = now_us > ISOLATION_MEMORY_US ? now_us - ISOLATION_MEMORY_US : 1;

    return member->present_until_us >= from_us;
}


static void
isolation_set(swim_t *swim, int is_isolated, uint64_t now_us)
{
    size_t     i;
    member_t  *member;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];
        member->is_base = is_isolated
                          && isolation_was_there(swim, member, now_us);
    }

    swim->is_isolated = is_isolated;
    swim->counters.isolations += is_isolated;
}


/* Decides whether we are isolated.  Our own record is no sign of that. */
void
isolation_count(swim_t *swim, uint64_t now_us)
{
    int        is_isolated;
    size_t     i, nbase, ndead;
    member_t  *member;

    nbase = 0;
    ndead = 0;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];

        if (member != swim->own && isolation_was_there(swim, member, now_us)) {
            nbase++;
            ndead += member->facts.liveness == LLMGW_LIVENESS_DEAD;
        }
    }

    is_isolated = ndead * 2 > nbase;

    if (is_isolated != swim->is_isolated) {
        isolation_set(swim, is_isolated, now_us);
    }
}


/* The segment does not say which members the predecessor counted.  So each
   member in it counts, unless it is LEFT. */
void
isolation_restore(swim_t *swim, uint64_t now_us)
{
    size_t     i;
    member_t  *member;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];
        member->is_base = member->facts.liveness != LLMGW_LIVENESS_LEFT;
    }

    swim->is_isolated = 1;
    isolation_count(swim, now_us);
}
