
/* Gaps between arrivals. */

#include "sim/work/spec/gap.h"

#include <math.h>
#include <string.h>

/*
 * Gamma distributions with a lower shape are replaced by poisson, as in BLIS.
 */
#define GAMMA_LEAST_SHAPE  0.01


static double
weibull_cv(double shape)
{
    double  a, b;

    a = tgamma(1 + 1 / shape);
    b = tgamma(1 + 2 / shape);

    return sqrt(b / (a * a) - 1);
}


/* Finds the shape by bisection: the variation falls as the shape grows. */
static double
weibull_shape(double cv)
{
    int     i;
    double  low, high, middle, at;

    low = 0.1;
    high = 100;

    for (i = 0; i < 100; i++) {
        middle = (low + high) / 2;
        at = weibull_cv(middle);

        if (fabs(at - cv) < 0.001) {
            return middle;
        }

        if (at > cv) {
            low = middle;

        } else {
            high = middle;
        }
    }

    return (low + high) / 2;
}


void
work_gap_init(work_gap_t *gap, const work_arrival_t *arrival,
    double rate_per_us)
{
    double  cv, mean;

    mean = 1 / (rate_per_us > 1e-15 ? rate_per_us : 1e-15);
    cv = arrival->has_cv ? arrival->cv : 1;
    gap->kind = WORK_GAP_POISSON;
    gap->scale_us = mean;
    gap->shape = 1;

    if (strcmp(arrival->process, "constant") == 0) {
        gap->kind = WORK_GAP_CONSTANT;

    } else if (strcmp(arrival->process, "gamma") == 0) {
        gap->shape = arrival->has_shape ? arrival->shape : 1 / (cv * cv);

        if (arrival->has_shape || gap->shape >= GAMMA_LEAST_SHAPE) {
            gap->kind = WORK_GAP_GAMMA;
            gap->scale_us = arrival->has_shape ? arrival->scale
                                               : mean * cv * cv;
        }

    } else if (strcmp(arrival->process, "weibull") == 0) {
        gap->kind = WORK_GAP_WEIBULL;
        gap->shape = arrival->has_shape ? arrival->shape : weibull_shape(cv);
        gap->scale_us = arrival->has_shape
                        ? arrival->scale : mean / tgamma(1 + 1 / gap->shape);
    }
}


int64_t
work_gap(const work_gap_t *gap, rnd_t *rnd)
{
    double  value;

    switch (gap->kind) {

    case WORK_GAP_POISSON:
        value = work_exponential(rnd) * gap->scale_us;
        break;

    case WORK_GAP_GAMMA:
        value = work_gamma(rnd, gap->shape) * gap->scale_us;
        break;

    case WORK_GAP_WEIBULL:
        value = gap->scale_us * pow(work_exponential(rnd), 1 / gap->shape);
        break;

    default:
        value = gap->scale_us;
    }

    if (!(value >= 1)) {
        return 1;
    }

    return value < (double) WORK_MAX_US ? (int64_t) value : WORK_MAX_US;
}
