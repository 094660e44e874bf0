
/*
 * JSON as spans of the bytes that it came in.
 *
 * A text is first checked as a whole, by check.h.  A walk relies on that, and
 * only finds where values begin and end.  Nothing is allocated or copied, and
 * what is passed on unchanged stays as it was written, numbers with their
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
 * Limit of arrays and objects within each other.  It protects engines with
 * recursive parsers; no valid request is nested deeper.
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

/* A token; it is a value if `end` is after all of it.  { 0 } means absent. */
typedef struct {
    llmgw_json_kind_t   kind;
    const uint8_t      *begin;  /* for a string, at its opening quote */
    const uint8_t      *end;
} llmgw_json_t;

/* A member of an object, or an element of an array, which has no key. */
typedef struct {
    llmgw_json_t        key;
    llmgw_json_t        value;
} llmgw_json_item_t;

/* Goes through the items of an object or an array. */
typedef struct {
    const uint8_t      *p;      /* after the last item, or after the opening
                                   bracket */
    const uint8_t      *end;
    llmgw_json_kind_t   kind;   /* of the container */
} llmgw_json_items_t;


/*
 * Returns the next token and moves *p after it.  White space, commas and colons
 * are passed over.
 */
llmgw_json_t llmgw_json_token(const uint8_t **p, const uint8_t *end);

/* The value that begins there; END: there is none. */
llmgw_json_t llmgw_json_at(const void *begin, const void *end);

/* The items of an object or array; any other value has none. */
llmgw_json_items_t llmgw_json_items(llmgw_json_t value);

/*
 * The same for an array alone or an object alone: any other value has no items.
 */
llmgw_json_items_t llmgw_json_elements(llmgw_json_t array);
llmgw_json_items_t llmgw_json_members(llmgw_json_t object);

/*
 * Returns the next item.  0: there is no further one; items->p is then after
 * the container.
 */
int llmgw_json_next(llmgw_json_items_t *items, llmgw_json_item_t *item);

/*
 * Like llmgw_json_next(), but does not look for the end of a value that is a
 * container: items->p is only moved after its opening bracket.  The caller goes
 * through the inner items and continues after them.
 */
int llmgw_json_enter(llmgw_json_items_t *items, llmgw_json_item_t *item);

/*
 * The last member of the object with that name; END: it has none, or is no
 * object.
 */
llmgw_json_t llmgw_json_member(llmgw_json_t object, const char *name);

/* The array's first element; END: it has none, or is no array. */
llmgw_json_t llmgw_json_first(llmgw_json_t array);

/* Whether a value is empty: null, "", {}, [], or absent. */
int llmgw_json_is_empty(llmgw_json_t value);

/* Reads a number.  0: *number is set; -1: it is no integer from 0 to max. */
int llmgw_json_uint(llmgw_json_t value, uint64_t max, uint64_t *number);

/*
 * For a number whose fraction is only zeros, returns the part before it, as 2
 * of 2.00: some clients have only one kind of number.  Other values are
 * returned as they are.
 */
llmgw_json_t llmgw_json_integral(llmgw_json_t value);

/* Whether a string with escapes has this text (text.c). */
int llmgw_json_is_escaped(llmgw_json_t string, const char *text);


static inline size_t
llmgw_json_bytes(llmgw_json_t value)
{
    return (size_t) (value.end - value.begin);
}


/* The value of a constant text. */
static inline llmgw_json_t
llmgw_json_of(const char *json)
{
    return llmgw_json_at(json, json + strlen(json));
}


/* A value that is null counts as absent. */
static inline int
llmgw_json_is_null(llmgw_json_t value)
{
    return value.kind == LLMGW_JSON_END || value.kind == LLMGW_JSON_NULL;
}


/*
 * 1: it is a string, and its text is this.  Inline, so that the compiler
 * computes the length of a name: twenty names are looked for in each event of
 * an engine.
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

    /* if longer, only escapes can make it equal */

    return (value.begin[1] == (uint8_t) text[0] || value.begin[1] == '\\')
           && llmgw_json_is_escaped(value, text);
}

#endif /* LLMGW_JSON_WALK_H */
