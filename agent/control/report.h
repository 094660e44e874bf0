
/*
 * One report of a replica to its agent, as it stands on the control socket:
 *
 *   {"cmd":"report","replica_start":1763650000000,"pid":123,
 *    "model_version":"v1","max_capacity":4,"active_requests":0,
 *    "draining":false}
 *
 * and with "goodbye":true in its last one.  A replica before an engine also
 * reports what that engine is: "state", "models", "running", "waiting",
 * "kv_permille", "kv_free_blocks", "hit_permille", "resume_group"; and one that
 * starts its engine "detail", why that does not run.  One of a
 * standby group says "group", "group_state", "group_epoch", "group_lock",
 * "group_lock_away".  A shard says "shard", what it computes; a replica that
 * orchestrates shards says "pipelines", how they do.  docs/control.md has it
 * for authors of engines.
 */

#ifndef REPORT_H
#define REPORT_H

#include <jansson.h>
#include <stdint.h>

#include "proto/members/shards.h"


#define REPORT_MAX_MODELS      64   /* a replica with more adapters than that
                                       serves none of them well */
#define REPORT_MAX_NAME_BYTES  255
#define REPORT_DETAIL_BYTES    128  /* a line for people, with its NUL */

/* As compact JSON: a dozen figures, and of each of a few dozen shards up to
   500 bytes. */
#define REPORT_MAX_OBJECT_BYTES  32768

/* Of the names as many as gossip carries; the others are counted. */
typedef struct {
    char      names[LLMGW_MEMBERS_MODELS_BYTES];    /* each with a NUL */
    size_t    bytes;                                /* 0: none */
    uint32_t  cut;
} report_models_t;

/* How far an engine of a standby group is.  Zeroed: it is of none. */
typedef struct {
    char                 name[LLMGW_GROUP_BYTES];
    llmgw_group_state_t  state;
    uint64_t             epoch;
    uint64_t             lock;
    int                  is_lock_away;  /* of an active one: no standby
                                           could take over */
} report_group_t;

/* What a shard says of itself.  Zeroed: nothing. */
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
    llmgw_service_t      state;                 /* of the engine; else READY */
    char                 detail[REPORT_DETAIL_BYTES];   /* "": none */
    report_group_t       group;
    report_models_t      models;
    report_shard_t       shard;
    llmgw_engine_load_t  engine;
    json_t              *pipelines;             /* the message's own; NULL:
                                                   it orchestrates nothing */
    json_t              *callers;               /* the same, of a shard; NULL:
                                                   it reports none */
} report_t;


/*
 * 0, or -1 and in *error what is missing or wrong.  The list of a shard's model
 * is in models.
 */
int report_decode(report_t *report, const json_t *json, const char **error);

#endif /* REPORT_H */
