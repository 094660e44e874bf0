
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl/doctor/conf.h"


#define CONF_MARK      "# configuration file "
#define CONF_MAX_NAME  1024

typedef struct {
    const char  *start;                 /* the whole text, where includes are
                                           looked for */
    const char  *at;
    const char  *end;                   /* end of the file being read */
    char         file[CONF_MAX_NAME];
    unsigned     line;
    unsigned     depth;
    char        *error;
} conf_reader_t;

typedef enum {
    CONF_WORD = 0,
    CONF_SEMICOLON,
    CONF_OPEN,
    CONF_CLOSE,
    CONF_END,
    CONF_WRONG
} conf_token_t;


static int conf_read_block(conf_reader_t *r, json_t *block, int is_inner);


static int
conf_fail(const conf_reader_t *r, const char *what)
{
    snprintf(r->error, CONF_ERROR_BYTES, "%.128s:%u: %s", r->file, r->line,
             what);

    return -1;
}


static void
conf_skip_space(conf_reader_t *r)
{
    int  is_comment;

    is_comment = 0;

    for ( /* void */ ; r->at < r->end; r->at++) {

        if (*r->at == '\n') {
            r->line++;
            is_comment = 0;

        } else if (*r->at == '#') {
            is_comment = 1;

        } else if (!is_comment && strchr(" \t\r", *r->at) == NULL) {
            return;
        }
    }
}


/* Ends the word at the first character of `ends`; "${name}" is a part of it. */
static conf_token_t
conf_read_word(conf_reader_t *r, char *word, const char *ends)
{
    size_t  len;

    for (len = 0; r->at < r->end && strchr(ends, *r->at) == NULL; r->at++) {

        if (len >= CONF_WORD_BYTES - 2) {
            return CONF_WRONG;
        }

        if (*r->at == '$' && r->at + 1 < r->end && r->at[1] == '{') {
            word[len++] = *r->at++;

            while (r->at < r->end && *r->at != '}'
                   && len < CONF_WORD_BYTES - 2)
            {
                word[len++] = *r->at++;
            }

            if (r->at == r->end) {
                return CONF_WRONG;
            }

        } else if (*r->at == '\\' && r->at + 1 < r->end) {
            r->at++;
        }

        r->line += *r->at == '\n';
        word[len++] = *r->at;
    }

    word[len] = '\0';

    return CONF_WORD;
}


static conf_token_t
conf_next(conf_reader_t *r, char *word)
{
    char          quote[2];
    conf_token_t  got;

    conf_skip_space(r);

    if (r->at == r->end) {
        return CONF_END;
    }

    switch (*r->at) {
    case ';':
        r->at++;
        return CONF_SEMICOLON;
    case '{':
        r->at++;
        return CONF_OPEN;
    case '}':
        r->at++;
        return CONF_CLOSE;
    case '"':
    case '\'':
        quote[0] = *r->at++;
        quote[1] = '\0';
        got = conf_read_word(r, word, quote);

        if (r->at == r->end) {
            return CONF_WRONG;
        }

        r->at++;
        return got;
    default:
        return conf_read_word(r, word, " \t\r\n;{");
    }
}


/*
 * Where the text of a file ends: at the next mark, or at the end of everything.
 */
static const char *
conf_file_end(const char *at)
{
    const char  *mark;

    mark = strstr(at, "\n" CONF_MARK);

    return mark != NULL ? mark + 1 : at + strlen(at);
}


/* Opens the file after a mark; NULL: there is no mark. */
static const char *
conf_open(const char *mark, char *name)
{
    size_t       len;
    const char  *end;

    if (strncmp(mark, CONF_MARK, strlen(CONF_MARK)) != 0) {
        return NULL;
    }

    mark += strlen(CONF_MARK);
    end = strchr(mark, '\n');
    len = end != NULL ? (size_t) (end - mark) : 0;

    if (len == 0 || len > CONF_MAX_NAME || end[-1] != ':') {
        return NULL;
    }

    memcpy(name, mark, len - 1);
    name[len - 1] = '\0';

    return end + 1;
}


/* The full name of a file, whose name is relative to the main file. */
static void
conf_full_name(const conf_reader_t *r, const char *pattern, char *full)
{
    char         main_file[CONF_MAX_NAME] = "";
    const char  *slash;

    slash = NULL;

    if (pattern[0] != '/' && conf_open(r->start, main_file) != NULL) {
        slash = strrchr(main_file, '/');
    }

    snprintf(full, CONF_MAX_NAME, "%.*s%s",
             slash ? (int) (slash - main_file) + 1 : 0, main_file, pattern);
}


static int
conf_include(const conf_reader_t *r, json_t *block, const char *pattern)
{
    char            full[CONF_MAX_NAME];
    const char     *at;
    conf_reader_t   inner;

    if (r->depth == CONF_MAX_DEPTH) {
        return conf_fail(r, "files include each other too deeply");
    }

    conf_full_name(r, pattern, full);
    at = r->start;

    while (*at != '\0') {
        inner = *r;
        inner.depth++;
        inner.line = 1;
        inner.at = conf_open(at, inner.file);

        if (inner.at == NULL) {
            return 0;
        }

        inner.end = conf_file_end(inner.at - 1);
        at = inner.end;

        if (fnmatch(full, inner.file, FNM_PATHNAME) == 0
            && conf_read_block(&inner, block, 0) != 0)
        {
            return -1;
        }
    }

    return 0;
}


