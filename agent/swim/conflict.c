
/*
 * The own id at another address: an earlier run of ours, or a second agent.
 *
 *     id is found at     +-------+  5 pings, 200 ms apart
 *     a later epoch ---> | asked | --(no answer)--------> an earlier run: we
 *                        +-------+                        take its epoch + 1
 *                            |
 *                            +--(an answer with another boot nonce)-->
 *                                  the one that has run for less is the later
 *                                  one: if we are, the owner is to end;
 *                                  if it is, we take its epoch + 1
 *
 * Epochs do not show which of the two started first, since clocks are set back
 * and forth.  So the answer carries how long its sender has run.  The boot
 * nonce distinguishes another agent from ourselves, and decides if both have
 * run for the same time.  The agent that is asked asks back: no agent ends
 * because of an answer that it did not ask for, since anyone could send one.
 *
 * A later epoch at our own address is an earlier run's.  No agent is asked
 * about it, since only one process can be bound there.
 */

#include <string.h>

#include "swim/swim_inner.h"


#define CONFLICT_TRIES        5
#define CONFLICT_RETRY_US     (200 * SWIM_MS)

/* Two agents that outbid each other do so no more often than this. */
#define CONFLICT_INTERVAL_US  SWIM_S


static void
conflict_outbid(swim_t *swim, uint64_t now_us)
{
    llmgw_member_t  *own;

    own = &swim->own->facts;
    swim->conflict.next_us = SWIM_NEVER;
    swim->conflict.outbid_us = now_us;

    if (swim->conflict.epoch < own->epoch) {
        return;
    }

    own->epoch = swim->conflict.epoch + 1;
    own->incarnation = 0;
    swim_changed(swim, swim->own, MEMBER_FACTS);
}


static void
conflict_ask(swim_t *swim, const char *address, uint64_t now_us)
{
    conflict_t  *conflict;

    conflict = &swim->conflict;

    if (conflict->next_us != SWIM_NEVER) {
        return;         /* it is being asked already */
    }

    swim->counters.conflicts++;
    strcpy(conflict->address, address);
    conflict->sequence = ++swim->sequence;
    conflict->tries = CONFLICT_TRIES;
    conflict->next_us = now_us;
}


void
conflict_found(swim_t *swim, const llmgw_member_t *update, uint64_t now_us)
{
    conflict_t  *conflict;

    conflict = &swim->conflict;

    if (conflict->outbid_us != 0
        && now_us < conflict->outbid_us + CONFLICT_INTERVAL_US)
    {
        return;
    }

    if (update->epoch > conflict->epoch) {
        conflict->epoch = update->epoch;
    }

    if (strcmp(update->address, swim->own->facts.address) == 0) {
        swim->counters.conflicts++;
        conflict_outbid(swim, now_us);
        return;
    }

    conflict_ask(swim, update->address, now_us);
}


static void
conflict_say(swim_t *swim, packet_type_t type, const address_t *to,
    uint64_t sequence, uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = type;
    message.to = to;
    message.target_id = swim->own->facts.id;
    message.sequence = sequence;
    message.is_bare = 1;
    message.is_to_own_id = 1;

    swim_send(swim, &message, now_us);
}


static void
conflict_judge(swim_t *swim, const packet_head_t *answer, uint64_t now_us)
{
    uint64_t  uptime_ms;

    uptime_ms = (now_us - swim->started_us) / 1000;

    if (answer->uptime_ms < uptime_ms
        || (answer->uptime_ms == uptime_ms
            && answer->boot_nonce > swim->boot_nonce))
    {
        if (answer->sender_epoch > swim->conflict.epoch) {
            swim->conflict.epoch = answer->sender_epoch;
        }

        conflict_outbid(swim, now_us);
        return;
    }

    swim->conflict.next_us = SWIM_NEVER;
    swim->config.callbacks->on_conflict(swim->config.data,
                                        swim->conflict.address);
}


void
conflict_recv(swim_t *swim, const packet_head_t *head, const address_t *from,
    uint64_t now_us)
{
    char  address[ADDRESS_TEXT_BYTES];

    if (head->boot_nonce == 0 || head->boot_nonce == swim->boot_nonce) {
        swim->counters.echoes++;
        return;
    }

    if (head->type == PACKET_PING) {
        conflict_say(swim, PACKET_ACK, from, head->sequence, now_us);
        address_format(from, address);
        conflict_ask(swim, address, now_us);

    } else if (head->type == PACKET_ACK
               && swim->conflict.next_us != SWIM_NEVER
               && head->sequence == swim->conflict.sequence)
    {
        conflict_judge(swim, head, now_us);
    }
}


void
conflict_tick(swim_t *swim, uint64_t now_us)
{
    address_t    address;
    conflict_t  *conflict;

    conflict = &swim->conflict;

    if (conflict->tries == 0
        || address_parse(conflict->address, &address) != 0)
    {
        conflict_outbid(swim, now_us);
        return;
    }

    conflict->tries--;
    conflict->next_us = now_us + CONFLICT_RETRY_US;
    conflict_say(swim, PACKET_PING, &address, conflict->sequence, now_us);
}


uint64_t
conflict_next_us(const swim_t *swim)
{
    return swim->conflict.next_us;
}
