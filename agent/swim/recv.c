
/*
 * Handles a datagram.  If its sender is a stranger, the stranger is pinged.
 * Else the updates are merged, and then the message itself is handled: a ping
 * is acked, an ack ends a probe, a JOIN is answered with the table.
 */

#include <string.h>

#include "swim/swim_inner.h"


/*
 * Acks a ping.  The ack goes to where the ping came from.  A sender that is not
 * ALIVE here gets its own record with it, so that it can refute; so does one
 * whose id has a later epoch elsewhere (swim/conflict.c).  A sender that has no
 * record of us needs only our record (table/candidate.h): otherwise a thousand
 * agents that meet would send each other all updates each time.
 */
static void
swim_answer_ping(swim_t *swim, const packet_t *packet, const address_t *from,
    const member_t *sender, uint64_t now_us)
{
    swim_message_t  message;

    if (packet->head.target_id[0] != '\0'
        && strcmp(packet->head.target_id, swim->own->facts.id) != 0)
    {
        return;         /* it is for an earlier member at this address */
    }

    memset(&message, 0, sizeof(message));
    message.type = PACKET_ACK;
    message.to = from;
    message.member = sender;
    message.target_id = swim->own->facts.id;
    message.sequence = packet->head.sequence;
    message.is_bare = sender == NULL || packet->head.seen == 0;

    if (sender != NULL
        && (sender->facts.liveness != LLMGW_LIVENESS_ALIVE
            || packet->head.sender_epoch < sender->facts.epoch))
    {
        message.about = sender;
    }

    swim_send(swim, &message, now_us);
}


/*
 * Only the address of a stranger's datagram is used, to ping the stranger.
 * There is one exception: a seed that may not be a member yet sends us the
 * table that we asked for, or tells us that another agent has our id
 * (swim_tell_usurper()).
 */
static void
swim_recv_stranger(swim_t *swim, const packet_t *packet,
    const address_t *from, uint64_t now_us)
{
    const member_update_t  *own_word;

    swim->counters.strangers++;

    if (packet->head.sequence == swim->join.sequence
        && (packet->head.type == PACKET_TABLE
            || packet->head.type == PACKET_UPDATES))
    {
        swim_merge(swim, packet, now_us);

        if (packet->head.type == PACKET_TABLE) {
            join_answer(swim, &packet->head);
        }

        return;
    }

    own_word = swim_own_word(packet);

    if (own_word != NULL) {
        stranger_add(swim, &own_word->facts,
                      packet->head.type == PACKET_JOIN ? packet->head.sequence
                                                       : 0,
                      now_us);
    }

    if (packet->head.type == PACKET_PING) {
        swim_answer_ping(swim, packet, from, NULL, now_us);
    }
}


static void
swim_tell_starter(swim_t *swim, const packet_t *packet,
    const address_t *from, const member_t *sender, uint64_t now_us)
{
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_UPDATES;
    message.to = from;
    message.sequence = packet->head.sequence;
    message.about = sender;
    message.is_bare = 1;
    swim_send(swim, &message, now_us);
}


/*
 * A starting agent is sent the record that we have of its id, before its own
 * record replaces it: in one datagram, not much longer than its own.  Returns 1
 * if the agent has the id of a member with a later start and another address;
 * the table would go to that member.
 */
static int
swim_tell_usurper(swim_t *swim, const packet_t *packet,
    const address_t *from, const member_t *sender, uint64_t now_us)
{
    const member_update_t  *own_word;
    const llmgw_member_t   *known;

    known = &sender->facts;
    own_word = swim_own_word(packet);

    if (packet->head.type != PACKET_JOIN || own_word == NULL) {
        return 0;
    }

    if (own_word->facts.epoch > known->epoch && known->draining) {
        swim_tell_starter(swim, packet, from, sender, now_us);
        return 0;       /* it is not another agent: its drain may stay */
    }

    if (own_word->facts.epoch >= known->epoch
        || strcmp(own_word->facts.address, known->address) == 0)
    {
        return 0;
    }

    swim_tell_starter(swim, packet, from, sender, now_us);

    return 1;
}


