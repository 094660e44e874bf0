
/*
 * One datagram: its form on the wire, and nothing about its meaning.
 *
 *     header (common/packet_header.h draws it): magic, version, flags, cluster
 *     GossipMessage of proto/gossip.proto, protobuf
 *
 * The header is outside of the protobuf, so that another cluster's datagram is
 * recognized and dropped before any of it is parsed, and so that the header can
 * be the associated data of the seal (net/crypt.h).  A datagram that is decoded
 * here is plain, or was opened before.
 *
 * A datagram that is wrong as a whole is dropped.  If a single update in it is
 * wrong, only that one is left out and counted: the update may be a third
 * party's, and the rest of the datagram is still good.
 */

#ifndef PACKET_H
#define PACKET_H

#include <stddef.h>

#include "common/packet_header.h"
#include "swim/table/member.h"
#include "swim/order/order.h"


#define PACKET_MAX_UPDATES  64      /* the smallest valid update has 16 bytes,
                                       a usual one 70 */

/* A ring of nginx has 150 points a unit of weight: a forged weight must not
   cost every worker its memory. */
#define PACKET_MAX_WEIGHT    100

/* An incarnation that leaves no room for the answer to it is refused: 2^48
   changes are nine years of a million a second. */
#define PACKET_MAX_INCARNATION  (1ULL << 48)

/*
 * Memory for unpacking by protobuf-c: a usual datagram takes 5 KiB, the most
 * that 64 updates take is 24.  A datagram that needs more is no valid message.
 */
#define PACKET_ARENA_BYTES  (32 * 1024)

typedef enum {
    PACKET_PING = 0,
    PACKET_PING_REQ,
    PACKET_ACK,
    PACKET_NACK,
    PACKET_JOIN,
    PACKET_TABLE,
    PACKET_UPDATES,
    PACKET_SYNC,
    PACKET_ORDER,
    PACKET_ORDER_ACK,
    PACKET_NTYPES
} packet_type_t;

typedef struct {
    packet_type_t  type;
    char           sender_id[LLMGW_MEMBERS_NAME_BYTES];
    char           target_id[LLMGW_MEMBERS_NAME_BYTES];
    char           target_address[LLMGW_MEMBERS_ADDRESS_BYTES];
    uint64_t       sequence;
    uint64_t       sender_epoch;
    uint64_t       table_digest;
    uint32_t       wait_ms;         /* PING_REQ: how long its asker waits */
    uint32_t       seen;            /* member_seen() of the receiver */

    /*
     * The sender's own record in its short form; load_seq 0: there is no load.
     */
    uint64_t             own_incarnation;
    uint32_t             own_active_requests;
    llmgw_engine_load_t  own_engine;
    uint64_t             own_load_seq;

    uint64_t       boot_nonce;      /* tells two agents with one id apart; or
                                       0 */
    uint64_t       uptime_ms;
    uint64_t       time_us;         /* ACK: its sender's wall clock; 0: not
                                       given */

    /* For an ORDER and its answer; otherwise NULL.  Of a decoded packet: its
       own. */
    const order_t *order;
} packet_head_t;

typedef struct {
    packet_head_t    head;
    order_t          order;
    size_t           nrefused;      /* number of updates left out */
    size_t           nupdates;
    member_update_t  updates[PACKET_MAX_UPDATES];
    size_t           arena_used;
    max_align_t    arena[PACKET_ARENA_BYTES / sizeof(max_align_t)];
} packet_t;


/*
 * Decodes a datagram of this cluster.  wall_us is our own wall clock.  *packet
 * is only complete with PACKET_DONE; with PACKET_ECLOCK its head has the
 * sender's id and epoch.  Allocates nothing: what unpacking needs is in the
 * packet, too.
 */
packet_rc_t packet_decode(packet_t *packet, const char *cluster,
    const uint8_t *data, size_t len, uint64_t wall_us);


/*
 * Encodes a datagram: begin, add while there is room, end.  The strings of head
 * and of the members must stay until the end.
 */
typedef struct packet_out_s  packet_out_t;

/* NULL: out of memory. */
packet_out_t *packet_out_create(const char *cluster);
void packet_out_destroy(packet_out_t *out);

void packet_begin(packet_out_t *out, const packet_head_t *head);

/* Adds a member's record.  0, or -1: no room. */
int packet_add(packet_out_t *out, const member_t *member, uint64_t now_us);

/* The number of updates added since packet_begin(). */
size_t packet_nupdates(const packet_out_t *out);

/* Returns the datagram, valid until the next begin. */
const uint8_t *packet_end(packet_out_t *out, size_t *len);

#endif /* PACKET_H */
