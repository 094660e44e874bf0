
/*
 * A sample is a line: a name, perhaps labels in braces, a number, perhaps a
 * time.  A label's value is quoted and may have braces and escaped quotes.
 */

#include <stdlib.h>
#include <string.h>

#include "replica/engine/dialect/facts.h"


#define PROM_MAX_NUMBER  64         /* bytes of one */
#define PROM_MAX_VALUE   1e15       /* beyond, thousandths do not fit */


static const prom_name_t *
prom_find(const prom_name_t *names, const char *name, size_t len)
{
    for ( /* void */ ; names->name != NULL; names++) {
        if (strlen(names->name) == len && memcmp(names->name, name, len) == 0)
        {
            return names;
        }
    }

    return NULL;
}


/* The position after the labels; NULL: they do not end. */
static const char *
prom_labels(const char *p, const char *end)
{
    int  is_quoted;

    is_quoted = 0;

    for ( /* void */ ; p < end; p++) {
        if (is_quoted && *p == '\\') {
            p++;

        } else if (*p == '"') {
            is_quoted = !is_quoted;

        } else if (*p == '}' && !is_quoted) {
            return p + 1;
        }
    }

    return NULL;
}


/* -1: no number that a gauge or counter may have. */
static int64_t
prom_number(const char *p, const char *end)
{
    char    text[PROM_MAX_NUMBER], *behind;
    size_t  len;
    double  number;

    while (p < end && (*p == ' ' || *p == '\t')) {
        p++;
    }

    for (len = 0; p + len < end && p[len] != ' ' && p[len] != '\t'
                  && p[len] != '\r'; len++)
    {
        if (len == sizeof(text) - 1) {
            return -1;
        }

        text[len] = p[len];
    }

    text[len] = '\0';
    number = strtod(text, &behind);

    if (len == 0 || *behind != '\0'
        || !(number >= 0 && number <= PROM_MAX_VALUE))
    {
        return -1;
    }

    return (int64_t) (number * 1000 + .5);
}


/* The quote that ends a label's value; NULL: there is none. */
static const char *
prom_quote(const char *p, const char *end)
{
    for ( /* void */ ; p < end && *p != '"'; p++) {
        p += *p == '\\';
    }

    return p < end ? p : NULL;
}


/* The number that is a label's value; p is where the labels begin. */
static int64_t
prom_label(const char *p, const char *end, const char *label)
{
    size_t       len;
    const char  *name, *quote;

    len = strlen(label);

    for ( ;; ) {
        while (p < end && (*p == ',' || *p == ' ')) {
            p++;
        }

        name = p;
        p = memchr(name, '=', (size_t) (end - name));

        if (p == NULL || end - p < 2 || p[1] != '"') {
            return -1;
        }

        quote = prom_quote(p + 2, end);

        if (quote == NULL) {
            return -1;
        }

        if ((size_t) (p - name) == len && memcmp(name, label, len) == 0) {
            return prom_number(p + 2, quote);
        }

        p = quote + 1;
    }
}


/* The labels, if there are any, begin at p. */
static int64_t
prom_sample(const prom_name_t *name, const char *p, const char *end)
{
    const char  *behind;

    if (p == end || *p != '{') {
        return name->label == NULL ? prom_number(p, end) : -1;
    }

    behind = prom_labels(p + 1, end);

    if (behind == NULL) {
        return -1;
    }

    return name->label == NULL ? prom_number(behind, end)
                               : prom_label(p + 1, behind, name->label);
}


static void
prom_line(const char *p, const char *end, const prom_name_t *names,
    int64_t *values)
{
    int64_t             number, *value;
    const char         *behind;
    const prom_name_t  *name;

    for (behind = p; behind < end && *behind != '{' && *behind != ' '
                     && *behind != '\t'; behind++)
    { /* void */ }

    name = prom_find(names, p, (size_t) (behind - p));

    if (name == NULL) {
        return;
    }

    number = prom_sample(name, behind, end);
    value = &values[name->field];

    if (number < 0) {
        return;
    }

    if (*value < 0) {
        *value = number;

    } else if (name->join == PROM_SUM) {
        *value = *value > INT64_MAX - number ? INT64_MAX : *value + number;

    } else if (number > *value) {
        *value = number;
    }
}


int
prom_read(const char *text, size_t len, const prom_name_t *names,
    int64_t *values, int nvalues)
{
    int          i;
    const char  *p, *end, *line;

    for (i = 0; i < nvalues; i++) {
        values[i] = -1;
    }

    end = text + len;

    for (line = text; line < end; line = p + 1) {
        p = memchr(line, '\n', (size_t) (end - line));
        p = p == NULL ? end : p;
        prom_line(line, p, names, values);
    }

    for (i = 0; i < nvalues; i++) {
        if (values[i] >= 0) {
            return 0;
        }
    }

    return -1;
}
