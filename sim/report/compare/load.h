
/*
 * How many requests each replica had, over time.
 */

#ifndef REPORT_LOAD_H
#define REPORT_LOAD_H

#include "sim/report/run.h"


#define REPORT_LOAD_ROWS  64        /* more replicas are put together */
#define REPORT_LOAD_COLS  120

typedef struct {
    size_t    rows;
    uint32_t  replicas;             /* of a row, the last may have fewer */
    double    end_us;               /* of the last column */
    double   *values;               /* means of a column: rows x columns */
} report_load_t;


/* 0, or -1 without memory. */
int report_load_init(report_load_t *load, const report_run_t *run);
void report_load_done(report_load_t *load);

#endif /* REPORT_LOAD_H */