/*
 * Takes an order.  The sender's own record has been merged already.  An order
 * of an earlier run of the sender may be a recording, which net/replay.h cannot
 * always detect, so it is ignored.  A sender that still runs with a lower epoch
 * takes a higher one (conflict.c).
 */
static void
swim_recv_order(swim_t *swim, const packet_head_t *head,
    const address_t *from, const member_t *sender, uint64_t now_us)
{
    if (head->sender_epoch < sender->facts.epoch) {
        swim->counters.orders_outdated++;
        return;
    }

    order_recv(swim, head->order, from, sender, head->sequence, now_us);
}


/* Notes when a ping came by datagram; one over TCP comes from another port. */
static void
swim_note_ping(member_t *sender, const address_t *from, uint64_t now_us)
{
    char  text[ADDRESS_TEXT_BYTES];

    address_format(from, text);

    if (strcmp(text, sender->facts.address) == 0) {
        sender->path.heard_us = now_us;
    }
}


static void
swim_recv_member(swim_t *swim, const packet_t *packet, const address_t *from,
    member_t *sender, uint64_t now_us)
{
    const packet_head_t  *head;

    head = &packet->head;

    if (swim_tell_usurper(swim, packet, from, sender, now_us)) {
        return;
    }

    swim_merge(swim, packet, now_us);
    swim_merge_short(swim, sender, head, now_us);

    sender->seen = head->seen;

    switch (head->type) {
    case PACKET_PING:
        swim_note_ping(sender, from, now_us);
        swim_answer_ping(swim, packet, from, sender, now_us);
        break;
    case PACKET_PING_REQ:
        relay_ask(swim, head, now_us);
        break;
    case PACKET_ACK:
        probe_ack(swim, head, now_us);
        delivery_ack(swim, head);
        relay_ack(swim, head, now_us);
        break;
    case PACKET_NACK:
        probe_nack(swim, head);
        break;
    case PACKET_JOIN:
        join_asked(swim, sender, head->sequence, now_us);
        break;
    case PACKET_TABLE:
        join_answer(swim, head);
        break;
    case PACKET_SYNC:
        sync_recv(swim, sender, head, now_us);
        break;
    case PACKET_ORDER:
        swim_recv_order(swim, head, from, sender, now_us);
        break;
    case PACKET_ORDER_ACK:
        order_recv_ack(swim, head->order, sender);
        break;
    default:
        break;          /* the updates were merged already */
    }
}


void
swim_recv(swim_t *swim, const address_t *from, const uint8_t *data,
    size_t len, uint64_t now_us, uint64_t wall_us)
{
    packet_t     packet;
    packet_rc_t  rc;

    rc = packet_decode(&packet, swim->cluster, data, len, wall_us);

    if (rc != PACKET_DONE) {
        swim_recv_dropped(swim, from, &packet, rc, len, now_us);
        return;
    }

    swim_recv_packet(swim, from, &packet, len, now_us);
}


void
swim_recv_dropped(swim_t *swim, const address_t *from,
    const packet_t *packet, packet_rc_t rc, size_t len, uint64_t now_us)
{
    swim->counters.datagrams_received++;
    swim->counters.bytes_received += len;
    swim->counters.dropped[rc]++;
    swim->last_drop = (swim_drop_t) { rc, *from, now_us };

    if (rc == PACKET_ECLOCK) {
        skew_refused(swim, &packet->head, from, now_us);
    }
}


void
swim_recv_packet(swim_t *swim, const address_t *from, const packet_t *packet,
    size_t len, uint64_t now_us)
{
    member_t  *sender;

    swim->counters.datagrams_received++;
    swim->counters.bytes_received += len;
    swim->counters.updates_refused += packet->nrefused;

    sender = table_find(&swim->table, packet->head.sender_id);

    if (sender == swim->own) {
        conflict_recv(swim, &packet->head, from, now_us);
        return;
    }

    if (sender == NULL && packet->head.type == PACKET_ACK) {
        sender = stranger_ack(swim, packet, now_us);
    }

    if (sender == NULL) {
        swim_recv_stranger(swim, packet, from, now_us);
        return;
    }

    swim_recv_member(swim, packet, from, sender, now_us);
}
