
/*
 * The leading one bit of a value gives its power of two, the seven bits after
 * it give the step; both together, read as one number, are the bucket.  A
 * value of up to eight bits is its own bucket.
 */

#include <math.h>
#include <string.h>

#include "common/data/histogram.h"


void
histogram_init(histogram_t *h)
{
    memset(h, 0, sizeof(*h));
    h->min = UINT64_MAX;
}


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
    h->n++;
    h->sum += (double) value;

    if (value < h->min) {
        h->min = value;
    }

    if (value > h->max) {
        h->max = value;
    }
}


uint64_t
histogram_quantile(const histogram_t *h, double share)
{
    unsigned  i;
    uint64_t  wanted, seen, end;

    if (h->n == 0) {
        return 0;
    }

    wanted = (uint64_t) ceil(share * (double) h->n);
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
