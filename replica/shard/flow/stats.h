
/*
 * What flows have counted: "pipelines" of the report to the agent
 * (docs/control.md).
 */

#ifndef FLOW_STATS_H
#define FLOW_STATS_H

#include <jansson.h>
#include <stdint.h>

#include "replica/shard/flow/flow.h"


/* Shards in one report, so that it stays below the 32 KiB that an agent takes,
   however long their names are. */
#define FLOW_REPORT_SHARDS  32

typedef struct {
    uint64_t  sum_us;
    uint64_t  count;
    uint64_t  p50_us;
    uint64_t  p95_us;
} flow_times_t;

/* Current values, and counts since the start. */
typedef struct {
    size_t        flows;
    size_t        waiting;          /* flows that wait for their turn to
                                       build */
    size_t        building;
    uint64_t      history_bytes;
    uint64_t      history_max;
    flow_times_t  construct;        /* from the first row to all Opened */
    flow_times_t  first_token;      /* from all Opened to the first logits */
    uint64_t      tokens;
    double        tokens_per_s;     /* of the last ten seconds */
    uint64_t      failovers;        /* shards lost to a fault */
    uint64_t      stalls;           /* shards that did not answer in time */
    uint64_t      corruptions;      /* shards that computed nonsense */
    uint64_t      replays;
    uint64_t      replayed_rows;
    uint64_t      rewinds;
    uint64_t      evictions;        /* of histories */
} flow_stats_t;


void flows_stats(flows_t *flows, flow_stats_t *stats);

/* fallbacks: streams that continued without shards.  NULL: out of memory. */
json_t *flows_report(flows_t *flows, int is_ready, uint64_t fallbacks);

#endif /* FLOW_STATS_H */
