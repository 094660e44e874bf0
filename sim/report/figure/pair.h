
/*
 * Two runs over the same requests: is one better, and how sure is that?
 *
 * Each request is compared with itself, so differences among the requests
 * themselves drop out.  Two answers: the mean difference, with an interval by
 * the bootstrap (Efron 1979; percentiles of the means of resampled
 * differences), and the sign test (how often each was better, and how likely
 * this is if both are equal), which no outlier can sway.
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
    double   low;               /* of the mean, at 2.5 % */
    double   high;              /* of the mean, at 97.5 % */
    double   p;                 /* of the two-sided sign test */
} report_pair_t;


/*
 * Computes both answers from the differences, which it sorts.  The same seed
 * gives the same interval.  0, or -1: no memory.
 */
int report_pair(double *differences, size_t n, uint64_t seed,
    report_pair_t *pair);

/*
 * Two-sided sign test: the probability that less + more fair coins fall at
 * least as unevenly.
 */
double report_sign_test(size_t less, size_t more);

#endif /* REPORT_PAIR_H */
