
/*
 * Times between arrivals, at least 1 us.
 *
 * poisson, gamma and weibull have the mean of their rate and the given
 * coefficient of variation (1 if none is given), or the given shape and scale;
 * the shape of weibull is found by bisection.  constant always waits the mean,
 * truncated to us.
 */

#ifndef WORK_GAP_H
#define WORK_GAP_H

#include "sim/work/spec/spec.h"


typedef enum {
    WORK_GAP_CONSTANT = 0,
    WORK_GAP_POISSON,
    WORK_GAP_GAMMA,
    WORK_GAP_WEIBULL
} work_gap_kind_t;

typedef struct {
    work_gap_kind_t   kind;
    double            scale_us;     /* poisson, constant: the mean */
    double            shape;
} work_gap_t;

/* rate_per_us must be above 0. */
void work_gap_init(work_gap_t *gap, const work_arrival_t *arrival,
    double rate_per_us);

int64_t work_gap(const work_gap_t *gap, rnd_t *rnd);

#endif /* WORK_GAP_H */
