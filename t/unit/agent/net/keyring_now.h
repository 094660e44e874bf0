
/* Changes a keyring in one step, for tests without a slow disk. */

#ifndef KEYRING_NOW_H
#define KEYRING_NOW_H

#include "net/keyring.h"


static inline keyring_rc_t
keyring_now(keyring_t *keyring, keyring_verb_t verb, const char *text,
    char *error)
{
    keyring_rc_t     rc;
    keyring_plan_t  *plan;

    rc = keyring_plan(keyring, verb, text, &plan, error);

    if (rc != KEYRING_DONE) {
        return rc;
    }

    if (keyring_plan_write(plan, error) != 0) {
        keyring_plan_destroy(plan);
        return KEYRING_EFILE;
    }

    keyring_take(keyring, plan);

    return KEYRING_DONE;
}

#define keyring_add(ring, text, error)                                        \
    keyring_now(ring, KEYRING_ADD, text, error)
#define keyring_use(ring, id, error)                                          \
    keyring_now(ring, KEYRING_USE, id, error)
#define keyring_remove(ring, id, error)                                       \
    keyring_now(ring, KEYRING_REMOVE, id, error)

#endif /* KEYRING_NOW_H */
