
/*
 * Keeps figures for a distribution (figure/stat.h).
 */

#ifndef REPORT_LOG_VALUES_H
#define REPORT_LOG_VALUES_H

#include <stddef.h>


/* Zeroed: empty.  The caller frees the list. */
typedef struct {
    double  *list;
    size_t   n;
    size_t   max;
} report_values_t;


/* Adds a figure.  0, or -1: no memory. */
int report_value(report_values_t *values, double value);

#endif /* REPORT_LOG_VALUES_H */
