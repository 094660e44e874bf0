
/*
 * Pings on behalf of others.  After a PING_REQ we ping its target with a
 * sequence number of our own, and pass the ack on with the asker's number.  If
 * no ack has come after 80 % of the time that the asker waits, we send NACK: we
 * are there and were asked.  An asker that misses it knows that its own
 * connection fails (local_health.c).
 *
 * Pings under way are kept in a ring that forgets the oldest; an ack that
 * comes after the NACK is passed on all the same.  Only members are pinged,
 * and only for members, so no stranger can make us send to an address of its
 * choice.
 */

#include <string.h>

#include "swim/swim_inner.h"


#define RELAY_NACK_PERCENT  80

/* The longest time for which an asker may make us wait: its period, at the
   worst local health. */
#define RELAY_MAX_WAIT_MS   60000


static void
relay_keep(swim_t *swim, const packet_head_t *ping_req, uint64_t now_us)
{
    uint64_t        wait_ms;
    relay_t        *relay;
    relay_entry_t  *entry;

    relay = &swim->relay;
    entry = &relay->entries[relay->next++ % RELAY_MAX];
    entry->sequence = ++swim->sequence;
    entry->origin_sequence = ping_req->sequence;
    entry->nack_us = SWIM_NEVER;
    strcpy(entry->origin_id, ping_req->sender_id);
    strcpy(entry->target_id, ping_req->target_id);

    wait_ms = ping_req->wait_ms < RELAY_MAX_WAIT_MS ? ping_req->wait_ms
                                                    : RELAY_MAX_WAIT_MS;
    if (wait_ms != 0) {
        entry->nack_us = now_us + wait_ms * SWIM_MS * RELAY_NACK_PERCENT
                                  / 100;
        relay->next_us = entry->nack_us < relay->next_us ? entry->nack_us
                                                         : relay->next_us;
    }
}


void
relay_ask(swim_t *swim, const packet_head_t *ping_req, uint64_t now_us)
{
    member_t       *target;
    swim_message_t  message;

    target = table_find(&swim->table, ping_req->target_id);

    if (target == NULL || target == swim->own) {
        return;
    }

    relay_keep(swim, ping_req, now_us);

    memset(&message, 0, sizeof(message));
    message.type = PACKET_PING;
    message.member = target;
    message.target_id = target->facts.id;
    message.sequence = swim->sequence;

    if (target->facts.liveness != LLMGW_LIVENESS_ALIVE) {
        message.about = target;
    }

    swim_send(swim, &message, now_us);
}


static relay_entry_t *
relay_find(swim_t *swim, uint64_t sequence)
{
    size_t  i;

    for (i = 0; i < RELAY_MAX; i++) {
        if (swim->relay.entries[i].sequence == sequence) {
            return &swim->relay.entries[i];
        }
    }

    return NULL;
}


static void
relay_answer(swim_t *swim, packet_type_t type, const relay_entry_t *entry,
    uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = type;
    message.member = table_find(&swim->table, entry->origin_id);
    message.target_id = entry->target_id;
    message.sequence = entry->origin_sequence;

    if (message.member == NULL) {
        return;
    }

    /* the asker may lack the target's record, which was just renewed */
    message.about = type == PACKET_ACK
                    ? table_find(&swim->table, entry->target_id) : NULL;

    swim_send(swim, &message, now_us);
}


void
relay_ack(swim_t *swim, const packet_head_t *ack, uint64_t now_us)
{
    relay_entry_t  *entry;

    entry = ack->sequence ? relay_find(swim, ack->sequence) : NULL;

    if (entry == NULL || strcmp(entry->target_id, ack->sender_id) != 0) {
        return;
    }

    entry->sequence = 0;
    entry->nack_us = SWIM_NEVER;
    relay_answer(swim, PACKET_ACK, entry, now_us);
}


void
relay_tick(swim_t *swim, uint64_t now_us)
{
    size_t          i;
    relay_t        *relay;
    relay_entry_t  *entry;

    relay = &swim->relay;
    relay->next_us = SWIM_NEVER;

    for (i = 0; i < RELAY_MAX; i++) {
        entry = &relay->entries[i];

        if (entry->sequence == 0) {
            continue;
        }

        if (entry->nack_us <= now_us) {
            entry->nack_us = SWIM_NEVER;
            relay_answer(swim, PACKET_NACK, entry, now_us);
        }

        relay->next_us = entry->nack_us < relay->next_us ? entry->nack_us
                                                         : relay->next_us;
    }
}


uint64_t
relay_next_us(const swim_t *swim)
{
    return swim->relay.next_us;
}
