
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/evp.h>

#include "slice/manifest/manifest.h"


#define MANIFEST_FIRST_ROOM  64
#define MANIFEST_BLANKS      " \t\r\n"


/* Whether it is not empty, and has none of the characters that separate words
   and lines. */
static int
manifest_is_word(const char *word)
{
    return word[0] != '\0' && strpbrk(word, MANIFEST_BLANKS) == NULL;
}


static int
manifest_grow(manifest_t *m)
{
    size_t            room;
    manifest_line_t  *lines;

    if (m->n < m->room) {
        return 0;
    }

    room = m->room == 0 ? MANIFEST_FIRST_ROOM : 2 * m->room;
    lines = m->n < MANIFEST_TENSORS
            ? realloc(m->lines, room * sizeof(manifest_line_t)) : NULL;

    if (lines == NULL) {
        return -1;
    }

    m->lines = lines;
    m->room = room;

    return 0;
}


int
manifest_add(manifest_t *m, const char *name, const char *shape,
    const uint8_t sha256[MANIFEST_ID_BYTES])
{
    char             *copy;
    manifest_line_t  *line;

    if (!manifest_is_word(name) || strlen(shape) >= MANIFEST_SHAPE_BYTES
        || manifest_grow(m) != 0)
    {
        return -1;
    }

    copy = strdup(name);

    if (copy == NULL) {
        return -1;
    }

    line = &m->lines[m->n++];
    line->name = copy;
    snprintf(line->shape, MANIFEST_SHAPE_BYTES, "%s", shape);
    memcpy(line->sha256, sha256, MANIFEST_ID_BYTES);

    return 0;
}


static int
manifest_compare(const void *a, const void *b)
{
    return strcmp(((const manifest_line_t *) a)->name,
                  ((const manifest_line_t *) b)->name);
}


static int
manifest_write(const manifest_t *m, FILE *out)
{
    char    hex[MANIFEST_HEX_BYTES];
    size_t  i;

    for (i = 0; i < m->n; i++) {
        if (i > 0 && manifest_compare(&m->lines[i - 1], &m->lines[i]) == 0) {
            return -1;
        }

        manifest_hex(m->lines[i].sha256, hex);
        fprintf(out, "%s %s %s\n", m->lines[i].name, m->lines[i].shape, hex);
    }

    return 0;
}


char *
manifest_text(manifest_t *m)
{
    int     rc;
    FILE   *out;
    char   *text;
    size_t  n;

    if (m->n > 0) {
        qsort(m->lines, m->n, sizeof(manifest_line_t), manifest_compare);
    }

    text = NULL;
    out = open_memstream(&text, &n);

    if (out == NULL) {
        return NULL;
    }

    rc = manifest_write(m, out);

    if (fclose(out) != 0 || rc != 0) {
        free(text);
        return NULL;
    }

    return text;
}


/* Cuts a line "NAME TYPE SHAPE HEX" into its three parts.  0 or -1. */
static int
manifest_cut(char *line, char **shape, char **hex)
{
    char  *dimensions;

    *shape = strchr(line, ' ');
    dimensions = *shape != NULL ? strchr(*shape + 1, ' ') : NULL;
    *hex = dimensions != NULL ? strchr(dimensions + 1, ' ') : NULL;

    if (*hex == NULL) {
        return -1;
    }

    *(*shape)++ = '\0';
    *(*hex)++ = '\0';

    return 0;
}


/* Appends a line.  0, -1: out of memory, or 1: the line is wrong. */
static int
manifest_parse_line(manifest_t *m, char *line)
{
    char     *shape, *hex;
    uint8_t   sha256[MANIFEST_ID_BYTES];

    if (manifest_cut(line, &shape, &hex) != 0
        || manifest_unhex(hex, sha256) != 0
        || !manifest_is_word(line)
        || strlen(shape) >= MANIFEST_SHAPE_BYTES
        || (m->n > 0 && strcmp(m->lines[m->n - 1].name, line) >= 0))
    {
        return 1;
    }

    return manifest_add(m, line, shape, sha256);
}


/* 0, -1, or the number of the wrong line. */
static int
manifest_parse_lines(manifest_t *m, char *text)
{
    int    rc, i;
    char  *line, *end;

    for (line = text, i = 1; *line != '\0'; line = end + 1, i++) {
        end = strchr(line, '\n');

        if (end == NULL) {
            return i;
        }

        *end = '\0';
        rc = manifest_parse_line(m, line);

        if (rc != 0) {
            return rc > 0 ? i : -1;
        }
    }

    return 0;
}


int
manifest_parse(manifest_t *m, const char *text)
{
    int    rc;
    char  *copy;

    memset(m, 0, sizeof(*m));
    copy = strnlen(text, MANIFEST_TEXT_BYTES + 1) <= MANIFEST_TEXT_BYTES
           ? strdup(text) : NULL;

    if (copy == NULL) {
        return -1;
    }

    rc = manifest_parse_lines(m, copy);
    free(copy);

    if (rc != 0) {
        manifest_done(m);
    }

    return rc;
}


const manifest_line_t *
manifest_find(const manifest_t *m, const char *name)
{
    manifest_line_t  key;

    key.name = (char *) name;

    return m->n == 0 ? NULL
                     : bsearch(&key, m->lines, m->n, sizeof(manifest_line_t),
                               manifest_compare);
}


void
manifest_done(manifest_t *m)
{
    size_t  i;

    for (i = 0; i < m->n; i++) {
        free(m->lines[i].name);
    }

    free(m->lines);
    memset(m, 0, sizeof(*m));
}


void
manifest_id(const char *text, uint8_t id[MANIFEST_ID_BYTES])
{
    EVP_Digest(text, strlen(text), id, NULL, EVP_sha256(), NULL);
}


void
manifest_hex(const uint8_t id[MANIFEST_ID_BYTES],
    char hex[MANIFEST_HEX_BYTES])
{
    size_t  i;

    for (i = 0; i < MANIFEST_ID_BYTES; i++) {
        snprintf(hex + 2 * i, 3, "%02x", id[i]);
    }
}


static int
manifest_digit(char c)
{
    if (c >= '0' && c <= '9') {
        return c - '0';
    }

    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}


int
manifest_unhex(const char *hex, uint8_t id[MANIFEST_ID_BYTES])
{
    int      high, low;
    size_t   i;
    uint8_t  got[MANIFEST_ID_BYTES];

    if (strlen(hex) != MANIFEST_HEX_BYTES - 1) {
        return -1;
    }

    for (i = 0; i < MANIFEST_ID_BYTES; i++) {
        high = manifest_digit(hex[2 * i]);
        low = manifest_digit(hex[2 * i + 1]);

        if (high < 0 || low < 0) {
            return -1;
        }

        got[i] = (uint8_t) (high << 4 | low);
    }

    memcpy(id, got, MANIFEST_ID_BYTES);

    return 0;
}
