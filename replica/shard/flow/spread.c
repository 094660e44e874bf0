
#include "replica/shard/flow/spread.h"


/* Below 8 us each has its own; then the three bits behind the highest one. */
static unsigned
spread_bucket(uint64_t us)
{
    unsigned  octave, bucket;

    if (us < 8) {
        return us;
    }

    octave = 63 - __builtin_clzll(us);
    bucket = (octave - 2) * 8 + (us >> (octave - 3) & 7);

    return bucket < SPREAD_BUCKETS ? bucket : SPREAD_BUCKETS - 1;
}


/* The last duration of a bucket. */
static uint64_t
spread_edge_us(unsigned bucket)
{
    unsigned  octave;

    if (bucket < 8) {
        return bucket;
    }

    octave = bucket / 8 + 2;

    return ((uint64_t) (8 + bucket % 8 + 1) << (octave - 3)) - 1;
}


static void
spread_age(spread_t *spread)
{
    unsigned  i;

    spread->recent = 0;

    for (i = 0; i < SPREAD_BUCKETS; i++) {
        spread->buckets[i] /= 2;
        spread->recent += spread->buckets[i];
    }
}


void
spread_add(spread_t *spread, uint64_t us)
{
    if (spread->recent >= SPREAD_RECENT) {
        spread_age(spread);
    }

    spread->buckets[spread_bucket(us)]++;
    spread->recent++;
    spread->sum_us += us;
    spread->count++;
}


uint64_t
spread_quantile_us(const spread_t *spread, uint32_t permille)
{
    uint64_t  left;
    unsigned  i;

    if (spread->recent == 0) {
        return 0;
    }

    left = ((uint64_t) spread->recent * permille + 999) / 1000;

    for (i = 0; i < SPREAD_BUCKETS - 1; i++) {
        if (left <= spread->buckets[i]) {
            break;
        }
        left -= spread->buckets[i];
    }

    return spread_edge_us(i);
}
