
#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/keys/keyring_file.h"
#include "net/keyring.h"


struct keyring_s {
    char            *path;
    keyring_ring_t   ring;
};

/* A planned change: the ring as it will be. */
struct keyring_plan_s {
    char            *path;
    keyring_ring_t   ring;
};


keyring_t *
keyring_create(const char *path, char *error)
{
    keyring_t  *keyring;

    keyring = sodium_init() == -1 ? NULL : calloc(1, sizeof(keyring_t));

    if (keyring == NULL || (keyring->path = strdup(path)) == NULL) {
        snprintf(error, KEYRING_ERROR_BYTES, "out of memory");
        free(keyring);
        return NULL;
    }

    /* best effort: keeps the keys out of swap */
    sodium_mlock(&keyring->ring, sizeof(keyring_ring_t));

    if (keyring_reload(keyring, error) != 0) {
        keyring_destroy(keyring);
        return NULL;
    }

    return keyring;
}


void
keyring_destroy(keyring_t *keyring)
{
    sodium_munlock(&keyring->ring, sizeof(keyring_ring_t));
    free(keyring->path);
    free(keyring);
}


int
keyring_reload(keyring_t *keyring, char *error)
{
    return keyring_file_read(&keyring->ring, keyring->path, error);
}


/* The place of an id given as text; n of the ring: it is not there. */
static size_t
keyring_find_text(const keyring_ring_t *ring, const char *text)
{
    size_t   n;
    uint8_t  id[KEYRING_ID_BYTES];

    if (strlen(text) != 2 * KEYRING_ID_BYTES
        || sodium_hex2bin(id, sizeof(id), text, strlen(text), NULL, &n, NULL)
           != 0)
    {
        return ring->n;
    }

    return keyring_ring_find(ring, id);
}


typedef keyring_rc_t (*keyring_change_pt)(keyring_ring_t *ring,
    const char *text);


static keyring_rc_t
keyring_ring_add(keyring_ring_t *ring, const char *text)
{
    keyring_key_t  key;

    if (keyring_key_decode(&key, text) != 0) {
        return KEYRING_EKEY;
    }

    if (keyring_ring_find(ring, key.id) == ring->n) {
        if (ring->n == KEYRING_MAX_KEYS) {
            sodium_memzero(&key, sizeof(key));
            return KEYRING_EFULL;
        }

        ring->keys[ring->n++] = key;
    }

    sodium_memzero(&key, sizeof(key));

    return KEYRING_DONE;
}


static keyring_rc_t
keyring_ring_use(keyring_ring_t *ring, const char *id)
{
    size_t  i;

    i = keyring_find_text(ring, id);

    if (i == ring->n) {
        return KEYRING_EUNKNOWN;
    }

    ring->primary = i;

    return KEYRING_DONE;
}


static keyring_rc_t
keyring_ring_remove(keyring_ring_t *ring, const char *id)
{
    size_t  i;

    i = keyring_find_text(ring, id);

    if (i == ring->n) {
        return KEYRING_EUNKNOWN;
    }

    if (i == ring->primary) {
        return KEYRING_EPRIMARY;
    }

    ring->n--;
    ring->primary -= ring->primary > i;
    memmove(&ring->keys[i], &ring->keys[i + 1],
            (ring->n - i) * sizeof(keyring_key_t));
    sodium_memzero(&ring->keys[ring->n], sizeof(keyring_key_t));

    return KEYRING_DONE;
}


keyring_rc_t
keyring_plan(const keyring_t *keyring, keyring_verb_t verb, const char *text,
    keyring_plan_t **plan, char *error)
{
    static const keyring_change_pt  changes[] = {
        [KEYRING_ADD] = keyring_ring_add,
        [KEYRING_USE] = keyring_ring_use,
        [KEYRING_REMOVE] = keyring_ring_remove
    };

    keyring_rc_t     rc;
    keyring_plan_t  *planned;

    planned = malloc(sizeof(keyring_plan_t));

    if (planned == NULL || (planned->path = strdup(keyring->path)) == NULL) {
        snprintf(error, KEYRING_ERROR_BYTES, "out of memory");
        free(planned);
        return KEYRING_EFILE;
    }

    planned->ring = keyring->ring;
    rc = changes[verb](&planned->ring, text);

    if (rc != KEYRING_DONE) {
        keyring_plan_destroy(planned);
        return rc;
    }

    *plan = planned;

    return KEYRING_DONE;
}


int
keyring_plan_write(const keyring_plan_t *plan, char *error)
{
    return keyring_file_write(&plan->ring, plan->path, error);
}


void
keyring_take(keyring_t *keyring, keyring_plan_t *plan)
{
    keyring->ring = plan->ring;
    keyring_plan_destroy(plan);
}


void
keyring_plan_destroy(keyring_plan_t *plan)
{
    sodium_memzero(&plan->ring, sizeof(plan->ring));
    free(plan->path);
    free(plan);
}


size_t
keyring_count(const keyring_t *keyring)
{
    return keyring->ring.n;
}


size_t
keyring_primary(const keyring_t *keyring)
{
    return keyring->ring.primary;
}


void
keyring_id_text(const keyring_t *keyring, size_t i, char *text)
{
    sodium_bin2hex(text, KEYRING_ID_TEXT_BYTES, keyring->ring.keys[i].id,
                   KEYRING_ID_BYTES);
}


const uint8_t *
keyring_id(const keyring_t *keyring, size_t i)
{
    return keyring->ring.keys[i].id;
}


const uint8_t *
keyring_key(const keyring_t *keyring, size_t i)
{
    return keyring->ring.keys[i].bytes;
}


const uint8_t *
keyring_find(const keyring_t *keyring, const uint8_t *id)
{
    size_t  i;

    i = keyring_ring_find(&keyring->ring, id);

    return i < keyring->ring.n ? keyring->ring.keys[i].bytes : NULL;
}
