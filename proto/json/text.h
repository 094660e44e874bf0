
/* Strings of JSON as the text that they mean. */

#ifndef LLMGW_JSON_TEXT_H
#define LLMGW_JSON_TEXT_H

#include "proto/json/walk.h"


/*
 * Room that must be left in the output before each step of llmgw_json_text().
 */
#define LLMGW_JSON_TEXT_ROOM  4


/*
 * Writes the next piece of a string's text, at most `room` bytes; `room` is at
 * least LLMGW_JSON_TEXT_ROOM.  *from is NULL at first, and then points after
 * the part that was written.  Characters are not split; half a surrogate pair
 * becomes U+FFFD.  Returns the number of bytes; 0: no more.
 */
size_t llmgw_json_text(const llmgw_json_t *string, const uint8_t **from,
    void *out, size_t room);

/*
 * Copies the beginning of a string's text, whole characters and a NUL: at most
 * `size` bytes, and `size` is more than LLMGW_JSON_TEXT_ROOM.  For a value that
 * is no string, writes "".
 */
void llmgw_json_copy(llmgw_json_t value, char *to, size_t size);

/*
 * Decodes an escape \uXXXX, or two that are a surrogate pair; returns its
 * length.  0: half a pair, cut off, or digits that are not hexadecimal.
 */
size_t llmgw_json_unicode(const uint8_t *p, const uint8_t *end,
    uint32_t *character);

#endif /* LLMGW_JSON_TEXT_H */
