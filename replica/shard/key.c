
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/key.h"


#define SHARD_KEY_MINUTE_S  60

/* In each MAC, so that one that was made for another purpose with the same key
   is not accepted. */
#define SHARD_KEY_DOMAIN    "llmgw shard session 1"

struct shard_key_s {
    keyring_ring_t  ring;
};


shard_key_t *
shard_key_open(const char *path, char *error)
{
    shard_key_t  *key;

    key = sodium_init() == -1 ? NULL : calloc(1, sizeof(shard_key_t));

    if (key == NULL) {
        snprintf(error, SHARD_KEY_ERROR_BYTES, "out of memory");
        return NULL;
    }

    /* Best effort: keeps the keys out of swap. */
    sodium_mlock(&key->ring, sizeof(keyring_ring_t));

    if (keyring_file_read(&key->ring, path, error) != 0) {
        shard_key_close(key);
        return NULL;
    }

    return key;
}


void
shard_key_close(shard_key_t *key)
{
    if (key != NULL) {
        sodium_munlock(&key->ring, sizeof(keyring_ring_t));
        free(key);
    }
}


static void
shard_key_put(crypto_generichash_state *state, const void *field, size_t n)
{
    int      i;
    uint8_t  len[8];

    for (i = 0; i < 8; i++) {
        len[i] = (uint8_t) ((uint64_t) n >> (8 * i));
    }

    crypto_generichash_update(state, len, sizeof(len));
    crypto_generichash_update(state, field, n);
}


static void
shard_key_put_number(crypto_generichash_state *state, uint64_t number)
{
    int      i;
    uint8_t  bytes[8];

    for (i = 0; i < 8; i++) {
        bytes[i] = (uint8_t) (number >> (8 * i));
    }

    shard_key_put(state, bytes, sizeof(bytes));
}


static void
shard_key_mac(const keyring_key_t *key, const shard_claim_t *claim,
    uint64_t minute, uint8_t mac[SHARD_TOKEN_BYTES])
{
    crypto_generichash_state  state;

    crypto_generichash_init(&state, key->bytes, KEYRING_KEY_BYTES,
                            SHARD_TOKEN_BYTES);

    shard_key_put(&state, SHARD_KEY_DOMAIN, sizeof(SHARD_KEY_DOMAIN) - 1);
    shard_key_put(&state, claim->caller, strlen(claim->caller));
    shard_key_put_number(&state, claim->session);
    shard_key_put(&state, claim->shard, strlen(claim->shard));
    shard_key_put(&state, claim->model, strlen(claim->model));
    shard_key_put_number(&state, minute);

    crypto_generichash_final(&state, mac, SHARD_TOKEN_BYTES);
    sodium_memzero(&state, sizeof(state));
}


void
shard_key_sign(const shard_key_t *key, const shard_claim_t *claim,
    uint64_t unix_s, uint8_t token[SHARD_TOKEN_BYTES])
{
    shard_key_mac(&key->ring.keys[key->ring.primary], claim,
                  unix_s / SHARD_KEY_MINUTE_S, token);
}


int
shard_key_verify(const shard_key_t *key, const shard_claim_t *claim,
    uint64_t unix_s, const uint8_t *token, size_t token_bytes)
{
    int       is_known;
    size_t    i;
    uint8_t   mac[SHARD_TOKEN_BYTES];
    uint64_t  minute, now;

    if (token_bytes != SHARD_TOKEN_BYTES) {
        return -1;
    }

    is_known = 0;
    now = unix_s / SHARD_KEY_MINUTE_S;

    for (i = 0; i < key->ring.n; i++) {
        for (minute = now - (now > 0); minute <= now + 1; minute++) {
            shard_key_mac(&key->ring.keys[i], claim, minute, mac);
            is_known |= sodium_memcmp(mac, token, SHARD_TOKEN_BYTES) == 0;
        }
    }

    sodium_memzero(mac, sizeof(mac));

    return is_known ? 0 : -1;
}
