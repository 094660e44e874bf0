
/*
 * Getting the table, and giving it.
 *
 * A starting agent sends JOIN to its seeds, and to members that it has met,
 * until a first answer comes in TABLE messages.  The seed pings a stranger
 * before it sends it a table (stranger.c), which is also how the seed comes to
 * know it.  If two agents start at the same time and each names the other as a
 * seed, both ask and both answer.  An agent without seeds asks no member: it is
 * a cluster of one until another agent joins.
 *
 * A seed at whose address no member is known is asked every ten seconds, even
 * after the table has come.  The seed may start later than all agents that name
 * it; and when a network was cut in two, this finds the other half.
 */

#include <string.h>

#include "swim/swim_inner.h"


/* Retries are quick at first, since all agents may be starting.  An agent
   without a table asks once a second; one that has a table has time. */
#define JOIN_FIRST_BACKOFF_US   (100 * SWIM_MS)
#define JOIN_ALONE_BACKOFF_US   SWIM_S
#define JOIN_ABSENT_BACKOFF_US  (10 * SWIM_S)

/*
 * A member gets at most one table in this time: a forged JOIN must not make us
 * flood.
 */
#define JOIN_TABLE_INTERVAL_US (100 * SWIM_MS)


void
swim_set_seeds(swim_t *swim, const address_t *seeds, size_t n,
    uint64_t now_us)
{
    join_t  *join;

    join = &swim->join;

    if (join->nseeds == 0) {
        join->next_us = now_us;
        join->backoff_us = 0;
    }

    join->nseeds = n < SWIM_MAX_SEEDS ? n : SWIM_MAX_SEEDS;
    memcpy(join->seeds, seeds, join->nseeds * sizeof(address_t));
}


static int
join_is_at(const member_t *member, const char *address)
{
    return member != NULL && member_is_present(member)
           && strcmp(member->facts.address, address) == 0;
}


/* The member that was found there last is probably still there. */
static int
join_is_member(swim_t *swim, size_t seed)
{
    char       address[ADDRESS_TEXT_BYTES];
    char      *found_id;
    size_t     i;

    address_format(&swim->join.seeds[seed], address);
    found_id = swim->join.found_ids[seed];

    if (join_is_at(table_find(&swim->table, found_id), address)) {
        return 1;
    }

    for (i = 0; i < swim->table.n; i++) {
        if (join_is_at(swim->table.members[i], address)) {
            strcpy(found_id, swim->table.members[i]->facts.id);
            return 1;
        }
    }

    return 0;
}


void
join_answer(swim_t *swim, const packet_head_t *table)
{
    if (table->sequence == swim->join.sequence) {
        swim->join.is_done = 1;
    }
}


void
join_asked(swim_t *swim, member_t *member, uint64_t sequence,
    uint64_t now_us)
{
    if (member->table_sent_us != 0
        && now_us < member->table_sent_us + JOIN_TABLE_INTERVAL_US)
    {
        return;
    }

    member->table_sent_us = now_us;
    swim_send_table(swim, member, sequence, now_us);
}


static void
join_ask(swim_t *swim, const address_t *seed, const member_t *member,
    uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_JOIN;
    message.to = seed;
    message.member = member;
    message.sequence = swim->join.sequence;
    message.is_bare = 1;

    swim_send(swim, &message, now_us);
}


void
join_met(swim_t *swim, const member_t *member, uint64_t now_us)
{
    if (!swim->join.is_done) {
        join_ask(swim, NULL, member, now_us);
    }
}


void
join_tick(swim_t *swim, uint64_t now_us)
{
    size_t     i;
    join_t    *join;
    uint64_t   max_us;
    member_t  *member;

    join = &swim->join;

    for (i = 0; i < join->nseeds; i++) {
        if (!join_is_member(swim, i)) {
            join_ask(swim, &join->seeds[i], NULL, now_us);
        }
    }

    if (!join->is_done
        && swim_pick(swim, &member, 1, swim_fits_present, NULL) == 1)
    {
        join_ask(swim, NULL, member, now_us);
    }

    join->backoff_us = join->backoff_us ? join->backoff_us * 2
                                        : JOIN_FIRST_BACKOFF_US;

    max_us = join->is_done ? JOIN_ABSENT_BACKOFF_US : JOIN_ALONE_BACKOFF_US;

    if (join->backoff_us > max_us) {
        join->backoff_us = max_us;
    }

    join->next_us = now_us + join->backoff_us;
}


uint64_t
join_next_us(const swim_t *swim)
{
    return swim->join.is_done && swim->join.nseeds == 0 ? SWIM_NEVER
                                                        : swim->join.next_us;
}
