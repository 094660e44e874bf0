
/*
 * Whether a text is JSON: RFC 8259, in UTF-8, no deeper than a limit.
 *
 * For what comes with each token, in which a library takes more than twice as
 * long: docs/adr/0018 has the figures.
 */

#ifndef LLMGW_JSON_CHECK_H
#define LLMGW_JSON_CHECK_H

#include "proto/json/walk.h"


/* An error in a text, and its position. */
typedef struct {
    const char  *reason;        /* constant, in plain words */
    size_t       at;            /* byte from 0; where the text ends too early:
                                   its length */
} llmgw_json_error_t;


/*
 * 0, and the text's value; -1: it is no JSON, or too deep.  Half a surrogate
 * pair is an escape like others.
 */
int llmgw_json_check(const void *text, size_t len, llmgw_json_t *value);

/*
 * The same, but half a surrogate pair, which is no character, is refused; and
 * the error is set.
 */
int llmgw_json_check_strict(const void *text, size_t len, llmgw_json_t *value,
    llmgw_json_error_t *error);

/* Like check(), for the string that begins there; the rest is not read. */
int llmgw_json_check_string(const void *begin, const void *end,
    llmgw_json_t *string);

#endif /* LLMGW_JSON_CHECK_H */
