
/*
 * What flows remember of each shard, by its member's id: how long its rows
 * take, which flow's replay it computes, how it failed.
 *
 * A single row takes longer than each row of a chunk, so there are two means.
 * As long as a mean is not known, the bound is at least FLOW_SHARD_UNKNOWN_MS,
 * since the first rows of a large slice wait for its pages.
 */

#ifndef FLOW_SHARDS_H
#define FLOW_SHARDS_H

#include <stddef.h>
#include <stdint.h>

#include "common/data/histogram.h"
#include "replica/shard/fleet/fleet.h"


/* Limits from Started to the whole Result: this many times the mean, and at
   least ... */
#define FLOW_SHARD_FACTOR      20
#define FLOW_SHARD_LEAST_MS    1000
#define FLOW_SHARD_UNKNOWN_MS  10000

/* How many shards that no flow uses are remembered. */
#define FLOW_SHARDS_UNUSED_MAX  64

typedef struct {
    char         id[LLMGW_MEMBERS_NAME_BYTES];
    uint32_t     first;
    uint32_t     last;
    uint32_t     users;         /* hops */
    uint64_t     used;          /* number of its last use, of
                                   flow_shards_t.uses */

    const void  *turn;          /* the flow whose replay it computes */
    uint64_t     claim;         /* turn.c's: the round in which it is
                                   promised */

    uint64_t     row_ns[2];     /* mean of a single row, and of a chunk's; 0:
                                   not known */
    histogram_t  latency;       /* from a step to its result, in us */
    uint64_t     steps;
    uint64_t     failovers;
    uint64_t     corruptions;
    uint64_t     differed;      /* audits in which two other shards agreed
                                   against this one */
} flow_shard_t;

typedef struct {
    flow_shard_t  **all;
    size_t          n;
    size_t          room;
    uint64_t        uses;
} flow_shards_t;


void flow_shards_done(flow_shards_t *shards);

/* The shard, with one more user, until flow_shard_leave().  NULL: out of
   memory. */
flow_shard_t *flow_shards_enter(flow_shards_t *shards, const fleet_hop_t *hop);
void flow_shard_leave(flow_shard_t *shard);

/* NULL: none has this id. */
flow_shard_t *flow_shards_find(const flow_shards_t *shards, const char *id);

/* Counts that `rows` took `ns` from Started to Result, and returns the time for
   each row. */
uint64_t flow_shard_took(flow_shard_t *shard, uint32_t rows, uint64_t ns);

/* The time that `rows` may take after Started. */
uint64_t flow_shard_bound_ns(const flow_shard_t *shard, uint32_t rows);

#endif /* FLOW_SHARDS_H */
