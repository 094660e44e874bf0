
#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "ctl/columns.h"
#include "ctl/field.h"


typedef struct {
    const ctl_t         *ctl;
    const ctl_column_t  *columns;
    size_t               n;
    size_t               widths[CTL_COLUMNS_MAX];   /* 0: the column is left
                                                       out */
    FILE                *out;
} columns_t;


/* The text of a cell; row NULL: of the heading. */
static const char *
columns_cell(const ctl_column_t *column, const json_t *row, char *text)
{
    const json_t  *value;

    if (row == NULL) {
        return column->heading;
    }

    if (column->cell != NULL) {
        return column->cell(row, text);
    }

    value = json_object_get(row, column->field);

    if (json_is_integer(value)) {
        snprintf(text, CTL_CELL_BYTES, "%" JSON_INTEGER_FORMAT,
                 json_integer_value(value));
        return text;
    }

    return ctl_word(row, column->field);
}


static void
columns_measure(columns_t *c, const json_t *rows)
{
    char         text[CTL_CELL_BYTES];
    size_t       i, k, len;
    json_t      *row;
    const char  *cell;

    for (i = 0; i < c->n; i++) {
        c->widths[i] = c->columns[i].is_optional
                       ? 0 : strlen(c->columns[i].heading);

        json_array_foreach(rows, k, row) {
            cell = columns_cell(&c->columns[i], row, text);
            len = strlen(cell);

            if (c->widths[i] == 0 && strcmp(cell, "-") != 0) {
                c->widths[i] = strlen(c->columns[i].heading);
            }

            if (c->widths[i] != 0 && len > c->widths[i]) {
                c->widths[i] = len;
            }
        }
    }
}


static void
columns_put(const columns_t *c, const json_t *row)
{
    int          is_last;
    char         text[CTL_CELL_BYTES];
    size_t       i;
    const char  *cell, *colour;

    for (i = 0; i < c->n; i++) {
        if (c->widths[i] == 0) {
            continue;
        }

        is_last = i + 1 == c->n;
        cell = columns_cell(&c->columns[i], row, text);
        colour = row != NULL && c->ctl->has_colours && c->columns[i].colour
                 ? c->columns[i].colour(cell) : "";

        fprintf(c->out, "%s%-*s%s%s", colour,
                is_last ? 0 : (int) c->widths[i], cell,
                colour[0] ? "\033[0m" : "", is_last ? "\n" : "  ");
    }
}


void
ctl_columns_print(const ctl_t *ctl, const ctl_column_t *columns, size_t n,
    const json_t *rows, FILE *out)
{
    size_t     i;
    json_t    *row;
    columns_t  c = { .ctl = ctl, .columns = columns, .n = n, .out = out };

    assert(n <= CTL_COLUMNS_MAX);
    columns_measure(&c, rows);
    columns_put(&c, NULL);

    json_array_foreach(rows, i, row) {
        columns_put(&c, row);
    }
}
