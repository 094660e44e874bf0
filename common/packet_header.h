
/*
 * The frame of a gossip datagram: its size, the bytes before its message, and
 * the reasons to drop one.  It is shared by the room that carries and seals
 * datagrams and the room that decodes them; the message itself is described in
 * swim/wire/packet.h.
 *
 * Plain, and sealed:
 *
 *      0        1        2         3        4         5
 *     +--------+--------+---------+--------+---------+------------------+
 *     |  'L'   |  'G'   | version | flags  | cluster | cluster name     |
 *     |        |        |   = 1   |   = 0  | length  | (1 .. 63 bytes)  |
 *     +--------+--------+---------+--------+---------+------------------+
 *     | GossipMessage, protobuf                                         |
 *     +-----------------------------------------------------------------+
 *
 *     +--------+--------+---------+--------+---------+------------------+
 *     |  'L'   |  'G'   |   = 1   |   = 1  | length  | cluster name     |
 *     +--------+--------+---------+--------+---------+------------------+
 *     | key id, 4 bytes                                                 |
 *     +--------------------------------+--------------------------------+
 *     | nonce: 16 bytes of the start   | counter, 8 bytes, big endian   |
 *     +--------------------------------+--------------------------------+
 *     | GossipMessage, encrypted: as long as it is plain                |
 *     +-----------------------------------------------------------------+
 *     | tag, 16 bytes: of all of the above                              |
 *     +-----------------------------------------------------------------+
 *
 * A plain datagram leaves room for the seal, too, so that it holds the same
 * updates with and without a keyring.
 */

#ifndef PACKET_HEADER_H
#define PACKET_HEADER_H

#include <stddef.h>
#include <stdint.h>


/*
 * 1200 bytes pass every path that IPv6 allows (RFC 8200, 5: 1280) without
 * being fragmented: a fragmented datagram is lost when one of its parts is.
 */
#define PACKET_MAX_BYTES    1200
#define PACKET_SEAL_BYTES   44      /* bytes that sealing adds */

#define PACKET_MAGIC_0       'L'
#define PACKET_MAGIC_1       'G'
#define PACKET_VERSION       1
#define PACKET_HEADER_BYTES  5

#define PACKET_FLAG_SEALED   0x1

#define PACKET_KEY_ID_BYTES   4
#define PACKET_START_BYTES    16
#define PACKET_COUNTER_BYTES  8
#define PACKET_TAG_BYTES      16

/* Largest size of our own datagrams before they are sealed. */
#define PACKET_PLAIN_BYTES  (PACKET_MAX_BYTES - PACKET_SEAL_BYTES)

/* An epoch (wall clock, us) that is further ahead is refused: it would
   supersede every later start of its member. */
#define PACKET_MAX_AHEAD_US  (24ULL * 3600 * 1000000)

/* The reasons to drop a datagram, as data: name and help are for counters. */
#define PACKET_DROPS(X)                                                       \
    X(LENGTH,   "length", "truncated, or longer than any of ours")            \
    X(MAGIC,    "magic", "not of this protocol")                              \
    X(VERSION,  "version", "of another version")                              \
    X(FLAGS,    "flags", "unknown flags")                                     \
    X(CLUSTER,  "other_cluster", "of another cluster")                        \
    X(PLAIN,    "plain", "not encrypted, and this agent has a keyring")       \
    X(SEALED,   "sealed", "encrypted, and this agent has no keyring")         \
    X(KEY,      "wrong_key", "encrypted with a key that is not in the ring")  \
    X(FORGED,   "forged", "modified in transit, or sealed without the key")   \
    X(REPLAYED, "replayed", "a replay, or too old to tell")                   \
    X(MESSAGE,  "malformed", "no message of this protocol")                   \
    X(TYPE,     "type", "of an unknown type")                                 \
    X(SENDER,   "sender", "the sender's id or figures are wrong")             \
    X(CLOCK,    "clock", "the sender's epoch is a day ahead of our clock")    \
    X(TARGET,   "target", "the target's id or address is wrong")              \
    X(ORDER,    "order", "a malformed order")                             \
    X(UPDATES,  "updates", "too many updates")

typedef enum {
    PACKET_DONE = 0,
#define X(id, name, help)  PACKET_E##id,
    PACKET_DROPS(X)
#undef X
    PACKET_NRC
} packet_rc_t;


/*
 * The name of a reason for counters: "magic", "other_cluster", ...; "done" for
 * PACKET_DONE.
 */
const char *packet_rc_name(packet_rc_t rc);


/* Writes the header into buf (of PACKET_MAX_BYTES); returns its length. */
size_t packet_header_encode(uint8_t *buf, const char *cluster,
    unsigned flags);

/* Decodes a header of this cluster, and sets flags and length. */
packet_rc_t packet_header_decode(const char *cluster, const uint8_t *data,
    size_t len, unsigned *flags, size_t *header_bytes);

#endif /* PACKET_HEADER_H */
