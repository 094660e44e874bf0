
/* Error, correlation, bias and grade of single requests. */

#include "sim/live/compare.h"

#include <math.h>


/*
 * Pearson's correlation by raw sums, as in BLIS: rounding may make it exceed 1.
 */
static double
pearson(const live_pairs_t *p)
{
    size_t  i;
    double  n, x, y, xy, xx, yy, den;

    x = y = xy = xx = yy = 0;
    n = (double) p->n;

    for (i = 0; i < p->n; i++) {
        x += p->real[i];
        y += p->sim[i];
        xy += p->real[i] * p->sim[i];
        xx += p->real[i] * p->real[i];
        yy += p->sim[i] * p->sim[i];
    }

    den = sqrt((n * xx - x * x) * (n * yy - y * y));

    return den == 0 ? 0 : (n * xy - x * y) / den;
}


static const char *
grade(double mape, double r)
{
    if (mape < 0.10 && r > 0.95) {
        return "excellent";
    }

    if (mape < 0.20 && r > 0.85) {
        return "good";
    }

    return mape < 0.35 && r > 0.70 ? "fair" : "poor";
}


void
live_quality(const live_pairs_t *pairs, live_quality_t *quality)
{
    size_t  i, n;
    double  sum, bias;

    n = 0;
    sum = bias = 0;

    for (i = 0; i < pairs->n; i++) {
        if (pairs->real[i] != 0) {
            sum += fabs(pairs->real[i] - pairs->sim[i]) / pairs->real[i];
            bias += pairs->sim[i] - pairs->real[i];
            n++;
        }
    }

    quality->mape = n > 0 ? sum / (double) n : 0;
    quality->bias = n == 0 ? "" : bias > 0 ? "over-predict"
                    : bias < 0 ? "under-predict" : "neutral";
    quality->pearson = pairs->n >= 3 ? pearson(pairs) : 0;

    if (!isfinite(quality->pearson)) {
        quality->pearson = 0;
    }

    quality->quality = grade(quality->mape, quality->pearson);
}
