
/*
 * The leading one bit of a value gives its power of two, the seven bits after
 * it give the step; both together, read as one number, are the bucket.  A
 * value of up to eight bits is its own bucket.
 */

#include <math.h>

#include "common/data/histogram.h"


static unsigned
histogram_bucket(uint64_t value)
{
    unsigned  shift;

    if (value < 2 * HISTOGRAM_STEPS) {
        return (unsigned) value;
    }

    shift = 63 - (unsigned) __builtin_clzll(value) - HISTOGRAM_STEP_BITS;

    return shift * HISTOGRAM_STEPS + (unsigned) (value >> shift);
}


/* The greatest value in a bucket. */
static uint64_t
histogram_bucket_end(unsigned bucket)
{
    unsigned  shift;

    if (bucket < 2 * HISTOGRAM_STEPS) {
        return bucket;
    }

    shift = bucket / HISTOGRAM_STEPS - 1;

    return (((uint64_t) (bucket - shift * HISTOGRAM_STEPS) + 1) << shift) - 1;
}


void
histogram_record(histogram_t *h, uint64_t value)
{
    if (value > HISTOGRAM_MAX) {
        value = HISTOGRAM_MAX;
    }

    h->counts[histogram_bucket(value)]++;
    h->kept++;
    h->sum += (double) value;

    if (h->n++ == 0 || value < h->min) {
        h->min = value;
    }

    if (value > h->max) {
        h->max = value;
    }
}


void
histogram_record_recent(histogram_t *h, uint64_t value)
{
    unsigned  i;

    if (h->kept >= HISTOGRAM_RECENT) {
        h->kept = 0;

        for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
            h->counts[i] /= 2;
            h->kept += h->counts[i];
        }
    }

    histogram_record(h, value);
}


uint64_t
histogram_quantile(const histogram_t *h, double share)
{
    unsigned  i;
    uint64_t  wanted, seen, end;

    if (h->kept == 0) {
        return 0;
    }

    wanted = (uint64_t) ceil(share * (double) h->kept);
    wanted = wanted > 0 ? wanted : 1;
    seen = 0;

    for (i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->counts[i];

        if (seen >= wanted) {
            end = histogram_bucket_end(i);
            return end < h->max ? end : h->max;
        }
    }

    return h->max;
}


double
histogram_mean(const histogram_t *h)
{
    return h->n > 0 ? h->sum / (double) h->n : 0;
}
