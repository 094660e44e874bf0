
/*
 * Paired differences.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/rnd.h"
#include "sim/report/figure/pair.h"
#include "sim/report/figure/stat.h"


#define PAIR_EXACT  1000        /* with more coins: normal distribution */
#define PAIR_PICKS  20000000    /* of one bootstrap: under a second */


double
report_sign_test(size_t less, size_t more)
{
    double  few, i, n, p, z;

    n = (double) less + (double) more;
    few = (double) (less < more ? less : more);

    if (n == 0) {
        return 1;
    }

    if (n > PAIR_EXACT) {
        z = (n / 2 - few - 0.5) / (sqrt(n) / 2);
        return z <= 0 ? 1 : erfc(z / sqrt(2));
    }

    p = 0;

    for (i = 0; i <= few; i++) {
        p += exp(lgamma(n + 1) - lgamma(i + 1) - lgamma(n - i + 1)
                 - n * log(2));
    }

    return fmin(1, 2 * p);
}


static double
pair_resampled_mean(const double *values, size_t n, rnd_t *rnd)
{
    size_t  i;
    double  sum;

    sum = 0;

    for (i = 0; i < n; i++) {
        sum += values[rnd_below(rnd, n)];
    }

    return sum / (double) n;
}


/*
 * The bootstrap's interval.  If there are very many pairs, fewer samples are
 * taken, since their mean varies little.
 */
static int
pair_interval(const double *values, size_t n, uint64_t seed,
    report_pair_t *pair)
{
    rnd_t    rnd;
    double  *means;
    size_t   i, samples;

    rnd.state = seed;
    samples = PAIR_PICKS / n;
    samples = samples > REPORT_RESAMPLES ? REPORT_RESAMPLES
              : samples < 100 ? 100 : samples;

    means = malloc(samples * sizeof(double));

    if (means == NULL) {
        return -1;
    }

    for (i = 0; i < samples; i++) {
        means[i] = pair_resampled_mean(values, n, &rnd);
    }

    report_sort(means, samples);
    pair->low = report_percentile(means, samples, 2.5);
    pair->high = report_percentile(means, samples, 97.5);

    free(means);

    return 0;
}


int
report_pair(double *differences, size_t n, uint64_t seed,
    report_pair_t *pair)
{
    size_t         i;
    report_dist_t  dist;

    memset(pair, 0, sizeof(*pair));
    pair->n = n;
    pair->p = 1;

    if (n == 0) {
        return 0;
    }

    report_dist(differences, n, &dist);
    pair->mean = dist.mean;
    pair->median = dist.p50;

    for (i = 0; i < n; i++) {
        pair->less += differences[i] < 0;
        pair->more += differences[i] > 0;
    }

    pair->p = report_sign_test(pair->less, pair->more);

    return pair_interval(differences, n, seed, pair);
}
