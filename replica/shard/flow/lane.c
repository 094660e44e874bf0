
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/flow/lane.h"

/* The mean is of about so many. */
#define LANE_RECENT  16


void
lanes_done(lanes_t *lanes)
{
    size_t  i;

    for (i = 0; i < lanes->n; i++) {
        free(lanes->lanes[i]);
    }

    free(lanes->lanes);
    *lanes = (lanes_t) { 0 };
}


lane_t *
lanes_find(const lanes_t *lanes, const char *id)
{
    size_t  i;

    for (i = 0; i < lanes->n; i++) {
        if (strcmp(lanes->lanes[i]->id, id) == 0) {
            return lanes->lanes[i];
        }
    }

    return NULL;
}


/* Beyond the limit, the one that has been unused for longest. */
static void
lanes_forget(lanes_t *lanes)
{
    size_t  i, unused, oldest;

    oldest = 0;
    unused = 0;

    for (i = 0; i < lanes->n; i++) {
        if (lanes->lanes[i]->users == 0) {
            if (unused++ == 0
                || lanes->lanes[i]->used < lanes->lanes[oldest]->used)
            {
                oldest = i;
            }
        }
    }

    if (unused > LANES_UNUSED_MAX) {
        free(lanes->lanes[oldest]);
        lanes->lanes[oldest] = lanes->lanes[--lanes->n];
    }
}


static lane_t *
lanes_add(lanes_t *lanes, const char *id)
{
    lane_t   *lane, **grown;
    size_t    room;

    lanes_forget(lanes);

    if (lanes->n == lanes->room) {
        room = lanes->room ? 2 * lanes->room : 16;
        grown = realloc(lanes->lanes, room * sizeof(lane_t *));

        if (grown == NULL) {
            return NULL;
        }

        lanes->lanes = grown;
        lanes->room = room;
    }

    lane = calloc(1, sizeof(lane_t));

    if (lane != NULL) {
        snprintf(lane->id, sizeof(lane->id), "%s", id);
        lanes->lanes[lanes->n++] = lane;
    }

    return lane;
}


lane_t *
lanes_enter(lanes_t *lanes, const fleet_hop_t *hop)
{
    lane_t  *lane;

    lane = lanes_find(lanes, hop->id);

    if (lane == NULL) {
        lane = lanes_add(lanes, hop->id);
    }

    if (lane != NULL) {
        lane->first = hop->first;
        lane->last = hop->last;
        lane->used = ++lanes->uses;
        lane->users++;
    }

    return lane;
}


void
lane_leave(lane_t *lane)
{
    lane->users--;
}


uint64_t
lane_took(lane_t *lane, uint32_t rows, uint64_t ns)
{
    uint64_t  *mean, row;

    row = ns / rows;
    mean = &lane->row_ns[rows > 1];

    if (*mean == 0) {
        *mean = row;
    } else {
        *mean += ((int64_t) row - (int64_t) *mean) / LANE_RECENT;
    }

    return row;
}


uint64_t
lane_bound_ns(const lane_t *lane, uint32_t rows)
{
    uint64_t  bound, least;

    bound = lane->row_ns[rows > 1] * rows * LANE_FACTOR;
    least = (bound == 0 ? LANE_UNKNOWN_MS : LANE_LEAST_MS) * 1000000ULL;

    return bound > least ? bound : least;
}
