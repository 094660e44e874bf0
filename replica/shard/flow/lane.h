
/*
 * What flows remember of each shard, by its member's id: how long its rows
 * take, whose replay it computes, what it did wrong.
 *
 * A row alone takes longer than one of a chunk, so there are two means.  A
 * mean that is not known yet bounds nothing below LANE_UNKNOWN_MS: the first
 * rows of a large slice wait for its pages.
 */

#ifndef FLOW_LANE_H
#define FLOW_LANE_H

#include <stddef.h>
#include <stdint.h>

#include "common/data/histogram.h"
#include "replica/shard/fleet/fleet.h"


/* From Started to the whole Result: so many times the mean, at least ... */
#define LANE_FACTOR      20
#define LANE_LEAST_MS    1000
#define LANE_UNKNOWN_MS  10000

/* Of shards that no flow uses, so many are remembered. */
#define LANES_UNUSED_MAX  64

typedef struct {
    char         id[LLMGW_MEMBERS_NAME_BYTES];
    uint32_t     first;
    uint32_t     last;
    uint32_t     users;         /* hops */
    uint64_t     used;          /* when, by lanes_t.uses */

    const void  *turn;          /* the flow whose replay it computes */
    uint64_t     claim;         /* by turn.c: it is promised in this round */

    uint64_t     row_ns[2];     /* alone, of a chunk; 0: not known */
    histogram_t  latency;       /* from a step to its result, in us */
    uint64_t     steps;
    uint64_t     failovers;
    uint64_t     corruptions;
} lane_t;

typedef struct {
    lane_t   **lanes;
    size_t     n;
    size_t     room;
    uint64_t   uses;
} lanes_t;


void lanes_done(lanes_t *lanes);

/* One more user: lane_leave().  NULL: no memory. */
lane_t *lanes_enter(lanes_t *lanes, const fleet_hop_t *hop);
void lane_leave(lane_t *lane);

/* NULL: none has this id. */
lane_t *lanes_find(const lanes_t *lanes, const char *id);

/* rows took so long, from Started to Result; it is a row's mean. */
uint64_t lane_took(lane_t *lane, uint32_t rows, uint64_t ns);

/* After Started; for all of the rows. */
uint64_t lane_bound_ns(const lane_t *lane, uint32_t rows);

#endif /* FLOW_LANE_H */
