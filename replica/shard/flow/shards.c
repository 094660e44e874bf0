
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replica/shard/flow/shards.h"

/* The mean is over about this many results. */
#define FLOW_SHARD_RECENT  16


void
flow_shards_done(flow_shards_t *shards)
{
    size_t  i;

    for (i = 0; i < shards->n; i++) {
        free(shards->all[i]);
    }

    free(shards->all);
    *shards = (flow_shards_t) { 0 };
}


flow_shard_t *
flow_shards_find(const flow_shards_t *shards, const char *id)
{
    size_t  i;

    for (i = 0; i < shards->n; i++) {
        if (strcmp(shards->all[i]->id, id) == 0) {
            return shards->all[i];
        }
    }

    return NULL;
}


/* If there are more unused shards than the limit, forgets the one that has been
   unused for longest. */
static void
flow_shards_forget(flow_shards_t *shards)
{
    size_t  i, unused, oldest;

    oldest = 0;
    unused = 0;

    for (i = 0; i < shards->n; i++) {
        if (shards->all[i]->users == 0) {
            if (unused++ == 0
                || shards->all[i]->used < shards->all[oldest]->used)
            {
                oldest = i;
            }
        }
    }

    if (unused > FLOW_SHARDS_UNUSED_MAX) {
        free(shards->all[oldest]);
        shards->all[oldest] = shards->all[--shards->n];
    }
}


static flow_shard_t *
flow_shards_add(flow_shards_t *shards, const char *id)
{
    flow_shard_t  *shard, **grown;
    size_t         room;

    flow_shards_forget(shards);

    if (shards->n == shards->room) {
        room = shards->room ? 2 * shards->room : 16;
        grown = realloc(shards->all, room * sizeof(flow_shard_t *));

        if (grown == NULL) {
            return NULL;
        }

        shards->all = grown;
        shards->room = room;
    }

    shard = calloc(1, sizeof(flow_shard_t));

    if (shard != NULL) {
        snprintf(shard->id, sizeof(shard->id), "%s", id);
        shards->all[shards->n++] = shard;
    }

    return shard;
}


flow_shard_t *
flow_shards_enter(flow_shards_t *shards, const fleet_hop_t *hop)
{
    flow_shard_t  *shard;

    shard = flow_shards_find(shards, hop->id);

    if (shard == NULL) {
        shard = flow_shards_add(shards, hop->id);
    }

    if (shard != NULL) {
        shard->first = hop->first;
        shard->last = hop->last;
        shard->used = ++shards->uses;
        shard->users++;
    }

    return shard;
}


void
flow_shard_leave(flow_shard_t *shard)
{
    shard->users--;
}


uint64_t
flow_shard_took(flow_shard_t *shard, uint32_t rows, uint64_t ns)
{
    uint64_t  *mean, row;

    row = ns / rows;
    mean = &shard->row_ns[rows > 1];

    if (*mean == 0) {
        *mean = row;
    } else {
        *mean += ((int64_t) row - (int64_t) *mean) / FLOW_SHARD_RECENT;
    }

    return row;
}


uint64_t
flow_shard_bound_ns(const flow_shard_t *shard, uint32_t rows)
{
    uint64_t  bound, least;

    bound = shard->row_ns[rows > 1] * rows * FLOW_SHARD_FACTOR;
    least = (bound == 0 ? FLOW_SHARD_UNKNOWN_MS : FLOW_SHARD_LEAST_MS)
            * 1000000ULL;

    return bound > least ? bound : least;
}
