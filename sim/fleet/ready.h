
/*
 * The replica with the next event: the earliest, among equal times the one with
 * the lowest number.
 *
 * A tree of matches: its leaves are the replicas' next times, every node knows
 * the winner of its two halves.  A replica whose time has changed plays its way
 * up, log n matches, whatever the number of replicas.
 */

#ifndef FLEET_READY_H
#define FLEET_READY_H

#include <stdint.h>


typedef struct {
    int64_t   *times;           /* of each leaf */
    uint32_t  *winners;         /* of each node; node 1 is the root */
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
