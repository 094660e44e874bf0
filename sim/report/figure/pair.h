
/*
 * Two runs over the same requests: is one better, and how sure is that?
 *
 * Each request is compared with itself, so what the requests differ in by
 * themselves drops out.  Two answers: the mean difference, with an interval by
 * the bootstrap (Efron 1979; percentiles of the means of resampled
 * differences), and the sign test (how often each was better, and how likely
 * that is for equals), which no outlier can sway.
 */

#ifndef REPORT_PAIR_H
#define REPORT_PAIR_H

#include <stddef.h>
#include <stdint.h>


#define REPORT_RESAMPLES  1000

typedef struct {
    size_t   n;
    size_t   less;              /* pairs whose difference is below 0 */
    size_t   more;
    double   mean;
    double   median;
    double   low;               /* of the mean: 2.5 % */
    double   high;              /* of the mean: 97.5 % */
    double   p;                 /* of the sign test, two-sided; 1 if none */
} report_pair_t;


/*
 * Of differences, which it sorts.  The same seed gives the same interval.
 * Returns 0, or -1 without memory.
 */
int report_pair(double *differences, size_t n, uint64_t seed,
    report_pair_t *pair);

/* Two-sided: that of less + more fair coins so few, or fewer, fall one way. */
double report_sign_test(size_t less, size_t more);

#endif /* REPORT_PAIR_H */
