
/*
 * Percentiles, means and fairness.
 *
 * BLIS has two interpolations: one that divides by 1000 in the middle, one
 * that does not.  They differ in the last bit, so both are here.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/stat.h"


static int
stat_cmp(const void *a, const void *b)
{
    double  x, y;

    x = *(const double *) a;
    y = *(const double *) b;

    return (x > y) - (x < y);
}


void
report_sort(double *values, size_t n)
{
    if (n > 1) {
        qsort(values, n, sizeof(double), stat_cmp);
    }
}


/*
 * Interpolates between two neighbours; the rank is rank - lower above the first
 * one.
 */
static double
stat_interpolate_ms(double lower, double upper, double part)
{
    return lower / 1000 + (upper - lower) * part / 1000;
}


double
report_percentile_ms(const double *sorted, size_t n, double p)
{
    size_t  i;
    double  rank;

    if (n == 0) {
        return 0;
    }

    rank = p / 100.0 * (double) (n - 1);
    i = (size_t) rank;

    if ((double) i == rank || i + 1 >= n) {
        return sorted[i] / 1000;
    }

    return stat_interpolate_ms(sorted[i], sorted[i + 1], rank - (double) i);
}


double
report_mean_ms(const double *sorted, size_t n)
{
    size_t  i;
    double  sum;

    if (n == 0) {
        return 0;
    }

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += sorted[i];
    }

    return sum / (double) n / 1000;
}


static uint64_t
stat_total(const report_count_t *counts, size_t n)
{
    size_t    i;
    uint64_t  total;

    total = 0;

    for (i = 0; i < n; i++) {
        total += counts[i].count;
    }

    return total;
}


static double
stat_count_at(const report_count_t *counts, size_t n, uint64_t at)
{
    size_t  i;

    for (i = 0; i + 1 < n && at >= counts[i].count; i++) {
        at -= counts[i].count;
    }

    return (double) counts[i].value;
}


double
report_count_percentile_ms(const report_count_t *counts, size_t n, double p)
{
    double    rank;
    uint64_t  i, total;

    total = stat_total(counts, n);

    if (total == 0) {
        return 0;
    }

    rank = p / 100.0 * (double) (total - 1);
    i = (uint64_t) rank;

    if ((double) i == rank || i + 1 >= total) {
        return stat_count_at(counts, n, i) / 1000;
    }

    return stat_interpolate_ms(stat_count_at(counts, n, i),
                               stat_count_at(counts, n, i + 1),
                               rank - (double) i);
}


/*
 * The sum is exact in a double, as long as all gaps together are below 2^53 us.
 */
double
report_count_mean_ms(const report_count_t *counts, size_t n)
{
    size_t    i;
    double    sum;
    uint64_t  total;

    total = stat_total(counts, n);

    if (total == 0) {
        return 0;
    }

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += (double) counts[i].value * (double) counts[i].count;
    }

    return sum / (double) total / 1000;
}


double
report_percentile(const double *sorted, size_t n, double p)
{
    size_t  i;
    double  rank;

    if (n == 0) {
        return 0;
    }

    rank = p / 100.0 * (double) (n - 1);
    i = (size_t) rank;

    if ((double) i == rank || i + 1 >= n) {
        return sorted[i];
    }

    return sorted[i] + (rank - (double) i) * (sorted[i + 1] - sorted[i]);
}


void
report_dist(double *values, size_t n, report_dist_t *dist)
{
    size_t  i;
    double  sum;

    memset(dist, 0, sizeof(*dist));

    if (n == 0) {
        return;
    }

    report_sort(values, n);
    sum = 0;

    for (i = 0; i < n; i++) {
        sum += values[i];
    }

    dist->mean = sum / (double) n;
    dist->p50 = report_percentile(values, n, 50);
    dist->p95 = report_percentile(values, n, 95);
    dist->p99 = report_percentile(values, n, 99);
    dist->min = values[0];
    dist->max = values[n - 1];
    dist->count = n;
}


/*
 * Counts inversions between two sorted runs, of which the first came earlier.
 * Values of the first run that are too great for one value of the second are
 * also too great for all smaller ones.
 */
static uint64_t
stat_inverted(const double *first, size_t n, const double *second, size_t m,
    double times)
{
    size_t    i, k;
    uint64_t  count;

    count = 0;

    for (i = 0, k = 0; k < m; k++) {

        while (i < n && !(first[i] > second[k] * times)) {
            i++;
        }

        count += n - i;
    }

    return count;
}


static void
stat_merge(const double *first, size_t n, const double *second, size_t m,
    double *out)
{
    while (n > 0 && m > 0) {

        if (*first <= *second) {
            *out++ = *first++;
            n--;

        } else {
            *out++ = *second++;
            m--;
        }
    }

    memcpy(out, first, n * sizeof(double));
    memcpy(out + n, second, m * sizeof(double));
}


uint64_t
report_inversions(double *values, double *scratch, size_t n, double times)
{
    size_t    at, width, m;
    uint64_t  count;

    count = 0;

    for (width = 1; width < n; width *= 2) {

        for (at = 0; at + width < n; at += 2 * width) {
            m = n - at - width < width ? n - at - width : width;
            count += stat_inverted(values + at, width, values + at + width, m,
                                   times);
            stat_merge(values + at, width, values + at + width, m,
                       scratch + at);
            memcpy(values + at, scratch + at, (width + m) * sizeof(double));
        }
    }

    return count;
}


double
report_jain(const double *x, size_t n)
{
    size_t  i;
    double  sum, squares;

    if (n == 0) {
        return 0;
    }

    sum = 0;
    squares = 0;

    for (i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }

    if (squares == 0) {
        return 1.0;
    }

    return sum * sum / ((double) n * squares);
}
