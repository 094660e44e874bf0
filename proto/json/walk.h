
/*
 * JSON as spans of the bytes that it came in.
 *
 * A text is judged once, whole, by check.h.  Behind that a walk relies on it
 * and only finds where values begin and end.  Nothing is allocated or copied,
 * and what passes on unchanged stays as it was written, numbers with their
 * digits and strings with their escapes.  docs/adr/0018 has the reason and the
 * price.
 *
 * Whatever the bytes are, a walk never reads beyond the end that it is given,
 * and it gets there.
 */

#ifndef LLMGW_JSON_WALK_H
#define LLMGW_JSON_WALK_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>


/*
 * Of arrays and objects within each other.  Protects engines with recursive
 * parsers; no valid request is nested deeper.
 */
#define LLMGW_JSON_MAX_DEPTH  64

typedef enum {
    LLMGW_JSON_END = 0,         /* nothing more, absent, or no JSON */
    LLMGW_JSON_OBJECT,          /* { */
    LLMGW_JSON_OBJECT_END,
    LLMGW_JSON_ARRAY,           /* [ */
    LLMGW_JSON_ARRAY_END,
    LLMGW_JSON_STRING,
    LLMGW_JSON_NUMBER,
    LLMGW_JSON_TRUE,
    LLMGW_JSON_FALSE,
    LLMGW_JSON_NULL
} llmgw_json_kind_t;

/* A token; or a value, if the end is behind all of it.  { 0 } is absent. */
typedef struct {
    llmgw_json_kind_t   kind;
    const uint8_t      *begin;  /* of a string: its quote */
    const uint8_t      *end;
} llmgw_json_t;

/* A member or an element, which has no key. */
typedef struct {
    llmgw_json_t        key;
    llmgw_json_t        value;
} llmgw_json_item_t;

/* Goes through the items of an object or an array. */
typedef struct {
    const uint8_t      *p;      /* behind the last item, or its bracket */
    const uint8_t      *end;
    llmgw_json_kind_t   kind;   /* of the container */
} llmgw_json_items_t;


/*
 * Returns the next token and moves *p after it.  White space, commas and colons
 * are passed over.
 */
llmgw_json_t llmgw_json_token(const uint8_t **p, const uint8_t *end);

/* The value at that place; END: there is none. */
llmgw_json_t llmgw_json_at(const void *begin, const void *end);

/* A value that is no container has no items. */
llmgw_json_items_t llmgw_json_items(llmgw_json_t value);

/* The same of an array or of an object alone: any other value has none. */
llmgw_json_items_t llmgw_json_elements(llmgw_json_t array);
llmgw_json_items_t llmgw_json_members(llmgw_json_t object);

/* 0: there is no further item; then items->p is after the container. */
int llmgw_json_next(llmgw_json_items_t *items, llmgw_json_item_t *item);

/*
 * The same, but items->p is moved only behind the bracket of a container, whose
 * end is not known.  The caller goes through its items and continues behind
 * them.
 */
int llmgw_json_enter(llmgw_json_items_t *items, llmgw_json_item_t *item);

/* The object's last member of that name; END: there is none, or no object. */
llmgw_json_t llmgw_json_member(llmgw_json_t object, const char *name);

/* The array's first element; END: there is none, or no array. */
llmgw_json_t llmgw_json_first(llmgw_json_t array);

/* Whether a value is empty: null, "", {}, [], or absent. */
int llmgw_json_is_empty(llmgw_json_t value);

/* 0, and the number; -1: it is no integer from 0 to max. */
int llmgw_json_uint(llmgw_json_t value, uint64_t max, uint64_t *number);

/*
 * A number without a fraction of zeros, as 2 of 2.00: some clients have only
 * one kind of number.  Any other value as it is.
 */
llmgw_json_t llmgw_json_integral(llmgw_json_t value);

/* Whether a string with escapes has this text (text.c). */
int llmgw_json_is_escaped(llmgw_json_t string, const char *text);


static inline size_t
llmgw_json_bytes(llmgw_json_t value)
{
    return (size_t) (value.end - value.begin);
}


/* The value of a constant. */
static inline llmgw_json_t
llmgw_json_of(const char *json)
{
    return llmgw_json_at(json, json + strlen(json));
}


/* null counts as no value. */
static inline int
llmgw_json_is_null(llmgw_json_t value)
{
    return value.kind == LLMGW_JSON_END || value.kind == LLMGW_JSON_NULL;
}


/*
 * 1: it is a string, and its text is this.  Inline, so that the length of a
 * name in the code is no work: each event of an engine is asked for twenty.
 */
static inline int
llmgw_json_is(llmgw_json_t value, const char *text)
{
    size_t  len, raw;

    if (value.kind != LLMGW_JSON_STRING) {
        return 0;
    }

    len = strlen(text) + 2;
    raw = llmgw_json_bytes(value);

    if (raw <= len) {
        return raw == len && memcmp(value.begin + 1, text, len - 2) == 0;
    }

    /* longer: only escapes can make it the same */

    return (value.begin[1] == (uint8_t) text[0] || value.begin[1] == '\\')
           && llmgw_json_is_escaped(value, text);
}

#endif /* LLMGW_JSON_WALK_H */
