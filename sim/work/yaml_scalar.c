
/* Single values of YAML, each held to its kind and limits. */

#include "sim/work/yaml_inner.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>


static const char *
text_of(const yaml_node_t *node)
{
    return (const char *) node->data.scalar.value;
}


static int
is_plain(const yaml_node_t *node)
{
    return node->type == YAML_SCALAR_NODE
           && node->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
}


int
yaml_is_null(const yaml_node_t *node)
{
    const char  *text;

    if (!is_plain(node)) {
        return 0;
    }

    text = text_of(node);

    return text[0] == '\0' || strcmp(text, "~") == 0
           || strcasecmp(text, "null") == 0;
}


/*
 * Reads a number; values that are not finite also in YAML's spellings, which
 * strtod() does not have.
 */
static int
number_of(const char *text, double *value)
{
    char  *end;

    if (text[0] == '\0' || text[0] == ' ') {
        return -1;
    }

    if (strcasecmp(text, ".nan") == 0 || strcasecmp(text, ".inf") == 0
        || strcasecmp(text, "-.inf") == 0)
    {
        *value = NAN;
        return 0;
    }

    *value = strtod(text, &end);

    return *end == '\0' ? 0 : -1;
}


int
yaml_read_double(yaml_reader_t *r, const work_yaml_field_t *f, double *value,
    const yaml_node_t *node)
{
    double  number;

    if (!is_plain(node) || number_of(text_of(node), &number) != 0) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" needs a number", f->key);
    }

    if (!isfinite(number)) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" is %.40s, which is no finite number", f->key,
                         text_of(node));
    }

    if (f->min < f->max && !(number >= f->min && number <= f->max)) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" is %.40s, not %.15g to %.15g", f->key,
                         text_of(node), f->min, f->max);
    }

    *value = number;

    return 0;
}


int
yaml_read_int(yaml_reader_t *r, const work_yaml_field_t *f, int64_t *value,
    const yaml_node_t *node)
{
    char        *end;
    double       number;
    long long    whole;

    if (!is_plain(node) || number_of(text_of(node), &number) != 0) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" needs a whole number", f->key);
    }

    errno = 0;
    whole = strtoll(text_of(node), &end, 10);

    /* accepts 1e6, which is whole */
    if (*end != '\0' && fabs(number) <= 0x1p53 && number == trunc(number)) {
        whole = (long long) number;

    } else if (*end != '\0' || errno != 0) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" is %.40s, which is no whole number", f->key,
                         text_of(node));
    }

    if (f->min < f->max && !(whole >= f->min && whole <= f->max)) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" is %.40s, not %.0f to %.0f", f->key,
                         text_of(node), f->min, f->max);
    }

    *value = whole;

    return 0;
}


int
yaml_read_uint32(yaml_reader_t *r, const work_yaml_field_t *f,
    uint32_t *value, const yaml_node_t *node)
{
    int64_t  whole;

    if (yaml_read_int(r, f, &whole, node) != 0) {
        return -1;
    }

    *value = (uint32_t) whole;

    return 0;
}


int
yaml_read_parts(yaml_reader_t *r, const work_yaml_field_t *f, double parts,
    int64_t *value, const yaml_node_t *node)
{
    double  number;

    if (yaml_read_double(r, f, &number, node) != 0) {
        return -1;
    }

    *value = (int64_t) (number * parts + 0.5);

    return 0;
}


/* Writes the words of a list as "a, b or c", cut to the room there is. */
static void
words_text(const char *const *words, char *text, size_t bytes)
{
    size_t  i, len;

    for (i = 0, len = 0; words[i] != NULL && len < bytes; i++) {
        len += (size_t) snprintf(text + len, bytes - len, "%s%s",
                                 i == 0 ? "" : words[i + 1] == NULL ? " or "
                                                                    : ", ",
                                 words[i]);
    }
}


int
yaml_read_word(yaml_reader_t *r, const work_yaml_field_t *f, int *value,
    const yaml_node_t *node)
{
    int                 i;
    char                all[128];
    const char         *text;
    const char *const  *words = f->table;

    if (yaml_read_text(r, f, &text, node) != 0) {
        return -1;
    }

    for (i = 0; words[i] != NULL; i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i;
            return 0;
        }
    }

    words_text(words, all, sizeof(all));

    return work_fail(r->error, r->file, yaml_line(node),
                     "\"%s\" is \"%.80s\", not %s", f->key, text, all);
}


int
yaml_read_bool(yaml_reader_t *r, const work_yaml_field_t *f, int *value,
    const yaml_node_t *node)
{
    size_t       i;
    const char  *text;

    static const char  *words[] = { "false", "true", "no", "yes", "off",
                                    "on" };

    text = is_plain(node) ? text_of(node) : "";

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *value = (int) (i % 2);
            return 0;
        }
    }

    return work_fail(r->error, r->file, yaml_line(node),
                     "\"%s\" needs true or false", f->key);
}


int
yaml_read_text(yaml_reader_t *r, const work_yaml_field_t *f, const char **value,
    const yaml_node_t *node)
{
    size_t  len;

    if (node->type != YAML_SCALAR_NODE) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" needs a text", f->key);
    }

    len = node->data.scalar.length;

    if (memchr(text_of(node), '\0', len) != NULL) {
        return work_fail(r->error, r->file, yaml_line(node),
                         "\"%s\" has a NUL", f->key);
    }

    *value = work_arena_text(r->arena, text_of(node), len);

    return 0;
}
