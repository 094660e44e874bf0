
/* Shared by reading the key file's lines and building the set. */

#ifndef LLMGW_KEYS_INNER_H
#define LLMGW_KEYS_INNER_H

#include "proto/keys/keys.h"


/* A line as it stands in the file. */
typedef struct {
    llmgw_key_text_t   name;
    int                has_hash;        /* 0: the line has '-' */
    uint8_t            hash[LLMGW_KEY_HASH_BYTES];
    uint64_t           until_ms;
    uint32_t           is_admin;
    uint32_t           given;           /* a bit 1 << llmgw_key_fact_t for each
                                           fact */
    llmgw_key_text_t   models;
    llmgw_key_text_t   slo_class;
    llmgw_key_text_t   tenant;
    llmgw_limits_t     limits;
} key_line_t;


/*
 * Parses a line.  1: a key or an identity; 0: an empty line; -1: error->text
 * says what is wrong.
 */
int key_line_parse(key_line_t *line, const char *text, size_t len,
    llmgw_keys_error_t *error);

/* Sets error->text; returns -1. */
int key_line_fail(llmgw_keys_error_t *error, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

#endif /* LLMGW_KEYS_INNER_H */
