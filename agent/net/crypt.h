
/*
 * Seals outgoing datagrams and opens incoming ones, by XChaCha20-Poly1305 of
 * libsodium, with the header (and so the cluster's name) and the key's id as
 * associated data.  common/packet_header.h draws a sealed datagram.
 *
 *     swim -> plain datagram -> crypt_seal() -> transport
 *     transport -> crypt_open() -> plain -> decoded -> crypt_take() -> swim
 *
 * A nonce must never be used twice with a key.  Its first 16 bytes are drawn at
 * random at the start, its last 8 count: no state is kept, no clock is trusted,
 * and members need not agree on anything.  The replay window (net/replay.h)
 * checks the counter when the sender's id and epoch are known: these are within
 * the sealed message, so an eavesdropper learns neither.
 *
 * A datagram that fails is not answered: a sender without a key learns
 * nothing, and makes this agent send nothing.  The reason is counted.
 */

#ifndef CRYPT_H
#define CRYPT_H

#include "common/packet_header.h"
#include "net/keyring.h"


typedef struct crypt_s  crypt_t;

/*
 * The keyring must outlive the crypt, and may change at any time: the next
 * datagram is sealed and opened by its keys at that time.  NULL: out of memory.
 */
crypt_t *crypt_create(const keyring_t *keyring, const char *cluster);
void crypt_destroy(crypt_t *crypt);

/*
 * Seals a plain datagram of our own, of at most PACKET_PLAIN_BYTES, into sealed
 * (of PACKET_MAX_BYTES).  Returns the length.
 */
size_t crypt_seal(crypt_t *crypt, uint8_t *sealed, const uint8_t *plain,
    size_t len);

/*
 * Opens a received datagram into plain (of PACKET_MAX_BYTES), to be decoded;
 * its counter is for crypt_take().  Results are set only with PACKET_DONE.
 */
packet_rc_t crypt_open(const crypt_t *crypt, uint8_t *plain,
    size_t *plain_len, uint64_t *counter, const uint8_t *data, size_t len);

/* Whether the counter comes for the first time from this run of the sender.
   PACKET_DONE or PACKET_EREPLAYED. */
packet_rc_t crypt_take(crypt_t *crypt, const char *sender_id,
    uint64_t sender_epoch, uint64_t counter, uint64_t now_us);

#endif /* CRYPT_H */
