
/*
 * High water: the most attempts of our own that a replica has had in flight
 * over the last two seconds.
 *
 * A replica reports how many requests it serves, ours among them, and the
 * report is old when it arrives: it may still count attempts of ours that
 * have ended since.  So the load of other gateways is the report less the
 * highest count of our own in that time, never below zero:
 *
 *     foreign = max(0, reported - highest own)
 *
 * A count that is the highest of some time either stands still or was left
 * by a release within that time.  So only releases are noted, each with the
 * count before it.  Buckets of half a second hold them, one more than the
 * window asks for: a count is remembered for at least 2 s and for less than
 * 2.5 s.
 *
 * Lives beside the count in shared memory and under its lock; zeroed memory
 * has nothing noted.  now_ms is monotonic, and may lag behind that of another
 * process.
 */

#ifndef LLMGW_HIGH_WATER_H
#define LLMGW_HIGH_WATER_H

#include <stdint.h>


#define LLMGW_HIGH_WATER_BUCKET_MS  500
#define LLMGW_HIGH_WATER_BUCKETS    5

typedef struct {
    uint64_t  newest;           /* number of the newest bucket */
    uint32_t  highest[LLMGW_HIGH_WATER_BUCKETS];
} llmgw_high_water_t;


/* The count is about to fall from in_flight, by a release or a sweep. */
void llmgw_high_water_note(llmgw_high_water_t *high, uint32_t in_flight,
    uint64_t now_ms);

/* The load on the replica from other gateways, by its own report. */
uint32_t llmgw_high_water_foreign(const llmgw_high_water_t *high,
    uint32_t in_flight, uint32_t reported, uint64_t now_ms);

#endif /* LLMGW_HIGH_WATER_H */
