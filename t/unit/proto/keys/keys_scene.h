
/* Key files as texts. */

#ifndef KEYS_SCENE_H
#define KEYS_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "proto/keys/keys.h"


#define NOON  1795867200000ull          /* 2026-11-28T12:00Z */

#define KEY_A  "sk-llmgw-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B  "sk-llmgw-bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C  "sk-llmgw-ccccccccccccccccccccccccccccccccccccccccccc"


/* The keys of a file; NULL if it is wrong, with the reason in *error. */
static inline llmgw_keys_t *
keys_of(const char *text, llmgw_keys_error_t *error)
{
    char             *copy;
    llmgw_keys_t     *keys;
    llmgw_keys_rc_t   rc;

    copy = malloc(strlen(text) + 1);    /* no longer, for sanitizers */
    assert_non_null(copy);
    memcpy(copy, text, strlen(text));
    keys = llmgw_keys_create(copy, strlen(text));
    assert_non_null(keys);

    do {
        rc = llmgw_keys_step(keys, 1, error);
    } while (rc == LLMGW_KEYS_MORE);

    if (rc == LLMGW_KEYS_DONE) {
        return keys;
    }

    assert_int_equal(rc, LLMGW_KEYS_ERROR);
    llmgw_keys_destroy(keys);

    return NULL;
}


/* A line of a key: "NAME HASH REST\n".  It is valid until the fourth call
   after this one. */
static inline const char *
key_line(const char *name, const char *key, const char *rest)
{
    char             hex[2 * LLMGW_KEY_HASH_BYTES + 1];
    static int       next;
    static char      lines[4][512];

    llmgw_key_hash(key, strlen(key), hex);
    next = (next + 1) % 4;
    snprintf(lines[next], sizeof(lines[next]), "%s %s %s\n", name, hex, rest);

    return lines[next];
}


static inline int
text_is(llmgw_key_text_t text, const char *word)
{
    return text.text != NULL && text.len == strlen(word)
           && memcmp(text.text, word, text.len) == 0;
}

#endif /* KEYS_SCENE_H */
