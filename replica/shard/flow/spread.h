
/*
 * How durations are spread, in constant memory: eight buckets to an octave,
 * so that a quantile is right within an eighth.  What is old counts less: all
 * buckets are halved whenever they hold SPREAD_RECENT.  The sum and the count
 * are of all that there was.
 *
 * Source of the buckets: Tene, "HdrHistogram".
 */

#ifndef FLOW_SPREAD_H
#define FLOW_SPREAD_H

#include <stdint.h>


#define SPREAD_BUCKETS  (26 * 8)        /* up to 2^28 us, four minutes */
#define SPREAD_RECENT   4096

typedef struct {
    uint64_t  sum_us;
    uint64_t  count;
    uint32_t  recent;                   /* in the buckets */
    uint16_t  buckets[SPREAD_BUCKETS];
} spread_t;


void spread_add(spread_t *spread, uint64_t us);

/* permille 1 .. 1000; 0 without any. */
uint64_t spread_quantile_us(const spread_t *spread, uint32_t permille);

#endif /* FLOW_SPREAD_H */
