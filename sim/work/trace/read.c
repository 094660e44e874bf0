
/* Reads a trace's rows, whose columns are named in its first line. */

#include "sim/work/trace/trace.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/work/csv.h"
#include "sim/work/trace/columns.h"

typedef struct {
    work_trace_t     *trace;
    work_error_t     *error;
    work_csv_t        csv;
    const column_t   *columns[WORK_CSV_FIELDS];     /* by place in a row */
    size_t            n;
} reader_t;


static int
reader_fail(reader_t *r, const column_t *column, const char *text,
    const char *what)
{
    return work_fail(r->error, r->csv.file, r->csv.line,
                     "\"%s\" is \"%.60s\", %s", column->name, text, what);
}


static int
read_whole(reader_t *r, const column_t *column, int64_t *value,
    const char *text)
{
    char       *end;
    long long   number;

    errno = 0;
    number = strtoll(text, &end, 10);

    if (end == text || *end != '\0' || *text == ' ' || *text == '\t') {
        return reader_fail(r, column, text, "which is no whole number");
    }

    if (number < 0) {
        return reader_fail(r, column, text, "which is negative");
    }

    if (errno != 0 || (double) number > column->max) {
        return reader_fail(r, column, text, "which is too large");
    }

    *value = number;

    return 0;
}


static int
read_ratio(reader_t *r, const column_t *column, double *value,
    const char *text)
{
    char    *end;
    double   number;

    number = strtod(text, &end);

    if (end == text || *end != '\0' || !isfinite(number)) {
        return reader_fail(r, column, text, "which is no finite number");
    }

    if (number < 0 || number > column->max) {
        return reader_fail(r, column, text, "which is not 0 to 1");
    }

    *value = number;

    return 0;
}


/* Reads what Go's ParseBool() accepts. */
static int
read_bool(reader_t *r, const column_t *column, uint8_t *value,
    const char *text)
{
    size_t  i;

    static const char  *words[] = { "false", "true", "False", "True", "FALSE",
                                    "TRUE", "f", "t", "F", "T", "0", "1" };

    for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strcmp(text, words[i]) == 0) {
            *value = i % 2;
            return 0;
        }
    }

    return reader_fail(r, column, text, "neither true nor false");
}


static const char *
trimmed(work_trace_t *trace, const char *text)
{
    size_t  len;

    text += strspn(text, " \t\r\n");
    len = strlen(text);

    while (len > 0 && strchr(" \t\r\n", text[len - 1]) != NULL) {
        len--;
    }

    return len > 0 ? work_arena_text(&trace->arena, text, len) : "";
}


static int
read_field(reader_t *r, const column_t *column, void *field, const char *text)
{
    int64_t  number;

    number = 0;

    switch (column->kind) {

    case COLUMN_NAME:
        *(const work_name_t **) field
            = work_name(&r->trace->names, text, strlen(text));
        return 0;

    case COLUMN_TEXT:
        *(const char **) field = trimmed(r->trace, text);
        return 0;

    case COLUMN_BOOL:
        return read_bool(r, column, field, text);

    case COLUMN_RATIO:
        return read_ratio(r, column, field, text);

    default:
        break;
    }

    if (text[0] == '\0' && column->is_optional) {
        return 0;
    }

    if (read_whole(r, column, &number, text) != 0) {
        return -1;
    }

    if (column->kind == COLUMN_I64) {
        *(int64_t *) field = number;

    } else {
        *(uint32_t *) field = (uint32_t) number;
    }

    return 0;
}


static const column_t *
column_named(const char *name)
{
    size_t  i;

    for (i = 0; i < WORK_NCOLUMNS; i++) {
        if (strcmp(work_columns[i].name, name) == 0) {
            return &work_columns[i];
        }
    }

    return NULL;
}


static int
reader_has(const reader_t *r, const column_t *column)
{
    size_t  i;

    for (i = 0; i < r->n; i++) {
        if (r->columns[i] == column) {
            return 1;
        }
    }

    return 0;
}


/* Reads the first row, which tells the column of each place. */
static int
read_columns(reader_t *r)
{
    int              rc;
    size_t           i;
    const column_t  *column;

    rc = work_csv_next(&r->csv, r->error);

    if (rc <= 0) {
        return rc < 0 ? -1 : work_fail(r->error, r->csv.file, 1,
                                       "empty: a row of columns is needed");
    }

    for (i = 0; i < r->csv.n; i++) {
        column = column_named(r->csv.fields[i]);

        if (column == NULL || reader_has(r, column)) {
            return work_fail(r->error, r->csv.file, r->csv.line,
                             "%s column \"%.60s\"", column == NULL
                             ? "unknown" : "doubled", r->csv.fields[i]);
        }

        r->columns[r->n++] = column;
    }

    for (i = 0; i < WORK_NCOLUMNS; i++) {
        if (!work_columns[i].is_optional && !reader_has(r, &work_columns[i])) {
            return work_fail(r->error, r->csv.file, r->csv.line,
                             "no column \"%s\"", work_columns[i].name);
        }
    }

    return 0;
}


static int
read_row(reader_t *r)
{
    size_t          i;
    work_record_t  *record;

    if (r->csv.n != r->n) {
        return work_fail(r->error, r->csv.file, r->csv.line,
                         "%zu columns where the first row has %zu", r->csv.n,
                         r->n);
    }

    if (r->trace->n == WORK_MAX_REQUESTS) {
        return work_fail(r->error, r->csv.file, r->csv.line,
                         "more than %d requests", WORK_MAX_REQUESTS);
    }

    record = work_trace_add(r->trace);
    record->line = (uint32_t) r->csv.line;

    for (i = 0; i < r->n; i++) {
        if (read_field(r, r->columns[i],
                       (char *) record + r->columns[i]->offset,
                       r->csv.fields[i]) != 0)
        {
            return -1;
        }
    }

    if (record->deadline_us > 0 && record->arrival_us > 0
        && record->deadline_us < record->arrival_us)
    {
        return work_fail(r->error, r->csv.file, r->csv.line,
                         "\"deadline_us\" is before \"arrival_time_us\"");
    }

    return 0;
}


int
work_trace_read_data(work_trace_t *trace, const char *path, char *bytes,
    size_t len, work_error_t *error)
{
    int       rc;
    reader_t  r;

    memset(&r, 0, sizeof(r));
    r.trace = trace;
    r.error = error;
    trace->data_file = work_arena_text(&trace->arena, path, strlen(path));
    work_csv_init(&r.csv, path, bytes, len);

    if (read_columns(&r) != 0) {
        return -1;
    }

    while ((rc = work_csv_next(&r.csv, error)) > 0) {
        if (read_row(&r) != 0) {
            return -1;
        }
    }

    return rc;
}
