
/*
 * What goes into a datagram: the own record, then the record of the member that
 * the datagram is about, then as many updates of the broadcast queue as fit.
 *
 * The own record takes 70 to 150 bytes, and little but its load ever changes.
 * Every datagram says which record its sender has of its receiver (`seen`, a
 * hash of epoch and incarnation).  A peer that has our present record gets a
 * short form in the head: incarnation and load, beside the epoch that is there
 * anyway.  Since a peer reports this each time, one that restarted or has
 * forgotten us gets the whole record again by itself.
 *
 * A peer that restarted may also have lost the owner of its drain.  Its first
 * update replaces our record of its earlier run, so the drain of that run is
 * kept separately and sent to the peer for a while.
 */

#include <string.h>

#include "swim/swim_inner.h"


/*
 * An extra datagram of updates to three members every 100 ms while there are
 * any: updates then reach a thousand members in less than a second.  With the
 * pings alone, two a second, they would take five seconds.
 */
#define GOSSIP_INTERVAL_US  (100 * SWIM_MS)
#define GOSSIP_FANOUT       3

/*
 * How a whole table is sent: first as many records as a starting agent can keep
 * strangers (table/candidate.h), then every 100 ms as many as it pings in that
 * time.  More records would be lost in its socket buffer, or be forgotten.
 */
#define HANDOUT_FIRST        CANDIDATE_MAX
#define HANDOUT_MORE         320
#define HANDOUT_INTERVAL_US  (100 * SWIM_MS)


static void
swim_send_bytes(swim_t *swim, const address_t *to, const member_t *member,
    int is_by_stream)
{
    size_t                 len;
    address_t              address;
    const uint8_t         *bytes;
    const swim_config_t   *config;

    config = &swim->config;
    bytes = packet_end(swim->out, &len);

    if (to == NULL) {
        if (address_parse(member->facts.address, &address) != 0) {
            return;     /* the address is not invalid: it was checked when
                           decoded */
        }

        to = &address;
    }

    if (is_by_stream) {
        if (config->on_stream != NULL) {
            swim->counters.stream_pings++;
            config->on_stream(config->net, to, bytes, len);
        }

        return;
    }

    swim->counters.datagrams_sent++;
    swim->counters.bytes_sent += len;

    if (swim->config.crypt != NULL) {
        swim->counters.bytes_sent += PACKET_SEAL_BYTES;
    }

    config->on_send(config->net, to, bytes, len);
}


/* Fills the rest of the datagram with updates; each counts as sent once. */
static void
swim_add_updates(swim_t *swim, const member_t *about, uint64_t now_us)
{
    size_t            i, n;
    unsigned          limit;
    member_t         *member, *sent[PACKET_MAX_UPDATES];
    broadcast_walk_t  walk;

    n = 0;
    broadcast_walk(&swim->broadcast, &walk);

    while (n < PACKET_MAX_UPDATES && (member = broadcast_next(&walk)) != NULL) {
        if (member != swim->own && member != about
            && packet_add(swim->out, member, now_us) != 0)
        {
            break;
        }

        sent[n++] = member;
    }

    limit = broadcast_limit(swim->table.npresent);

    for (i = 0; i < n; i++) {
        broadcast_sent(&swim->broadcast, sent[i], limit);
    }
}


static int
swim_has_own(const swim_t *swim, const swim_message_t *message)
{
    return message->member != NULL && message->type != PACKET_JOIN
           && message->member->seen == member_seen(&swim->own->facts);
}


static void
swim_fill_head(swim_t *swim, packet_head_t *head,
    const swim_message_t *message, int is_short, uint64_t now_us)
{
    memset(head, 0, sizeof(packet_head_t));

    head->type = message->type;
    head->sequence = message->sequence;
    head->sender_epoch = swim->own->facts.epoch;
    head->table_digest = message->table_digest;
    head->wait_ms = message->wait_ms;
    head->order = message->order;
    strcpy(head->sender_id, swim->own->facts.id);

    if (message->target_id != NULL) {
        strcpy(head->target_id, message->target_id);
    }

    if (message->target_address != NULL) {
        strcpy(head->target_address, message->target_address);
    }

    if (message->member != NULL) {
        head->seen = member_has(message->member);
    }

    if (message->is_to_own_id) {
        head->boot_nonce = swim->boot_nonce;
        head->uptime_ms = (now_us - swim->started_us) / 1000;
    }

    if (message->type == PACKET_ACK && swim->wall_ahead_us != 0) {
        head->time_us = now_us + swim->wall_ahead_us;
    }

    if (is_short) {
        head->own_incarnation = swim->own->facts.incarnation;
        head->own_active_requests = swim->own->load.active_requests;
        head->own_engine = swim->own->load.engine;
        head->own_load_seq = swim->own->load_seq;
    }
}


