
/*
 * YAML read into structs, by tables.
 *
 * A table says which keys a mapping may have, of which kind each is, and where
 * its value goes.  Any other key, a key given twice, a value of another kind
 * or out of its limits is an error with file and line.  A null leaves a field
 * as it was, as an absent key does.
 *
 * Each struct of a table begins with a work_yaml_t: the line of its mapping, so
 * that what a table cannot check can be refused with its line later.
 */

#ifndef WORK_YAML_H
#define WORK_YAML_H

#include <stddef.h>
#include <stdint.h>

#include "sim/work/arena.h"
#include "sim/work/error.h"


typedef struct {
    size_t  line;
} work_yaml_t;

typedef enum {
    WORK_YAML_TEXT = 0,     /* const char *, in the arena */
    WORK_YAML_INT,          /* int64_t, within min .. max */
    WORK_YAML_DOUBLE,       /* double, finite and within min .. max */
    WORK_YAML_UINT32,       /* uint32_t, within min .. max */
    WORK_YAML_SECONDS_US,   /* int64_t in us: seconds in the file, likewise */
    WORK_YAML_SECONDS_MS,   /* uint64_t in ms: seconds in the file, likewise */
    WORK_YAML_PERMILLE,     /* uint32_t in thousandths, likewise */
    WORK_YAML_BOOL,         /* int */
    WORK_YAML_WORD,         /* int: the index of the word */
    WORK_YAML_MAP,          /* a struct behind a pointer, NULL: absent */
    WORK_YAML_INNER,        /* a mapping to fields of the same struct */
    WORK_YAML_LIST,         /* work_yaml_list_t: a list of structs */
    WORK_YAML_NAMED,        /* work_yaml_list_t: a mapping from names to
                               structs, each beginning with work_yaml_named_t */
    WORK_YAML_NUMBERS,      /* work_yaml_numbers_t: a mapping to numbers */
    WORK_YAML_WORDS,        /* work_yaml_words_t: a list of texts */
    WORK_YAML_REFUSED       /* a known key that is not supported */
} work_yaml_kind_t;

/*
 * min == max: there are no limits, but numbers must be finite.  Limits apply to
 * the number as it is written.
 */
typedef struct {
    const char                      *key;       /* NULL ends a table */
    work_yaml_kind_t                 kind;
    size_t                           offset;
    double                           min;
    double                           max;
    const void                      *table;     /* of MAP, INNER, LIST, NAMED:
                                                   fields; of WORD: its texts;
                                                   each ends with NULL */
    size_t                           size;      /* of the field's struct */
    size_t                           present;   /* offset of an int that is set
                                                   to 1 if the key is present;
                                                   0: none */
} work_yaml_field_t;

/* The items of a LIST in a row, each of the size in the field's `size`. */
typedef struct {
    void    *items;
    size_t   n;
} work_yaml_list_t;

/* A struct of a NAMED begins with this, which its table does not list. */
typedef struct {
    work_yaml_t   at;
    const char   *name;
} work_yaml_named_t;

typedef struct {
    const char  *name;
    double       value;
    size_t       line;
} work_yaml_number_t;

typedef struct {
    work_yaml_number_t  *items;
    size_t               n;
} work_yaml_numbers_t;

typedef struct {
    const char  **items;
    size_t        n;
} work_yaml_words_t;

/*
 * Reads the mapping in bytes into *values (zeroed, or with defaults, by the
 * caller).  What *values points to is in the arena.  0, or -1 and *error.  file
 * names it in errors.
 */
int work_yaml_parse(const work_yaml_field_t *table, void *values,
    const char *file, const char *bytes, size_t len, work_arena_t *arena,
    work_error_t *error);

/* As work_yaml_parse(), from a file. */
int work_yaml_read(const work_yaml_field_t *table, void *values,
    const char *path, work_arena_t *arena, work_error_t *error);

#endif /* WORK_YAML_H */