/*
 * After its words, reads a directive's block, if it has one, or what it
 * includes.
 */
static int
conf_end_directive(conf_reader_t *r, json_t *block, json_t *directive,
    conf_token_t token)
{
    int      rc;
    json_t  *inner;

    if (token == CONF_OPEN) {

        if (r->depth == CONF_MAX_DEPTH) {
            return conf_fail(r, "blocks are nested too deeply");
        }

        inner = json_array();
        json_object_set_new(directive, "block", inner);
        r->depth++;
        rc = conf_read_block(r, inner, 1);
        r->depth--;

        return rc;
    }

    if (token != CONF_SEMICOLON) {
        return conf_fail(r, "a directive is not ended by \";\"");
    }

    return strcmp(json_string_value(json_object_get(directive, "name")),
                  "include") == 0
           ? conf_include(r, block, conf_word(directive, 0)) : 0;
}


static int
conf_read_directive(conf_reader_t *r, json_t *block, const char *name)
{
    char           word[CONF_WORD_BYTES];
    json_t        *directive, *words;
    conf_token_t   token;

    words = json_array();
    directive = json_pack("{s:s, s:o, s:o}", "name", name, "words", words,
                          "at", json_sprintf("%s:%u", r->file, r->line));

    if (directive == NULL) {
        return conf_fail(r, "a name that is not UTF-8");
    }

    json_array_append_new(block, directive);

    while ((token = conf_next(r, word)) == CONF_WORD) {
        json_array_append_new(words, json_string_nocheck(word));
    }

    return conf_end_directive(r, block, directive, token);
}


static int
conf_read_block(conf_reader_t *r, json_t *block, int is_inner)
{
    char          word[CONF_WORD_BYTES];
    conf_token_t  token;

    for ( ;; ) {
        token = conf_next(r, word);

        if (token == (is_inner ? CONF_CLOSE : CONF_END)) {
            return 0;
        }

        if (token != CONF_WORD) {
            return conf_fail(r, token == CONF_END ? "a \"}\" is missing"
                                                  : "no directive begins so");
        }

        if (conf_read_directive(r, block, word) != 0) {
            return -1;
        }
    }
}


json_t *
conf_read(const char *text, const char *name, char *error)
{
    json_t         *conf;
    const char     *at;
    conf_reader_t   r;

    memset(&r, 0, sizeof(r));
    at = strstr(text, CONF_MARK);
    at = at != NULL && (at == text || at[-1] == '\n') ? at : text;
    snprintf(r.file, sizeof(r.file), "%s", name);
    r.start = at;
    r.at = conf_open(at, r.file);
    r.at = r.at != NULL ? r.at : at;
    r.end = conf_file_end(r.at);
    r.line = 1;
    r.error = error;
    conf = json_array();

    if (conf_read_block(&r, conf, 0) != 0) {
        json_decref(conf);
        return NULL;
    }

    return conf;
}


typedef struct {
    const char     *name;
    conf_visit_pt   visit;
    void           *data;
} conf_walk_t;


static void
conf_walk_block(const json_t *block, const json_t *owner,
    const conf_scope_t *up, const conf_walk_t *walk)
{
    size_t         i;
    json_t        *directive, *inner;
    conf_scope_t   scope = { block, owner, up };

    json_array_foreach(block, i, directive) {

        if (walk->name == NULL
            || strcmp(walk->name, json_string_value(json_object_get(directive,
                                                    "name"))) == 0)
        {
            walk->visit(directive, &scope, walk->data);
        }

        inner = json_object_get(directive, "block");

        if (inner != NULL) {
            conf_walk_block(inner, directive, &scope, walk);
        }
    }
}


void
conf_walk(const json_t *conf, const char *name, conf_visit_pt visit,
    void *data)
{
    conf_walk_t  walk = { name, visit, data };

    conf_walk_block(conf, NULL, NULL, &walk);
}


const json_t *
conf_child(const json_t *block, const char *name)
{
    size_t   i;
    json_t  *directive;

    json_array_foreach(block, i, directive) {
        if (strcmp(json_string_value(json_object_get(directive, "name")),
                   name) == 0)
        {
            return directive;
        }
    }

    return NULL;
}


const json_t *
conf_in_force(const conf_scope_t *scope, const char *name)
{
    const json_t  *found;

    for (found = NULL; scope != NULL && found == NULL; scope = scope->up) {
        found = conf_child(scope->block, name);
    }

    return found;
}


const char *
conf_word(const json_t *directive, size_t i)
{
    const char  *word;

    word = json_string_value(json_array_get(json_object_get(directive,
                                                            "words"), i));

    return word != NULL ? word : "";
}


int
conf_has_word(const json_t *directive, const char *word)
{
    size_t   i;
    json_t  *one;

    json_array_foreach(json_object_get(directive, "words"), i, one) {
        if (strcmp(json_string_value(one), word) == 0) {
            return 1;
        }
    }

    return 0;
}


int64_t
conf_size(const char *word, int64_t fallback)
{
    char     *end;
    int64_t   n;

    n = strtoll(word, &end, 10);

    if (end == word || n < 0 || n > INT32_MAX) {
        return fallback;
    }

    switch (*end) {
    case '\0':
        return n;
    case 'k': case 'K':
        return n << 10;
    case 'm': case 'M':
        return n << 20;
    case 'g': case 'G':
        return n << 30;
    default:
        return fallback;
    }
}
