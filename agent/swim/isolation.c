
/*
 * Is it they who died, or are we cut off?
 *
 * Over half of those who were there 30 s ago are DEAD, all of a sudden: more
 * likely it is our own gossip that is cut.  nginx then takes the DEAD for
 * suspects and lets its own connections judge (llmgw_members_publish(),
 * isolated).
 *
 * Who was there when it began is remembered, one bit a member, and it ends
 * when no more than half of those are DEAD: 30 s into a cut nobody was there
 * 30 s ago, and the cut goes on all the same.
 */

#include "swim/swim_inner.h"


#define ISOLATION_MEMORY_US  (30 * SWIM_S)


static int
isolation_was_there(const swim_t *swim, const member_t *member,
    uint64_t now_us)
{
    uint64_t  then_us;

    if (swim->is_isolated) {
        return member->is_base;
    }

    then_us = now_us > ISOLATION_MEMORY_US ? now_us - ISOLATION_MEMORY_US : 0;

    return member->present_from_us <= then_us
           && member->present_until_us >= then_us;
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


/* Our own record is no witness. */
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
