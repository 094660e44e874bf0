
/*
 * The replica with the next event: the earliest, among equal times the one with
 * the lowest number.
 *
 * A tournament tree: its leaves are the replicas' next times, and each node
 * keeps the earlier of its two halves.  A changed time is compared on the path
 * to the root only: log n comparisons.
 */

#ifndef FLEET_READY_H
#define FLEET_READY_H

#include <stdint.h>


typedef struct {
    int64_t   *times;           /* of each leaf's next event */
    uint32_t  *winners;         /* by node: a leaf; node 1 is the root */
    uint32_t   leaves;          /* a power of two */
} ready_t;


/* All times are INT64_MAX.  0, or -1: no memory. */
int ready_init(ready_t *ready, uint32_t n);
void ready_done(ready_t *ready);

void ready_set(ready_t *ready, uint32_t replica, int64_t at_us);

static inline uint32_t
ready_first(const ready_t *ready)
{
    return ready->winners[1];
}

static inline int64_t
ready_time(const ready_t *ready)
{
    return ready->times[ready->winners[1]];
}

#endif /* FLEET_READY_H */
