
/*
 * JSON as spans of the bytes that it came in.
 *
 * A text is judged once, whole (value_check: RFC 8259, UTF-8, a depth); behind
 * that every walk relies on it and only finds where values end.  Nothing is
 * allocated for a value, and what passes on unchanged is copied as it was
 * written: numbers keep their digits, strings their escapes.  An event
 * of 250 bytes becomes a message in 1.5 us (bench/micro/dialect.c); a tree of
 * it by jansson, and its dump, take 6.
 */

#ifndef VALUE_H
#define VALUE_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>


#define VALUE_MAX_DEPTH  64     /* of arrays and objects, as the front's */


/* A value, from its first byte to behind its last; p NULL: absent. */
typedef struct {
    const char  *p;
    const char  *end;
} value_t;

/* Growing memory.  A failed one takes nothing more and stays failed. */
typedef struct {
    char    *data;
    size_t   len;
    size_t   size;
    int      failed;
} buf_t;


/* 0, and the text's value; -1: it is no JSON, or too deep. */
int value_check(const char *text, size_t len, value_t *value);

/* Behind the string that begins at p; NULL: there is no whole one. */
const char *value_string_end(const char *p, const char *end);

/* The type by its first byte. */
int value_is_object(value_t value);
int value_is_array(value_t value);
int value_is_string(value_t value);
int value_is_null(value_t value);     /* or absent */
int value_is_true(value_t value);

/* null, "", {} and [] say nothing; nor does what is absent. */
int value_is_empty(value_t value);

/*
 * Whether it is this string, written without escapes.  Inline, so that the
 * length of a name in the code is no work: each event is asked for twenty.
 */
static inline int
value_is(value_t value, const char *text)
{
    size_t  len;

    len = strlen(text);

    return value.p != NULL && (size_t) (value.end - value.p) == len + 2
           && *value.p == '"' && memcmp(value.p + 1, text, len) == 0;
}

/*
 * Goes through an object or array; the first call has *at = { NULL, NULL }.
 * 1: key (with its quotes) and value are set; 0: there is none left, or
 * container is no object or no array.
 */
int value_member(value_t container, value_t *at, value_t *key, value_t *value);
int value_item(value_t container, value_t *at, value_t *value);

/* The last member of this name, as engines read duplicates; or absent. */
value_t value_find(value_t object, const char *name);

/* 0, and the number; -1: it is no integer from 0 to max. */
int value_uint(value_t value, uint64_t max, uint64_t *number);

/* A string without escapes; a lone surrogate becomes U+FFFD. */
void value_string(value_t value, buf_t *buf);

/* At most max of its bytes, NUL-ended, whole characters. */
void value_copy(value_t value, char *to, size_t size);


void buf_add(buf_t *buf, const void *data, size_t len);
void buf_text(buf_t *buf, const char *text);
void buf_value(buf_t *buf, value_t value);
void buf_number(buf_t *buf, int64_t number);

/* With quotes and escapes; text that is no UTF-8 fails. */
void buf_string(buf_t *buf, const void *text, size_t len);

void buf_free(buf_t *buf);

#endif /* VALUE_H */
