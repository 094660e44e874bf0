
/* Rows of an answer, one a line, under columns as wide as they need to be. */

#ifndef CTL_COLUMNS_H
#define CTL_COLUMNS_H

#include "ctl/main.h"


#define CTL_CELL_BYTES     96
#define CTL_COLUMNS_MAX    16

/*
 * Returns the text of a row's cell, which may be in the buffer `text` or
 * elsewhere; "-": there is nothing to show.
 */
typedef const char *(*ctl_cell_pt)(const json_t *row, char *text);

typedef struct {
    const char   *heading;
    const char   *field;        /* shown as it is, if `cell` is NULL */
    ctl_cell_pt   cell;
    const char *(*colour)(const char *cell);    /* NULL: none */
    int           is_optional;  /* left out where all cells are "-" */
} ctl_column_t;

void ctl_columns_print(const ctl_t *ctl, const ctl_column_t *columns,
    size_t n, const json_t *rows, FILE *out);

#endif /* CTL_COLUMNS_H */
