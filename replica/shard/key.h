
/*
 * The token that opens a session with a shard: a MAC over its claim, which
 * names the caller and what it asks for.
 *
 * Orchestrators and shards share a file of keys (common/keys/keyring_file.h).
 * The orchestrator signs the claim of each session with the primary key; a
 * shard accepts every key of its file, so keys rotate as those of gossip do:
 * the new key into all files, then its mark, then the old key out of them.
 * Files are read at start.
 *
 * The MAC is keyed BLAKE2b (RFC 7693) of libsodium, 32 bytes.  Each field is
 * preceded by its length, so that no two claims have the same bytes.  The
 * minute is one of the fields and not sent: a shard tries its own minute and
 * those beside it, so a token lives for two minutes at least and clocks may
 * differ by one.
 *
 * A token shows who may begin a session.  It does not hide what is sent, and
 * does not protect a session that has begun against changes on the way: TLS
 * does both.
 */

#ifndef SHARD_KEY_H
#define SHARD_KEY_H

#include <stddef.h>
#include <stdint.h>

#include "common/keys/keyring_file.h"


#define SHARD_TOKEN_BYTES      32
#define SHARD_KEY_ERROR_BYTES  KEYRING_ERROR_BYTES

typedef struct shard_key_s  shard_key_t;

typedef struct {
    const char  *caller;        /* the orchestrator's member id */
    uint64_t     session;
    const char  *shard;         /* the shard's own member id */
    const char  *model;
} shard_claim_t;


/* Reads the file.  NULL and one line in error (SHARD_KEY_ERROR_BYTES): it
   cannot. */
shard_key_t *shard_key_open(const char *path, char *error);

/* Overwrites the keys in memory, and frees them.  key may be NULL. */
void shard_key_close(shard_key_t *key);

/* unix_s: the wall clock's seconds. */
void shard_key_sign(const shard_key_t *key, const shard_claim_t *claim,
    uint64_t unix_s, uint8_t token[SHARD_TOKEN_BYTES]);

/*
 * 0: one of the keys signed this claim in this minute, the one before or the
 * one after; -1: none did.  Takes the same time whichever byte of a token is
 * wrong.
 */
int shard_key_verify(const shard_key_t *key, const shard_claim_t *claim,
    uint64_t unix_s, const uint8_t *token, size_t token_bytes);

#endif /* SHARD_KEY_H */
