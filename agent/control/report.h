
/*
 * One report of a replica to its agent, as it stands on the control socket:
 *
 *   {"cmd":"report","replica_start":1763650000000,"pid":123,
 *    "model_version":"v1","max_capacity":4,"active_requests":0,
 *    "draining":false}
 *
 * and with "goodbye":true in the last one.  A replica before an engine also
 * reports about that engine: "state", "models", "running", "waiting",
 * "kv_permille", "kv_free_blocks", "hit_permille", "resume_group"; a replica
 * that starts its engine also "detail", why the engine does not run.  A replica
 * of a standby group reports "group", "group_state", "group_epoch",
 * "group_lock", "group_lock_away".  A shard reports "shard", the layers that it
 * computes; a replica that orchestrates shards reports "pipelines", the state
 * of these.  docs/control.md describes all fields for authors of engines.
 */

#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "proto/members/shards.h"


#define REPORT_MAX_MODELS      64   /* a replica with more adapters serves none
                                       of them well */
#define REPORT_MAX_NAME_BYTES  255
#define REPORT_DETAIL_BYTES    128  /* a line for people, with its NUL */

/* Limit as compact JSON: a dozen figures, and up to 500 bytes for each of a few
   dozen shards. */
#define REPORT_MAX_OBJECT_BYTES  32768

/* As many of the names as gossip carries; the others are counted. */
typedef struct {
    char      names[LLMGW_MEMBERS_MODELS_BYTES];    /* each ended by a NUL */
    size_t    bytes;                                /* 0: none */
    uint32_t  cut;
} report_models_t;

/* The state of an engine in its standby group.  Zeroed: it is in no group. */
typedef struct {
    char                 name[LLMGW_GROUP_BYTES];
    llmgw_group_state_t  state;
    uint64_t             epoch;
    uint64_t             lock;
    int                  is_lock_away;  /* of an active engine: no standby could
                                           take over */
} report_group_t;

/* A shard's report about itself.  Zeroed: nothing was reported. */
typedef struct {
    llmgw_shard_t        facts;
    llmgw_shard_model_t  model;
} report_shard_t;

typedef struct {
    uint64_t             replica_start_ms;      /* wall clock */
    int64_t              pid;
    char                 model_version[LLMGW_MEMBERS_NAME_BYTES];
    char                 resume_group[LLMGW_MEMBERS_NAME_BYTES];    /* or "" */
    uint32_t             max_capacity;          /* 0: unlimited */
    uint32_t             active_requests;
    int                  draining;
    int                  goodbye;
    llmgw_service_t      state;                 /* of the engine, if reported;
                                                   else READY */
    char                 detail[REPORT_DETAIL_BYTES];   /* "": none */
    report_group_t       group;
    report_models_t      models;
    report_shard_t       shard;
    llmgw_engine_load_t  engine;
    json_t              *pipelines;             /* belongs to the message; NULL:
                                                   no shards are orchestrated */
    json_t              *callers;               /* likewise, of a shard; NULL:
                                                   not reported */
} report_t;


/*
 * Reads a report.  0; or -1, and *error says what is missing or wrong.  For a
 * shard, models has the list of its model.
 */
int report_decode(report_t *report, const json_t *json, const char **error);

#endif /* REPORT_H */
