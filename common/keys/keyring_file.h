
/*
 * A file of keys, and the ring that it is read into.
 *
 * The file has a key a line, 32 bytes in hex or base64; a '*' before it marks
 * the primary key; without a mark the first key is primary.  Blank lines and
 * lines that begin with '#' are skipped:
 *
 *     # cluster "prod", rotated in autumn
 *     * GQzGBRMbq8WlBkmCwPvvlXI8fMXl3b2Yx7zS0m8hZ1E=
 *     4f3c...                                     (64 hexadecimal digits)
 *
 * The file is refused if other users than its owner may read or write it.
 *
 * A key is referred to by its id, the first four bytes of its BLAKE2b hash, as
 * eight hexadecimal digits: ids are in logs, answers and datagrams, keys only
 * in the file and in memory.
 */

#ifndef KEYRING_FILE_H
#define KEYRING_FILE_H

#include <stddef.h>
#include <stdint.h>


/* A rotation needs two keys; many more were forgotten. */
#define KEYRING_MAX_KEYS     8
#define KEYRING_KEY_BYTES    32
#define KEYRING_ID_BYTES     4
#define KEYRING_ERROR_BYTES  256

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

/* The place of an id in the ring; n of the ring: it is not there. */
size_t keyring_ring_find(const keyring_ring_t *ring, const uint8_t *id);

/*
 * Read sets *ring only on success.  0, or -1 and one line in error
 * (KEYRING_ERROR_BYTES).  Writing makes a whole new file beside the old one and
 * renames it over that.
 */
int keyring_file_read(keyring_ring_t *ring, const char *path, char *error);
int keyring_file_write(const keyring_ring_t *ring, const char *path,
    char *error);

#endif /* KEYRING_FILE_H */
