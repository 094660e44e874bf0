
/*
 * The replica beside this agent, as the agent judges it.
 *
 *                  first report, or health: serving
 *     +----------+ ------------------------------> +-------+
 *     | STARTING |                                 | READY | <--+ any report
 *     +----------+        no report for 3 s        +-------+    |
 *                      +-------------------------------+ | |    |
 *                      v                                 | |    |
 *                 +---------+                            | |    |
 *                 | STALLED | ---(report)----------------|-|----+
 *                 +---------+                            | |    |
 *                      |   connection broke, no goodbye  | |    |
 *                      +-------------> +------+ <--------+ |    |
 *                                      | DOWN | --(report)-|----+
 *                 +---------+          +------+            |    |
 *                 | STOPPED | <------- goodbye ------------+    |
 *                 +---------+ ---(report)-----------------------+
 *
 * A report may say that the replica's engine is STARTING, STALLED or DOWN.
 * This takes the place of READY.  If the replica itself is silent, that is a
 * stall all the same, unless its engine is DOWN.
 *
 * A replica of a standby group that is not active yet is STARTING, whatever it
 * reports: gateways that know nothing of groups must not use it.
 *
 * The layers that a shard reports count for two minutes after its last report,
 * even if it ended meanwhile.
 *
 * A replica that never reported is judged by its health checks instead; from
 * its first report on they no longer count.  If it answers that it does not
 * serve, this counts as a drain: it runs, and wants no new requests.
 *
 * Pure: gets the time, and returns what changed.
 */

#ifndef LOCAL_H
#define LOCAL_H

#include "control/report.h"
#include "supervise/health.h"
#include "swim/swim.h"


/* Replicas report at least once a second, so three reports are missing. */
#define LOCAL_STALL_US  3000000ULL

/* A shard that restarted would have loaded its weights again by then. */
#define LOCAL_SHARD_US  120000000ULL

typedef struct {
    llmgw_service_t      service;
    int                  draining;
    char                 model_version[LLMGW_MEMBERS_NAME_BYTES];
    char                 resume_group[LLMGW_MEMBERS_NAME_BYTES];
    char                 detail[REPORT_DETAIL_BYTES];   /* why its engine
                                                           does not run; "":
                                                           it runs */
    report_models_t      models;
    report_group_t       group;
    llmgw_shard_t        shard;         /* layers 0: nothing was reported */
    uint64_t             shard_us;      /* until when `shard` counts */
    int                  orchestrates;  /* it uses shards */
    uint32_t             max_capacity;
    uint32_t             active_requests;
    llmgw_engine_load_t  engine;
    uint64_t             replica_start_ms;
    uint64_t             reported_us;   /* time of the last report; 0: none */
    int                  is_connected;  /* a report connection stands */
} local_t;


void local_init(local_t *local);

/* The report connection is open from now on, until local_lost(). */
void local_report(local_t *local, const report_t *report, uint64_t now_us);

/* The report connection broke or was closed, or its process died. */
void local_lost(local_t *local);

/* The supervised process ended, whether or not it was reporting. */
void local_ended(local_t *local);

/* 1: no request would be cut off if the replica ended now. */
int local_is_idle(const local_t *local);

/* To be called at local_next_us(); UINT64_MAX: never. */
void local_tick(local_t *local, uint64_t now_us);
uint64_t local_next_us(const local_t *local);

void local_health(local_t *local, health_verdict_t verdict);

/* 1: there is a process that can be called. */
int local_has_replica(const local_t *local);

/*
 * Sets own to the replica's record as it is gossiped; its strings belong to the
 * local.  The resume group is NULL if no report named one.
 */
void local_own(const local_t *local, swim_own_t *own);

#endif /* LOCAL_H */
