
/*
 * The columns of a trace's rows, in their order: what reading and writing them
 * share.
 */

#ifndef WORK_TRACE_COLUMNS_H
#define WORK_TRACE_COLUMNS_H

#include "sim/work/trace/trace.h"


typedef enum {
    COLUMN_NAME = 0,        /* const work_name_t * */
    COLUMN_TEXT,            /* const char *, no white space around it */
    COLUMN_U32,
    COLUMN_I32,             /* not negative, too */
    COLUMN_I64,             /* the same */
    COLUMN_BOOL,            /* uint8_t */
    COLUMN_RATIO            /* double, 0 to 1 */
} column_kind_t;

typedef struct {
    const char     *name;
    column_kind_t   kind;
    size_t          offset;         /* in work_record_t */
    int             is_optional;
    double          max;
} column_t;

#define WORK_NCOLUMNS  32

extern const column_t  work_columns[WORK_NCOLUMNS];

#endif /* WORK_TRACE_COLUMNS_H */
