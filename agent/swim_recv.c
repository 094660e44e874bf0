
/*
 * A datagram came: decoded, its sender known or to be asked, its news heard,
 * then its own purpose served.
 */

#include <string.h>

#include "swim_core.h"


/*
 * An answer goes to where the question came from.  A sender of whom we know
 * anything worse than ALIVE hears it at once, so that it can contradict.
 */
static void
swim_answer_ping(swim_t *swim, const packet_t *packet, const address_t *from,
    const member_t *sender, uint64_t now_us)
{
    swim_letter_t  letter;

    if (packet->head.target_id[0] != '\0'
        && strcmp(packet->head.target_id, swim->own->facts.id) != 0)
    {
        return;         /* it means who had this address before */
    }

    memset(&letter, 0, sizeof(letter));
    letter.type = PACKET_ACK;
    letter.to = from;
    letter.target_id = swim->own->facts.id;
    letter.sequence = packet->head.sequence;
    letter.is_bare = sender == NULL;

    if (sender != NULL && sender->facts.liveness != LLMGW_LIVENESS_ALIVE) {
        letter.about = sender;
    }

    swim_send(swim, &letter, now_us);
}


/*
 * A stranger is believed nothing but where to ask it.  One exception: the
 * table that we asked for comes from a seed that may not be a member yet.
 */
static void
swim_recv_stranger(swim_t *swim, const packet_t *packet,
    const address_t *from, uint64_t now_us)
{
    const member_news_t  *own_word;

    swim->counters.strangers++;

    if (packet->head.type == PACKET_TABLE
        && packet->head.sequence == swim->join.sequence)
    {
        swim_hear(swim, packet, now_us);
        join_answer(swim, &packet->head);
        return;
    }

    own_word = swim_own_word(packet);

    if (own_word != NULL) {
        candidate_add(swim, &own_word->facts,
                      packet->head.type == PACKET_JOIN ? packet->head.sequence
                                                       : 0,
                      now_us);
    }

    if (packet->head.type == PACKET_PING) {
        swim_answer_ping(swim, packet, from, NULL, now_us);
    }
}


static void
swim_recv_member(swim_t *swim, const packet_t *packet, const address_t *from,
    member_t *sender, uint64_t now_us)
{
    const packet_head_t  *head;

    head = &packet->head;

    swim_hear(swim, packet, now_us);

    switch (head->type) {
    case PACKET_PING:
        swim_answer_ping(swim, packet, from, sender, now_us);
        break;
    case PACKET_PING_REQ:
        relay_ask(swim, head, now_us);
        break;
    case PACKET_ACK:
        probe_ack(swim, head);
        tell_ack(swim, head);
        relay_ack(swim, head, now_us);
        break;
    case PACKET_JOIN:
        join_asked(swim, sender, head->sequence, now_us);
        break;
    case PACKET_TABLE:
        join_answer(swim, head);
        break;
    case PACKET_SYNC:
        sync_hear(swim, sender, head, now_us);
        break;
    default:
        break;          /* NEWS was heard; NACK is for who counts them */
    }
}


void
swim_recv(swim_t *swim, const address_t *from, const uint8_t *data,
    size_t len, uint64_t now_us, uint64_t wall_us)
{
    member_t     *sender;
    packet_t      packet;
    packet_rc_t   rc;

    swim->counters.datagrams_received++;
    swim->counters.bytes_received += len;

    rc = packet_decode(&packet, swim->cluster, data, len, wall_us);

    if (rc != PACKET_DONE) {
        swim->counters.dropped[rc]++;
        return;
    }

    swim->counters.updates_refused += packet.nrefused;

    sender = table_find(&swim->table, packet.head.sender_id);

    if (sender == swim->own) {
        swim->counters.echoes++;
        return;
    }

    if (sender == NULL && packet.head.type == PACKET_ACK) {
        sender = candidate_ack(swim, &packet, now_us);
    }

    if (sender == NULL) {
        swim_recv_stranger(swim, &packet, from, now_us);
        return;
    }

    swim_recv_member(swim, &packet, from, sender, now_us);
}
