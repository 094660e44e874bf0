
/*
 * Walks through JSON that was judged before (judge.h): token by token, without
 * a copy, and without judging again.  It never reads beyond the end that it is
 * given, whatever the bytes are.
 */

#ifndef LLMGW_OPENAI_SCAN_H
#define LLMGW_OPENAI_SCAN_H

#include <stddef.h>
#include <stdint.h>


typedef enum {
    LLMGW_SCAN_END = 0,         /* nothing more, or no JSON */
    LLMGW_SCAN_OBJECT,          /* { */
    LLMGW_SCAN_OBJECT_END,
    LLMGW_SCAN_ARRAY,           /* [ */
    LLMGW_SCAN_ARRAY_END,
    LLMGW_SCAN_STRING,
    LLMGW_SCAN_NUMBER,
    LLMGW_SCAN_TRUE,
    LLMGW_SCAN_FALSE,
    LLMGW_SCAN_NULL
} llmgw_scan_kind_t;

/* A token; or a value, if the end is behind all of it. */
typedef struct {
    llmgw_scan_kind_t   kind;
    const uint8_t      *begin;  /* of a string: its quote */
    const uint8_t      *end;
} llmgw_scan_t;

/* A member or an element; key.kind of an element is END. */
typedef struct {
    llmgw_scan_t        key;
    llmgw_scan_t        value;
} llmgw_scan_item_t;


/*
 * The next token, which *p is moved behind.  White space, commas and colons
 * are passed over.
 */
llmgw_scan_t llmgw_scan_token(const uint8_t **p, const uint8_t *end);

/* The next value, with all that is in it. */
llmgw_scan_t llmgw_scan_value(const uint8_t **p, const uint8_t *end);

/*
 * The next item of an object or an array.  *p is first a position within it,
 * behind its opening bracket; end is behind its closing one.  0: no more.
 */
int llmgw_scan_item(const uint8_t **p, const uint8_t *end,
    llmgw_scan_kind_t container, llmgw_scan_item_t *item);

/*
 * Writes a string without quotes and escapes, at most `room` bytes.  *from is
 * NULL at first; it is moved behind what was written and never splits a
 * character.  Returns the bytes written; 0: there is no more.  A room of 4
 * bytes is enough for a character.
 */
size_t llmgw_scan_text(const llmgw_scan_t *string, const uint8_t **from,
    uint8_t *out, size_t room);

/* The string's text is exactly this. */
int llmgw_scan_is(const llmgw_scan_t *string, const char *text);

/* The first quote, backslash or control character; end: there is none. */
const uint8_t *llmgw_scan_plain(const uint8_t *p, const uint8_t *end);

#endif /* LLMGW_OPENAI_SCAN_H */
