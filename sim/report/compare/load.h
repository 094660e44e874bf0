
/*
 * How many requests each replica had, over time.
 */

#ifndef REPORT_LOAD_H
#define REPORT_LOAD_H

#include "sim/report/run.h"


#define REPORT_LOAD_ROWS  64        /* more replicas share rows */
#define REPORT_LOAD_COLS  120

typedef struct {
    size_t    rows;
    uint32_t  replicas;             /* per row; the last may have fewer */
    double    end_us;               /* end of the last column */
    double   *values;               /* by row, then column: the column's mean */
} report_load_t;


/* 0, or -1: no memory. */
int report_load_init(report_load_t *load, const report_run_t *run);
void report_load_done(report_load_t *load);

#endif /* REPORT_LOAD_H */
