
/*
 * Walks through JSON that was judged before (judge.h): token by token, without
 * a copy, and without judging again.  Whatever the bytes are, it never reads
 * beyond the end that it is given, and it gets there.
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

/* A member or an element, which has no key. */
typedef struct {
    llmgw_scan_t        key;
    llmgw_scan_t        value;
} llmgw_scan_item_t;

/* Goes through the items of an object or an array. */
typedef struct {
    const uint8_t      *p;      /* behind the last item, or its bracket */
    const uint8_t      *end;
    llmgw_scan_kind_t   kind;   /* of the container */
} llmgw_scan_items_t;


/*
 * The next token, which *p is moved behind.  White space, commas and colons
 * are passed over.
 */
llmgw_scan_t llmgw_scan_token(const uint8_t **p, const uint8_t *end);

/* The next value, with all that is in it. */
llmgw_scan_t llmgw_scan_value(const uint8_t **p, const uint8_t *end);

/* The value that is known to stand there; END: there is none. */
llmgw_scan_t llmgw_scan_at(const uint8_t *begin, const uint8_t *end);

/* A value that is no container has no items. */
llmgw_scan_items_t llmgw_scan_items(const llmgw_scan_t *value);

/* 0: there is no further item; then items->p is behind the container. */
int llmgw_scan_next(llmgw_scan_items_t *items, llmgw_scan_item_t *item);

/*
 * The same, but items->p is moved only behind the bracket of a container, whose
 * end is not known.  The caller goes through its items and continues behind
 * them.
 */
int llmgw_scan_enter(llmgw_scan_items_t *items, llmgw_scan_item_t *item);

/* The object's last member of that name; END: there is none, or no object. */
llmgw_scan_t llmgw_scan_member(llmgw_scan_t object, const char *name);

/*
 * Writes the next piece of a string's text, at most `room` bytes, at least 4
 * of which must be there.  *from is NULL at first, and stands behind what was
 * written then.  Characters are not split.  Returns the bytes; 0: no more.
 */
size_t llmgw_scan_text(const llmgw_scan_t *string, const uint8_t **from,
    uint8_t *out, size_t room);

/* 1: it is a string, and its text is this. */
int llmgw_scan_is(const llmgw_scan_t *value, const char *text);

/* The first quote, backslash or control character; end: there is none. */
const uint8_t *llmgw_scan_special(const uint8_t *p, const uint8_t *end);

/*
 * The character of an escape \uXXXX or of two that are a surrogate pair, and
 * its length.  0: there is half a pair, or it is cut off.
 */
size_t llmgw_scan_unicode(const uint8_t *p, const uint8_t *end,
    uint32_t *character);

#endif /* LLMGW_OPENAI_SCAN_H */
