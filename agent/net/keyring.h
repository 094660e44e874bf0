
/*
 * The keys of a cluster, and the file that they are kept in.
 *
 * The primary key seals what this agent sends; every key of the ring opens
 * what it receives.  So keys rotate while agents talk: the new key is added at
 * all agents, then used at all, then the old one is removed from all.
 *
 * They are kept in a file (common/keys/keyring_file.h), which every change
 * writes anew.
 */

#ifndef KEYRING_H
#define KEYRING_H

#include <stddef.h>
#include <stdint.h>

#include "common/keys/keyring_file.h"


#define KEYRING_ID_TEXT_BYTES  (2 * KEYRING_ID_BYTES + 1)

typedef enum {
    KEYRING_DONE = 0,
    KEYRING_EKEY,           /* neither 64 hex digits nor base64 of 32 bytes */
    KEYRING_EFULL,
    KEYRING_EUNKNOWN,       /* no such id */
    KEYRING_EPRIMARY,       /* the primary key cannot be removed */
    KEYRING_EFILE
} keyring_rc_t;

typedef enum {
    KEYRING_ADD = 0,
    KEYRING_USE,
    KEYRING_REMOVE
} keyring_verb_t;

typedef struct keyring_s       keyring_t;
typedef struct keyring_plan_s  keyring_plan_t;


/* Reads the file.  NULL, and one line in error. */
keyring_t *keyring_create(const char *path, char *error);

/* Overwrites the keys in memory. */
void keyring_destroy(keyring_t *keyring);

/*
 * Reads the file again.  0; or -1 and one line in error, and the keys are
 * unchanged.
 */
int keyring_reload(keyring_t *keyring, char *error);

/*
 * A change takes three steps, since writing may have to wait for a slow disk:
 * plan it, write the file, and take the plan over.  A change is in file and
 * memory, or, if the second step fails, in neither.
 *
 * text: to add, a key as in the file, which may be there already; to use or
 * remove, an id of eight hexadecimal digits.  error is set for KEYRING_EFILE,
 * which here means out of memory.  *plan is set with KEYRING_DONE.
 */
keyring_rc_t keyring_plan(const keyring_t *keyring, keyring_verb_t verb,
    const char *text, keyring_plan_t **plan, char *error);

/*
 * Writes the file; may be called in another thread.  0, or -1 and one line in
 * error.
 */
int keyring_plan_write(const keyring_plan_t *plan, char *error);

/*
 * Takes the plan over, and frees it.  There must have been no other change or
 * reload since it was made.
 */
void keyring_take(keyring_t *keyring, keyring_plan_t *plan);

/* Overwrites the plan's keys, and frees it. */
void keyring_plan_destroy(keyring_plan_t *plan);

size_t keyring_count(const keyring_t *keyring);

/* Writes the id of the i-th key as text, of KEYRING_ID_TEXT_BYTES. */
void keyring_id_text(const keyring_t *keyring, size_t i, char *text);

/* The place of the primary key in the ring. */
size_t keyring_primary(const keyring_t *keyring);

/*
 * Id and key, of KEYRING_ID_BYTES and KEYRING_KEY_BYTES, valid until the next
 * change.
 */
const uint8_t *keyring_id(const keyring_t *keyring, size_t i);
const uint8_t *keyring_key(const keyring_t *keyring, size_t i);

/* The key with this id; NULL: there is none. */
const uint8_t *keyring_find(const keyring_t *keyring, const uint8_t *id);

#endif /* KEYRING_H */
