
/*
 * The columns of a trace's rows, in their order, for readers and writers.
 */

#ifndef WORK_TRACE_COLUMNS_H
#define WORK_TRACE_COLUMNS_H

#include "sim/work/trace/trace.h"


typedef enum {
    COLUMN_NAME = 0,        /* const work_name_t * */
    COLUMN_TEXT,            /* const char *, without white space around it */
    COLUMN_U32,
    COLUMN_I32,             /* int32_t, may be negative */
    COLUMN_I64,             /* int64_t, may be negative */
    COLUMN_BOOL,            /* uint8_t */
    COLUMN_RATIO            /* double, 0 to 1 */
} column_kind_t;

typedef struct {
    const char     *name;
    column_kind_t   kind;
    size_t          offset;         /* of the field of work_record_t */
    int             is_optional;
    double          max;
} column_t;

#define WORK_NCOLUMNS  32

extern const column_t  work_columns[WORK_NCOLUMNS];

#endif /* WORK_TRACE_COLUMNS_H */
