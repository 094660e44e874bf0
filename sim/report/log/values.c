
/*
 * Keeps figures for a distribution.
 */

#include "common/data/grow.h"
#include "sim/report/log/values.h"


int
report_value(report_values_t *values, double value)
{
    if (grow(&values->list, &values->max, values->n + 1, sizeof(double))
        != 0)
    {
        return -1;
    }

    values->list[values->n++] = value;

    return 0;
}
