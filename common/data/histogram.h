
/*
 * A histogram of durations, for percentiles far out in the tail.
 *
 * Buckets as in HdrHistogram (Gil Tene, http://hdrhistogram.org): a
 * power of two is cut into HISTOGRAM_STEPS equal steps, so that a bucket is
 * never wider than 1/128 of its values, whatever their size.  Recording is a
 * few instructions and touches one bucket; nothing is ever allocated or
 * scaled, and no sample is lost.
 *
 *     value    0 .. 255    256 .. 511    512 .. 1023    ...
 *     width        1            2             4         ...
 *
 * Values above HISTOGRAM_MAX count as HISTOGRAM_MAX: 73 minutes in nanoseconds,
 * 50 days in microseconds.  The exact least, greatest and mean of all values
 * are kept beside the buckets.
 *
 * A histogram that lives as long as its process should show recent values: it
 * is filled by histogram_record_recent(), and old values count less in its
 * quantiles.
 */

#ifndef HISTOGRAM_H
#define HISTOGRAM_H

#include <stdint.h>


#define HISTOGRAM_STEP_BITS  7
#define HISTOGRAM_STEPS      (1 << HISTOGRAM_STEP_BITS)
#define HISTOGRAM_MAX_BITS   42
#define HISTOGRAM_MAX        ((1ULL << HISTOGRAM_MAX_BITS) - 1)
#define HISTOGRAM_BUCKETS                                                     \
    ((HISTOGRAM_MAX_BITS - HISTOGRAM_STEP_BITS + 1) * HISTOGRAM_STEPS)

/* All buckets are halved once they hold this many recent values. */
#define HISTOGRAM_RECENT  4096

/* A histogram that is all zero is empty. */
typedef struct {
    uint64_t  n;                        /* values ever recorded */
    uint64_t  min;
    uint64_t  max;
    double    sum;
    uint64_t  kept;                     /* values in the buckets */
    uint64_t  counts[HISTOGRAM_BUCKETS];
} histogram_t;

void histogram_record(histogram_t *histogram, uint64_t value);
void histogram_record_recent(histogram_t *histogram, uint64_t value);

/*
 * The least value that the given share (0 .. 1] of the kept values does not
 * exceed: the upper end of its bucket, but at most the greatest value recorded.
 * 0 if nothing was recorded.
 */
uint64_t histogram_quantile(const histogram_t *histogram, double share);

double histogram_mean(const histogram_t *histogram);

#endif /* HISTOGRAM_H */