void
swim_send(swim_t *swim, const swim_message_t *message, uint64_t now_us)
{
    int            is_short;
    packet_head_t  head;

    is_short = swim_has_own(swim, message);
    swim_fill_head(swim, &head, message, is_short, now_us);
    packet_begin(swim->out, &head);

    if (!is_short) {
        packet_add(swim->out, swim->own, now_us);
    }

    if (message->about != NULL && message->about != swim->own) {
        packet_add(swim->out, message->about, now_us);

    } else if (message->member != NULL
               && member_recall(message->member, &swim->past, now_us))
    {
        packet_add(swim->out, &swim->past, now_us);
    }

    if (!message->is_bare) {
        swim_add_updates(swim, message->about, now_us);
    }

    swim_send_bytes(swim, message->to, message->member, message->is_by_stream);
}


/*
 * Sends up to max records from handout->next on.  Returns the first one that
 * was not sent.
 */
static size_t
handout_send(swim_t *swim, const handout_t *handout, size_t max,
    uint64_t now_us)
{
    size_t         i, end;
    packet_head_t  head;

    memset(&head, 0, sizeof(head));

    head.type = PACKET_TABLE;
    head.sequence = handout->sequence;
    head.sender_epoch = swim->own->facts.epoch;
    strcpy(head.sender_id, swim->own->facts.id);

    packet_begin(swim->out, &head);
    end = swim->table.n - handout->next > max ? handout->next + max
                                              : swim->table.n;

    for (i = handout->next; i < end; i++) {
        if (packet_add(swim->out, swim->table.members[i], now_us) == 0) {
            continue;
        }

        swim_send_bytes(swim, NULL, handout->to, 0);
        packet_begin(swim->out, &head);
        packet_add(swim->out, swim->table.members[i], now_us);
    }

    swim_send_bytes(swim, NULL, handout->to, 0);

    return end;
}


static handout_t *
handout_find(swim_t *swim, const member_t *to)
{
    size_t  i;

    for (i = 0; i < swim->handouts.n; i++) {
        if (swim->handouts.entries[i].to == to) {
            return &swim->handouts.entries[i];
        }
    }

    return NULL;
}


/*
 * A second JOIN of the same run changes nothing.  If there is no place left,
 * everything is sent at once, and a later push-pull sync repairs losses.
 */
void
swim_send_table(swim_t *swim, const member_t *to, uint64_t sequence,
    uint64_t now_us)
{
    handout_t    handout, *former;
    handouts_t  *handouts;

    handouts = &swim->handouts;
    former = handout_find(swim, to);

    if (former != NULL && former->sequence == sequence) {
        return;
    }

    handout_drop(swim, to);
    handout.to = to;
    handout.sequence = sequence;
    handout.next = 0;
    handout.next = handout_send(swim, &handout,
                                handouts->n < HANDOUT_MAX ? HANDOUT_FIRST
                                                          : SIZE_MAX,
                                now_us);

    if (handout.next == swim->table.n) {
        return;
    }

    if (handouts->n == 0) {
        handouts->next_us = now_us + HANDOUT_INTERVAL_US;
    }

    handouts->entries[handouts->n++] = handout;
}


void
handout_drop(swim_t *swim, const member_t *to)
{
    handout_t   *handout;
    handouts_t  *handouts;

    handouts = &swim->handouts;
    handout = handout_find(swim, to);

    if (handout != NULL) {
        *handout = handouts->entries[--handouts->n];
    }
}


/* Walks backwards, since the last entry takes the place of one that is done.
   A record that moved in the table meanwhile is found by the next push-pull
   sync. */
void
handout_tick(swim_t *swim, uint64_t now_us)
{
    size_t       i;
    handout_t   *handout;
    handouts_t  *handouts;

    handouts = &swim->handouts;

    for (i = handouts->n; i > 0; i--) {
        handout = &handouts->entries[i - 1];

        if (handout->next < swim->table.n) {
            handout->next = handout_send(swim, handout, HANDOUT_MORE, now_us);
        }

        if (handout->next >= swim->table.n) {
            *handout = handouts->entries[--handouts->n];
        }
    }

    handouts->next_us = now_us + HANDOUT_INTERVAL_US;
}


uint64_t
handout_next_us(const swim_t *swim)
{
    return swim->handouts.n > 0 ? swim->handouts.next_us : SWIM_NEVER;
}


void
gossip_tick(swim_t *swim, uint64_t now_us)
{
    size_t          i, n;
    member_t       *picked[GOSSIP_FANOUT];
    swim_message_t  message;

    memset(&message, 0, sizeof(message));
    message.type = PACKET_UPDATES;

    n = swim_pick(swim, picked, GOSSIP_FANOUT, swim_fits_present, NULL);

    for (i = 0; i < n && swim->broadcast.n > 0; i++) {
        message.member = picked[i];
        swim_send(swim, &message, now_us);
    }

    swim->gossip_us = now_us + GOSSIP_INTERVAL_US;
}


uint64_t
gossip_next_us(const swim_t *swim)
{
    return swim->broadcast.n > 0 && swim->table.n > 1 ? swim->gossip_us
                                                   : SWIM_NEVER;
}
