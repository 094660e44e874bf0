
/*
 * One datagram: what goes over the wire, and nothing about what it means.
 *
 *     header (swim/wire/header.h draws it): magic, version, flags, cluster
 *     GossipMessage of proto/gossip.proto, protobuf
 *
 * The header is outside of the protobuf so that another cluster's datagram
 * is told, and dropped, before anything of it is parsed, and so that it can
 * be the associated data of the seal (net/crypt.h).  What is decoded here
 * is plain, or was opened before.  1200 bytes pass every path that
 * IPv6 allows (RFC 8200, 5: 1280) without being fragmented: a fragmented
 * datagram is lost when one of its parts is.
 *
 * A datagram that is wrong as a whole is dropped.  One update in it that is
 * wrong is left out alone and counted: an update may be a third party's, and
 * the one who passed it on in good faith must not fall silent for it.
 */

#ifndef PACKET_H
#define PACKET_H

#include <stddef.h>

#include "swim/table/member.h"
#include "swim/order.h"


#define PACKET_MAX_BYTES    1200
#define PACKET_SEAL_BYTES   44      /* what sealing adds to a datagram */
#define PACKET_MAX_UPDATES  64      /* the smallest valid update has 16 bytes,
                                       a usual one 70 */

/* An epoch (wall clock, us) further ahead is refused: it would outlast every
   restart of the member it speaks of. */
#define PACKET_MAX_AHEAD_US  (24ULL * 3600 * 1000000)

/* Nor an incarnation that leaves no room for the answer to it: 2^48 changes
   are nine years of a million a second. */
#define PACKET_MAX_INCARNATION  (1ULL << 48)

/*
 * What protobuf-c takes while it unpacks: a usual datagram 4 KiB, the most
 * that 64 updates take 20.  A datagram made to take more is no message.
 */
#define PACKET_ARENA_BYTES  (32 * 1024)

typedef enum {
    PACKET_PING = 0,
    PACKET_PING_REQ,
    PACKET_ACK,
    PACKET_NACK,
    PACKET_JOIN,
    PACKET_TABLE,
    PACKET_NEWS,
    PACKET_SYNC,
    PACKET_ORDER,
    PACKET_ORDER_ACK,
    PACKET_NTYPES
} packet_type_t;

/* Why a datagram is dropped, as data: name and help are for counters. */
#define PACKET_DROPS(X)                                                       \
    X(LENGTH,   "length", "truncated, or longer than any of ours")            \
    X(MAGIC,    "magic", "not of this protocol")                              \
    X(VERSION,  "version", "of another version")                              \
    X(FLAGS,    "flags", "unknown flags")                                     \
    X(CLUSTER,  "other_cluster", "of another cluster")                        \
    X(PLAIN,    "plain", "not encrypted, and this agent has a keyring")       \
    X(SEALED,   "sealed", "encrypted, and this agent has no keyring")         \
    X(KEY,      "wrong_key", "encrypted with a key that is not in the ring")  \
    X(FORGED,   "forged", "changed on the way, or by who has not the key")    \
    X(REPLAYED, "replayed", "had before, or older than what is remembered")   \
    X(MESSAGE,  "malformed", "no message of this protocol")                   \
    X(TYPE,     "type", "of an unknown type")                                 \
    X(SENDER,   "sender", "the sender's id, epoch or figures are wrong")      \
    X(TARGET,   "target", "the target's id or address is wrong")              \
    X(ORDER,    "order", "an order that is none")                             \
    X(UPDATES,  "updates", "too many updates")

typedef enum {
    PACKET_DONE = 0,
#define X(id, name, help)  PACKET_E##id,
    PACKET_DROPS(X)
#undef X
    PACKET_NRC
} packet_rc_t;

typedef struct {
    packet_type_t  type;
    char           sender_id[LLMGW_MEMBERS_NAME_BYTES];
    char           target_id[LLMGW_MEMBERS_NAME_BYTES];
    char           target_address[LLMGW_MEMBERS_ADDRESS_BYTES];
    uint64_t       sequence;
    uint64_t       sender_epoch;
    uint64_t       table_digest;
    uint32_t       wait_ms;         /* PING_REQ: what its asker waits */
    uint32_t       seen;            /* member_seen() of the receiver */

    /* The own record's short form; load_seq 0: there is no load. */
    uint64_t       own_incarnation;
    uint32_t       own_active_requests;
    uint64_t       own_load_seq;

    uint64_t       boot_nonce;      /* between two of one id; or 0 */
    uint64_t       uptime_ms;

    /* Of an ORDER, and of its answer; NULL in all others.  Decoded: the
       packet's own. */
    const order_t *order;
} packet_head_t;

typedef struct {
    packet_head_t  head;
    order_t        order;
    size_t         nrefused;        /* updates left out */
    size_t         nupdates;
    member_news_t  updates[PACKET_MAX_UPDATES];
    size_t         arena_used;
    max_align_t    arena[PACKET_ARENA_BYTES / sizeof(max_align_t)];
} packet_t;


/*
 * Decodes a datagram of this cluster.  wall_us is our own clock.  *packet is
 * only complete with PACKET_DONE.  Allocates nothing: what unpacking needs is
 * in the packet, too.
 */
packet_rc_t packet_decode(packet_t *packet, const char *cluster,
    const uint8_t *data, size_t len, uint64_t wall_us);

/* "magic", "other_cluster", ... for counters; "done" for PACKET_DONE. */
const char *packet_rc_name(packet_rc_t rc);


/*
 * Encoding: begin, add while there is room, end.  The strings of head and of
 * the members must stay until the end.
 */
typedef struct packet_out_s  packet_out_t;

/* NULL: out of memory. */
packet_out_t *packet_out_create(const char *cluster);
void packet_out_destroy(packet_out_t *out);

void packet_begin(packet_out_t *out, const packet_head_t *head);

/* 0, or -1: no room. */
int packet_add(packet_out_t *out, const member_t *member, uint64_t now_us);

/* Updates added since packet_begin(). */
size_t packet_nupdates(const packet_out_t *out);

/* Returns the datagram, valid until the next begin. */
const uint8_t *packet_end(packet_out_t *out, size_t *len);

#endif /* PACKET_H */
