
/*
 * The bytes before the message: private to who writes or reads datagrams.
 *
 * Plain, and sealed (net/crypt.h):
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
 * Room for the seal is left in a plain datagram too, so that a cluster does
 * not come to say less in a datagram on the day it gets a keyring.
 */

#ifndef PACKET_HEADER_H
#define PACKET_HEADER_H

#include "swim/wire/packet.h"


#define PACKET_MAGIC_0       'L'
#define PACKET_MAGIC_1       'G'
#define PACKET_VERSION       1
#define PACKET_HEADER_BYTES  5

#define PACKET_FLAG_SEALED   0x1

#define PACKET_KEY_ID_BYTES   4
#define PACKET_START_BYTES    16
#define PACKET_COUNTER_BYTES  8
#define PACKET_TAG_BYTES      16

/* What our own datagrams have at most before they are sealed. */
#define PACKET_PLAIN_BYTES  (PACKET_MAX_BYTES - PACKET_SEAL_BYTES)

/* A ring has 150 points a unit of weight: a forged weight must not cost
   every worker its memory. */
#define PACKET_MAX_WEIGHT    100


/* Writes the header into buf (of PACKET_MAX_BYTES); returns its length. */
size_t packet_header_encode(uint8_t *buf, const char *cluster,
    unsigned flags);

/* A header of this cluster: its flags and length are set. */
packet_rc_t packet_header_decode(const char *cluster, const uint8_t *data,
    size_t len, unsigned *flags, size_t *header_bytes);

#endif /* PACKET_HEADER_H */
