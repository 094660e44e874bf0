
/*
 * Pings on behalf of others.  Asked by a PING_REQ we ping its target under a
 * sequence number of our own and pass the ack on under the asker's.
 *
 * Nothing waits: what is out is kept in a ring that forgets its oldest, and
 * who asked has its own deadline.  Only members are pinged for members, so
 * that nobody is made to send to where a stranger points.
 */

#include <string.h>

#include "swim_core.h"


void
relay_ask(swim_t *swim, const packet_head_t *ping_req, uint64_t now_us)
{
    member_t       *target;
    swim_letter_t   letter;
    relay_entry_t  *entry;

    target = table_find(&swim->table, ping_req->target_id);

    if (target == NULL || target == swim->own) {
        return;
    }

    entry = &swim->relay.entries[swim->relay.next++ % RELAY_MAX];
    entry->sequence = ++swim->sequence;
    entry->origin_sequence = ping_req->sequence;
    strcpy(entry->origin_id, ping_req->sender_id);

    memset(&letter, 0, sizeof(letter));
    letter.type = PACKET_PING;
    letter.member = target;
    letter.target_id = target->facts.id;
    letter.sequence = entry->sequence;

    if (target->facts.liveness != LLMGW_LIVENESS_ALIVE) {
        letter.about = target;
    }

    swim_send(swim, &letter, now_us);
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


void
relay_ack(swim_t *swim, const packet_head_t *ack, uint64_t now_us)
{
    member_t       *origin;
    relay_entry_t  *entry;
    swim_letter_t   letter;

    entry = ack->sequence ? relay_find(swim, ack->sequence) : NULL;

    if (entry == NULL) {
        return;
    }

    entry->sequence = 0;
    origin = table_find(&swim->table, entry->origin_id);

    if (origin == NULL) {
        return;
    }

    memset(&letter, 0, sizeof(letter));
    letter.type = PACKET_ACK;
    letter.member = origin;
    letter.target_id = ack->target_id;
    letter.sequence = entry->origin_sequence;

    /* What the target just said of itself may be what the asker lacks. */
    letter.about = table_find(&swim->table, ack->target_id);

    swim_send(swim, &letter, now_us);
}
