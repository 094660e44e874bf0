
/*
 * Percentiles, means and fairness, computed in BLIS's order of operations, so
 * that they are the same doubles.
 *
 * A percentile is the linear interpolation at rank p/100 * (n - 1) of the
 * sorted values.  Empty input gives 0.
 */

#ifndef REPORT_STAT_H
#define REPORT_STAT_H

#include <stddef.h>
#include <stdint.h>


/*
 * A histogram of values that occur often, as gaps between tokens do, ascending
 * by value.
 */
typedef struct {
    int64_t    value;
    uint64_t   count;
} report_count_t;

/* In the same unit as the values. */
typedef struct {
    double     mean;
    double     p50;
    double     p95;
    double     p99;
    double     min;
    double     max;
    size_t     count;
} report_dist_t;


void report_sort(double *values, size_t n);

/* The values are sorted microseconds; the result is in milliseconds. */
double report_percentile_ms(const double *sorted, size_t n, double p);
double report_mean_ms(const double *sorted, size_t n);
double report_count_percentile_ms(const report_count_t *counts, size_t n,
    double p);
double report_count_mean_ms(const report_count_t *counts, size_t n);

/* The values are sorted; the result has their unit. */
double report_percentile(const double *sorted, size_t n, double p);

/* Sorts the values. */
void report_dist(double *values, size_t n, report_dist_t *dist);

/*
 * Counts pairs of an earlier and a later value of which the earlier one is more
 * than `times` (above 0) the later one.  Sorts the values, in n log n; scratch
 * must have room for n.
 */
uint64_t report_inversions(double *values, double *scratch, size_t n,
    double times);

/*
 * Fairness of x: (sum x)^2 / (n * sum x^2), by Jain, Chiu and Hawe, "A
 * Quantitative Measure of Fairness and Discrimination" (1984).  1 if all get
 * the same (or nothing), 1/n if one gets everything; 0 if n is 0.
 */
double report_jain(const double *x, size_t n);

#endif /* REPORT_STAT_H */
