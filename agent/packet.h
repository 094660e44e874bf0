
/*
 * One datagram: what goes over the wire, and nothing about what it means.
 *
 *      0        1        2         3        4         5
 *     +--------+--------+---------+--------+---------+------------------+
 *     |  'L'   |  'G'   | version | flags  | cluster | cluster name     |
 *     |        |        |   = 1   |        | length  | (1 .. 63 bytes)  |
 *     +--------+--------+---------+--------+---------+------------------+
 *     | GossipMessage of proto/gossip.proto, protobuf                   |
 *     +-----------------------------------------------------------------+
 *                                              at most 1200 bytes in all
 *
 *     flags: bit 0: what follows the cluster name is encrypted; others: 0
 *
 * The header is outside of the protobuf so that another cluster's datagram
 * is told, and dropped, before anything of it is parsed, and so that it can
 * be the associated data of an encryption.  1200 bytes pass every path that
 * IPv6 allows (RFC 8200, 5: 1280) without being fragmented: a fragmented
 * datagram is lost when one of its parts is.
 *
 * A datagram that is wrong as a whole is dropped.  One update in it that is
 * wrong is left out alone and counted: an update may be a third party's, and
 * the one who passed it on in good faith must not fall silent for it.
 */

#ifndef PACKET_H
#define PACKET_H

#include "member.h"


#define PACKET_MAX_BYTES    1200
#define PACKET_MAX_UPDATES  64      /* the smallest valid update has 16 bytes,
                                       a usual one 70 */

/* An epoch (wall clock, us) further ahead is refused: it would outlast every
   restart of the member it speaks of. */
#define PACKET_MAX_AHEAD_US  (24ULL * 3600 * 1000000)

typedef enum {
    PACKET_PING = 0,
    PACKET_PING_REQ,
    PACKET_ACK,
    PACKET_NACK,
    PACKET_JOIN,
    PACKET_TABLE,
    PACKET_NEWS,
    PACKET_SYNC,
    PACKET_NTYPES
} packet_type_t;

typedef enum {
    PACKET_DONE = 0,
    PACKET_ELENGTH,         /* truncated, or longer than any of ours */
    PACKET_EMAGIC,
    PACKET_EVERSION,
    PACKET_EFLAGS,          /* encrypted, and we have no key; or unknown */
    PACKET_ECLUSTER,        /* another's */
    PACKET_EMESSAGE,        /* no GossipMessage */
    PACKET_ETYPE,
    PACKET_ESENDER,         /* id, epoch */
    PACKET_ETARGET,         /* id, address */
    PACKET_EUPDATES,        /* too many */
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
} packet_head_t;

typedef struct {
    packet_head_t  head;
    size_t         nrefused;        /* updates left out */
    size_t         nupdates;
    member_news_t  updates[PACKET_MAX_UPDATES];
} packet_t;


/*
 * Decodes a datagram of this cluster.  wall_us is our own clock.  *packet is
 * only complete with PACKET_DONE.
 */
packet_rc_t packet_decode(packet_t *packet, const char *cluster,
    const uint8_t *data, size_t len, uint64_t wall_us);

/* "magic", "cluster", ... for counters; "done" for PACKET_DONE. */
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
