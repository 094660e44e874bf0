
/*
 * Whether a text is JSON: RFC 8259, in UTF-8, no deeper than a limit.
 *
 * It checks what comes with each token, for which a library takes more than
 * twice as long: docs/adr/0018 has the figures.
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
 * Checks a text.  0, and *value is its value; -1: it is no JSON, or too deep.
 * Half a surrogate pair is accepted like other escapes.
 */
int llmgw_json_check(const void *text, size_t len, llmgw_json_t *value);

/*
 * Like llmgw_json_check(), but refuses half a surrogate pair, which is no
 * character, and sets the error.
 */
int llmgw_json_check_strict(const void *text, size_t len, llmgw_json_t *value,
    llmgw_json_error_t *error);

/*
 * Checks the string that begins there, like llmgw_json_check(); what comes
 * after it is not read.
 */
int llmgw_json_check_string(const void *begin, const void *end,
    llmgw_json_t *string);

#endif /* LLMGW_JSON_CHECK_H */
