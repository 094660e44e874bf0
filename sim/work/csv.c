
/* Records of CSV, unquoted in place. */

#include "sim/work/csv.h"

#include <string.h>


void
work_csv_init(work_csv_t *csv, const char *file, char *bytes, size_t len)
{
    memset(csv, 0, sizeof(*csv));
    csv->file = file;
    csv->at = bytes;
    csv->end = bytes + len;
    csv->next_line = 1;
    bytes[len] = '\0';
}


/*
 * Removes the quotes of the quoted field at csv->at, in place.  Returns what
 * follows the closing quote, or NULL if there is none.
 */
static char *
csv_unquote(work_csv_t *csv)
{
    char  *from, *to;

    to = csv->at;

    for (from = csv->at + 1; from < csv->end; from++) {

        if (*from == '"') {
            if (from[1] != '"') {
                *to = '\0';
                return from + 1;
            }
            from++;

        } else if (*from == '\n') {
            csv->next_line++;
        }

        *to++ = *from;
    }

    return NULL;
}


/*
 * Ends the field before `at`, where a comma or the end of the record must be,
 * and moves behind that.  1: another field follows; 0: the record is complete.
 */
static int
csv_end_field(work_csv_t *csv, char *at)
{
    int  comma;

    comma = *at == ',' && at < csv->end;

    if (*at == '\r' && at[1] == '\n') {
        *at++ = '\0';
    }

    if (*at == '\n') {
        csv->next_line++;
    }

    if (at < csv->end) {
        *at++ = '\0';
    }

    csv->at = at;

    return comma;
}


/*
 * Reads a field.  1: another one follows; 0: it was the last; -1: it is
 * malformed.
 */
static int
csv_field(work_csv_t *csv, work_error_t *error)
{
    char  *at;

    if (csv->n == WORK_CSV_FIELDS) {
        return work_fail(error, csv->file, csv->line,
                         "more than %d columns", WORK_CSV_FIELDS);
    }

    csv->fields[csv->n++] = csv->at;

    if (*csv->at == '"') {
        at = csv_unquote(csv);

        if (at == NULL) {
            return work_fail(error, csv->file, csv->line,
                             "a quoted field has no end");
        }

    } else {
        at = csv->at + strcspn(csv->at, ",\"\n");
        at -= at > csv->at && *at == '\n' && at[-1] == '\r';
    }

    if (*at == '\0' && at < csv->end) {
        return work_fail(error, csv->file, csv->line, "binary data: a NUL");
    }

    if (*at != ',' && *at != '\n' && at != csv->end
        && !(*at == '\r' && at[1] == '\n'))
    {
        return work_fail(error, csv->file, csv->line,
                         "column %zu has a quote out of place", csv->n);
    }

    return csv_end_field(csv, at);
}


int
work_csv_next(work_csv_t *csv, work_error_t *error)
{
    int  more;

    while (*csv->at == '\n' || (*csv->at == '\r' && csv->at[1] == '\n')) {
        csv->at += *csv->at == '\r' ? 2 : 1;
        csv->next_line++;
    }

    if (csv->at == csv->end) {
        return 0;
    }

    csv->line = csv->next_line;
    csv->n = 0;

    do {
        more = csv_field(csv, error);
    } while (more > 0);

    return more < 0 ? -1 : 1;
}
