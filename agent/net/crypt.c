
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "net/crypt.h"
#include "net/replay.h"


#define CRYPT_NONCE_BYTES  (PACKET_START_BYTES + PACKET_COUNTER_BYTES)

_Static_assert(CRYPT_NONCE_BYTES
               == crypto_aead_xchacha20poly1305_ietf_NPUBBYTES, "nonce");
_Static_assert(PACKET_TAG_BYTES
               == crypto_aead_xchacha20poly1305_ietf_ABYTES, "tag");
_Static_assert(KEYRING_KEY_BYTES
               == crypto_aead_xchacha20poly1305_ietf_KEYBYTES, "key");
_Static_assert(KEYRING_ID_BYTES == PACKET_KEY_ID_BYTES, "key id");
_Static_assert(PACKET_KEY_ID_BYTES + CRYPT_NONCE_BYTES + PACKET_TAG_BYTES
               == PACKET_SEAL_BYTES, "seal");

struct crypt_s {
    const keyring_t  *keyring;
    replay_t         *replay;
    uint64_t          counter;
    uint8_t           nonce[CRYPT_NONCE_BYTES];
    char              cluster[LLMGW_MEMBERS_NAME_BYTES];
};


crypt_t *
crypt_create(const keyring_t *keyring, const char *cluster)
{
    crypt_t  *crypt;

    assert(llmgw_name_is_valid(cluster, strlen(cluster)));

    crypt = sodium_init() == -1 ? NULL : calloc(1, sizeof(crypt_t));
    if (crypt == NULL) {
        return NULL;
    }

    crypt->replay = replay_create();
    if (crypt->replay == NULL) {
        free(crypt);
        return NULL;
    }

    crypt->keyring = keyring;
    strcpy(crypt->cluster, cluster);
    randombytes_buf(crypt->nonce, PACKET_START_BYTES);

    return crypt;
}


void
crypt_destroy(crypt_t *crypt)
{
    replay_destroy(crypt->replay);
    free(crypt);
}


static void
crypt_count(crypt_t *crypt)
{
    size_t    i;
    uint64_t  rest;

    rest = ++crypt->counter;

    for (i = CRYPT_NONCE_BYTES; i > PACKET_START_BYTES; i--) {
        crypt->nonce[i - 1] = rest;
        rest >>= 8;
    }
}


static uint64_t
crypt_counter(const uint8_t *nonce)
{
    size_t    i;
    uint64_t  counter;

    counter = 0;

    for (i = PACKET_START_BYTES; i < CRYPT_NONCE_BYTES; i++) {
        counter = counter << 8 | nonce[i];
    }

    return counter;
}


size_t
crypt_seal(crypt_t *crypt, uint8_t *sealed, const uint8_t *plain, size_t len)
{
    size_t               header_bytes, primary, known;
    uint8_t             *at;
    unsigned long long   n;

    header_bytes = packet_header_encode(sealed, crypt->cluster,
                                        PACKET_FLAG_SEALED);
    assert(len >= header_bytes && len <= PACKET_PLAIN_BYTES);

    primary = keyring_primary(crypt->keyring);
    at = sealed + header_bytes;
    memcpy(at, keyring_id(crypt->keyring, primary), PACKET_KEY_ID_BYTES);
    at += PACKET_KEY_ID_BYTES;
    known = at - sealed;

    crypt_count(crypt);
    memcpy(at, crypt->nonce, CRYPT_NONCE_BYTES);
    at += CRYPT_NONCE_BYTES;

    crypto_aead_xchacha20poly1305_ietf_encrypt(
        at, &n, plain + header_bytes, len - header_bytes, sealed, known,
        NULL, crypt->nonce, keyring_key(crypt->keyring, primary));

    return at + n - sealed;
}


packet_rc_t
crypt_open(const crypt_t *crypt, uint8_t *plain, size_t *plain_len,
    uint64_t *counter, const uint8_t *data, size_t len)
{
    size_t               header_bytes;
    unsigned             flags;
    packet_rc_t          rc;
    const uint8_t       *key, *nonce, *sealed;
    unsigned long long   n;

    rc = packet_header_decode(crypt->cluster, data, len, &flags,
                              &header_bytes);
    if (rc != PACKET_DONE) {
        return rc;
    }

    if (!(flags & PACKET_FLAG_SEALED)) {
        return PACKET_EPLAIN;
    }

    if (len - header_bytes < PACKET_SEAL_BYTES) {
        return PACKET_ELENGTH;
    }

    key = keyring_find(crypt->keyring, data + header_bytes);
    if (key == NULL) {
        return PACKET_EKEY;
    }

    nonce = data + header_bytes + PACKET_KEY_ID_BYTES;
    sealed = nonce + CRYPT_NONCE_BYTES;

    if (crypto_aead_xchacha20poly1305_ietf_decrypt(
            plain + header_bytes, &n, NULL, sealed, data + len - sealed,
            data, nonce - data, nonce, key) != 0)
    {
        return PACKET_EFORGED;
    }

    packet_header_encode(plain, crypt->cluster, 0);
    *plain_len = header_bytes + n;
    *counter = crypt_counter(nonce);

    return PACKET_DONE;
}


packet_rc_t
crypt_take(crypt_t *crypt, const char *sender_id, uint64_t sender_epoch,
    uint64_t counter, uint64_t now_us)
{
    return replay_take(crypt->replay, sender_id, sender_epoch, counter,
                       now_us) ? PACKET_DONE : PACKET_EREPLAYED;
}
