
/*
 * Figures as they come.
 */

#include <stdlib.h>

#include "sim/report/log/values.h"


int
report_value(report_values_t *values, double value)
{
    size_t   max;
    double  *grown;

    if (values->n == values->max) {
        max = values->max == 0 ? 1024 : 2 * values->max;
        grown = realloc(values->list, max * sizeof(double));

        if (grown == NULL) {
            return -1;
        }

        values->list = grown;
        values->max = max;
    }

    values->list[values->n++] = value;

    return 0;
}
