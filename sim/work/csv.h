
/*
 * Reads comma-separated values (RFC 4180) from memory, record by record:
 * fields in double quotes may hold commas, line ends and doubled quotes; empty
 * lines are skipped.  A NUL, a quote in a bare field, and a quote that is not
 * closed are errors.
 */

#ifndef WORK_CSV_H
#define WORK_CSV_H

#include <stddef.h>

#include "sim/work/error.h"


/* Fields of a record, at most; TraceV2 has 32. */
#define WORK_CSV_FIELDS  64

typedef struct {
    const char   *file;             /* for errors */
    char         *at;               /* the rest; reading changes bytes */
    char         *end;
    size_t        next_line;
    size_t        line;             /* of the record's beginning, from 1 */
    char         *fields[WORK_CSV_FIELDS];      /* each ends with a NUL */
    size_t        n;
} work_csv_t;

/*
 * Begins to read bytes, of which bytes[len] must be writable: it is set to NUL.
 */
void work_csv_init(work_csv_t *csv, const char *file, char *bytes,
    size_t len);

/* Reads a record: 1; the end: 0; or -1 and *error. */
int work_csv_next(work_csv_t *csv, work_error_t *error);

#endif /* WORK_CSV_H */
