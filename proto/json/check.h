
/*
 * Whether a text is JSON: RFC 8259, in UTF-8, no deeper than a limit.  Half a
 * surrogate pair is an escape like others.
 *
 * For what comes with each token, in which a library takes more than twice as
 * long: docs/adr/0018 has the figures.
 */

#ifndef LLMGW_JSON_CHECK_H
#define LLMGW_JSON_CHECK_H

#include "proto/json/walk.h"


/* 0, and the text's value; -1: it is no JSON, or too deep. */
int llmgw_json_check(const void *text, size_t len, llmgw_json_t *value);

/* The same of the string that begins there; what is behind it is not read. */
int llmgw_json_check_string(const void *begin, const void *end,
    llmgw_json_t *string);

#endif /* LLMGW_JSON_CHECK_H */
