
/*
 * Quantiles of a histogram: the value below which a given share of all
 * observations lies.  Observations are taken as spread evenly within each
 * bucket, as Prometheus' histogram_quantile() does.
 */

#ifndef LLMGW_QUANTILE_H
#define LLMGW_QUANTILE_H

#include <stdint.h>


/*
 * bounds: upper bounds of the buckets, ascending, ended by 0; counts: of each
 * bucket by itself, and one more above the last bound.  permille: 500 is the
 * median.  A quantile above the last bound is returned as that bound.  -1:
 * nothing has been counted.
 */
double llmgw_quantile(const uint64_t *bounds, const uint64_t *counts,
    unsigned permille);

#endif /* LLMGW_QUANTILE_H */
