
/*
 * Push-pull sync: repairs what gossip has missed.
 *
 * Updates are sent a bounded number of times, so under loss, or to a member
 * that was away, some never arrive.  Every ten seconds each agent sends a
 * digest of its table to one other.  If the digests differ, both send their
 * tables, and the order of updates (table/member.h) decides each record: a
 * sync does not revive a dead member.
 *
 * The same round forgets tombstones past their time.
 */

#include <string.h>

#include "swim/swim_inner.h"
#include "swim/table/tombstone.h"


/* The interval varies by a tenth, so that a cluster started at once does not
   stay in step. */
#define SYNC_INTERVAL_US  (10 * SWIM_S)


static uint64_t
sync_digest(const swim_t *swim, uint64_t now_us)
{
    return table_digest(&swim->table, now_us, TOMBSTONE_TOLD_US);
}


static void
sync_send(swim_t *swim, packet_type_t type, const member_t *to,
    uint64_t sequence, uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = type;
    message.member = to;
    message.sequence = sequence;
    message.table_digest = type == PACKET_SYNC ? sync_digest(swim, now_us) : 0;
    message.is_bare = 1;

    swim_send(swim, &message, now_us);
}


void
sync_recv(swim_t *swim, member_t *sender, const packet_head_t *sync,
    uint64_t now_us)
{
    swim->counters.syncs++;

    if (sync->table_digest == sync_digest(swim, now_us)) {
        return;
    }

    swim->counters.syncs_differed++;
    join_asked(swim, sender, sync->sequence, now_us);
    sync_send(swim, PACKET_JOIN, sender, swim->join.sequence, now_us);
}


static void
sync_forget_dead(swim_t *swim, uint64_t now_us)
{
    size_t     i;
    member_t  *member;

    if (swim->is_isolated && swim->table.npresent == 1) {
        return;         /* we are cut off from all members: none of them would
                           be found again */
    }

    for (i = swim->table.n; i > 0; i--) {
        member = swim->table.members[i - 1];

        if (member != swim->own
            && member_age_s(member, now_us) * SWIM_S >= TOMBSTONE_US)
        {
            swim_remove(swim, member);
        }
    }

    if (swim->is_isolated) {
        isolation_count(swim, now_us);
    }
}


void
sync_tick(swim_t *swim, uint64_t now_us)
{
    member_t  *member;

    sync_forget_dead(swim, now_us);

    if (swim_pick(swim, &member, 1, swim_fits_present, NULL) == 1) {
        sync_send(swim, PACKET_SYNC, member, ++swim->sequence, now_us);
    }

    swim->sync_us = now_us + SYNC_INTERVAL_US * 9 / 10
                    + rnd_below(&swim->rnd, SYNC_INTERVAL_US / 5);
}


uint64_t
sync_next_us(const swim_t *swim)
{
    return swim->sync_us;
}
