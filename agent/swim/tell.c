
/*
 * What must reach each of some members, and soon: the own record, pinged to
 * them again and again until each has acked or the tries are used up.
 *
 *     gateways, after a change of the own replica:  every 10 ms, 10 times
 *     everybody, when leaving:                     every 100 ms, 10 times
 *
 * Ten tries of 10 ms end before the queue of news has the change everywhere
 * anyway; ten of 100 ms are the second that an agent takes to leave.  A
 * later telling replaces an earlier one: it says the same record, newer.
 */

#include <stdlib.h>
#include <string.h>

#include "swim/swim_inner.h"


#define TELL_TRIES               10
#define TELL_GATEWAY_INTERVAL_US (10 * SWIM_MS)
#define TELL_ALL_INTERVAL_US     (100 * SWIM_MS)


static void
tell_add_target(swim_t *swim, member_t *member)
{
    size_t      capacity;
    tell_t     *tell;
    member_t  **targets;

    tell = &swim->tell;

    if (tell->n == tell->capacity) {
        capacity = tell->capacity ? tell->capacity * 2 : 8;
        targets = realloc(tell->targets, capacity * sizeof(member_t *));
        if (targets == NULL) {
            return;     /* the queue of news has it too */
        }

        tell->targets = targets;
        tell->capacity = capacity;
    }

    tell->targets[tell->n++] = member;
}


static void
tell_begin(swim_t *swim, int is_gateways, uint64_t interval_us,
    uint64_t now_us)
{
    size_t     i;
    tell_t    *tell;
    member_t  *member;

    tell = &swim->tell;
    tell->n = 0;
    tell->sequence = ++swim->sequence;
    tell->interval_us = interval_us;
    tell->tries = TELL_TRIES;
    tell->next_us = now_us;

    for (i = 0; i < swim->table.n; i++) {
        member = swim->table.members[i];

        if (member != swim->own && member_is_present(member)
            && (!is_gateways || member->facts.role == LLMGW_ROLE_GATEWAY))
        {
            tell_add_target(swim, member);
        }
    }

    tell_tick(swim, now_us);
}


void
tell_gateways(swim_t *swim, uint64_t now_us)
{
    tell_begin(swim, 1, TELL_GATEWAY_INTERVAL_US, now_us);
}


void
tell_all(swim_t *swim, uint64_t now_us)
{
    tell_begin(swim, 0, TELL_ALL_INTERVAL_US, now_us);
}


static void
tell_remove(tell_t *tell, size_t i)
{
    tell->targets[i] = tell->targets[--tell->n];
}


void
tell_drop(swim_t *swim, const member_t *member)
{
    size_t  i;

    for (i = 0; i < swim->tell.n; i++) {
        if (swim->tell.targets[i] == member) {
            tell_remove(&swim->tell, i);
            return;
        }
    }
}


void
tell_ack(swim_t *swim, const packet_head_t *ack)
{
    if (swim->tell.n > 0 && swim->tell.sequence == ack->sequence) {
        tell_drop(swim, table_find(&swim->table, ack->sender_id));
    }
}


void
tell_tick(swim_t *swim, uint64_t now_us)
{
    size_t         i;
    tell_t        *tell;
    swim_letter_t  letter;

    tell = &swim->tell;

    if (tell->tries == 0) {
        tell->n = 0;
        return;
    }

    memset(&letter, 0, sizeof(letter));
    letter.type = PACKET_PING;
    letter.sequence = tell->sequence;

    for (i = 0; i < tell->n; i++) {
        letter.member = tell->targets[i];
        letter.target_id = tell->targets[i]->facts.id;
        swim_send(swim, &letter, now_us);
    }

    tell->tries--;
    tell->next_us = now_us + tell->interval_us;
}


uint64_t
tell_next_us(const swim_t *swim)
{
    return swim->tell.n > 0 ? swim->tell.next_us : SWIM_NEVER;
}
