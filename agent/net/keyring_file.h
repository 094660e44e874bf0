
/* Private to keyring*.c: the ring in memory, and its file. */

#ifndef KEYRING_FILE_H
#define KEYRING_FILE_H

#include "net/keyring.h"


typedef struct {
    uint8_t  id[KEYRING_ID_BYTES];
    uint8_t  bytes[KEYRING_KEY_BYTES];
} keyring_key_t;

typedef struct {
    size_t         n;
    size_t         primary;
    keyring_key_t  keys[KEYRING_MAX_KEYS];
} keyring_ring_t;


/* Decodes a key, hex or base64, and computes its id.  0 or -1. */
int keyring_key_decode(keyring_key_t *key, const char *text);

/* The place of an id in the ring; n: it is not there. */
size_t keyring_ring_find(const keyring_ring_t *ring, const uint8_t *id);

/* *ring is set on success alone.  0, or -1 and one line in error. */
int keyring_file_read(keyring_ring_t *ring, const char *path, char *error);
int keyring_file_write(const keyring_ring_t *ring, const char *path,
    char *error);

#endif /* KEYRING_FILE_H */
