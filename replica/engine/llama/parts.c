
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/engine/llama/parts.h"


#define PARTS_FIRST   "-00001-of-"
#define PARTS_MAX     99999             /* as many digits */
#define PARTS_SUFFIX  "00000.gguf"


/* The numbers at the end of the name, and how many parts there are; NULL: the
   model is one file. */
static const char *
parts_find(const char *file, size_t *n)
{
    int          end;
    size_t       len;
    const char  *at;

    len = strlen(file);

    if (len < strlen(PARTS_FIRST PARTS_SUFFIX)) {
        return NULL;
    }

    at = file + len - strlen(PARTS_FIRST PARTS_SUFFIX);
    end = 0;

    if (strncmp(at, PARTS_FIRST, strlen(PARTS_FIRST)) != 0
        || sscanf(at, PARTS_FIRST "%5zu.gguf%n", n, &end) != 1
        || at[end] != '\0' || *n < 2 || *n > PARTS_MAX)
    {
        return NULL;
    }

    return at;
}


size_t
parts_count(const char *file)
{
    size_t  n;

    return parts_find(file, &n) != NULL ? n : 1;
}


/* The path of the i-th part, from 0; NULL: out of memory. */
static char *
parts_path(const char *file, size_t i)
{
    char        *path;
    size_t       n;
    const char  *at;

    at = parts_find(file, &n);

    if (at == NULL) {
        return strdup(file);
    }

    return asprintf(&path, "%.*s-%05zu-of-%05zu.gguf", (int) (at - file),
                    file, i + 1, n) < 0 ? NULL : path;
}


char **
parts_list(const char *file, size_t *n)
{
    char    **parts;
    size_t    i;

    *n = parts_count(file);
    parts = calloc(*n, sizeof(char *));

    for (i = 0; parts != NULL && i < *n; i++) {
        parts[i] = parts_path(file, i);

        if (parts[i] == NULL) {
            parts_free(parts, i);
            return NULL;
        }
    }

    return parts;
}


void
parts_free(char **parts, size_t n)
{
    while (n > 0) {
        free(parts[--n]);
    }

    free(parts);
}
