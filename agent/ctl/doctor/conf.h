
/*
 * nginx's configuration as a tree of JSON, for checks of its content.  nginx
 * itself judges whether it is correct, so this reader is tolerant: it knows
 * words, quotes, comments and blocks, and no directive but include.
 *
 * The text is what "nginx -T" prints, all files one after the other, each after
 * a line "# configuration file PATH:"; the files that an include names are
 * taken from there.  A text without such lines is one file, and its includes
 * are skipped.
 *
 *     worker_processes 4; http { server { listen 80; } }
 *
 *     [{"name": "worker_processes", "words": ["4"], "at": "nginx.conf:1"},
 *      {"name": "http", "words": [], "at": "nginx.conf:1", "block":
 *        [{"name": "server", "words": [], "at": ..., "block": [...]}]}]
 */

#ifndef DOCTOR_CONF_H
#define DOCTOR_CONF_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>


#define CONF_MAX_DEPTH    32            /* for blocks and includes */
#define CONF_WORD_BYTES   4096          /* nginx's own limit */
#define CONF_ERROR_BYTES  256

/* A block and those around it, the innermost first. */
typedef struct conf_scope_s  conf_scope_t;

struct conf_scope_s {
    const json_t        *block;
    const json_t        *owner;         /* its directive; NULL: it is the whole
                                           file */
    const conf_scope_t  *up;
};

typedef void (*conf_visit_pt)(const json_t *directive,
    const conf_scope_t *scope, void *data);


/*
 * Reads a configuration; name is for a text that is one file.  NULL, and one
 * line in error.
 */
json_t *conf_read(const char *text, const char *name, char *error);

/* Visits each directive of that name (NULL: all), with the blocks around it. */
void conf_walk(const json_t *conf, const char *name, conf_visit_pt visit,
    void *data);

/*
 * The directive that is in force in a scope: the one of the innermost block
 * that has it.  NULL: there is none.
 */
const json_t *conf_in_force(const conf_scope_t *scope, const char *name);

/* The first directive of that name in the block itself; NULL: there is none. */
const json_t *conf_child(const json_t *block, const char *name);

/* The i-th word after the directive's name, from 0; "": it has fewer. */
const char *conf_word(const json_t *directive, size_t i);

/* 1: the directive has that word. */
int conf_has_word(const json_t *directive, const char *word);

/*
 * A number with an optional k, m or g, in bytes; fallback: the word is no
 * number.
 */
int64_t conf_size(const char *word, int64_t fallback);

#endif /* DOCTOR_CONF_H */
