
/*
 * The settings of a run: the fleet, the gateway before it, and the length of
 * the run.  Names and defaults are those of BLIS, where it has the setting.
 *
 * A config is plain data.  Texts and lists belong to the caller and outlive the
 * run.
 */

#ifndef FLEET_CONFIG_H
#define FLEET_CONFIG_H

#include <stddef.h>
#include <stdint.h>

#include "core/admission/classes.h"
#include "core/flow/flow.h"
#include "core/flow/saturation.h"
#include "core/prefix/index.h"
#include "sim/fleet/policy/policy.h"
#include "sim/fleet/policy/rules.h"
#include "sim/model/config.h"


#define FLEET_REPLICAS_MAX  LLMGW_PREFIX_MAX_REPLICAS

/* A number for a name: a tenant's budget, a class's target. */
typedef struct {
    const char  *name;
    double       value;
} fleet_named_t;

typedef struct {
    const fleet_named_t  *list;
    size_t                n;
} fleet_nameds_t;

/* When a request leaves the gateway's queue. */
typedef enum {
    FLEET_DISPATCH_TICK = 0,    /* one on an arrival, and one at each tick */
    FLEET_DISPATCH_COMPLETION   /* on an arrival, and when a request ends */
} fleet_dispatch_t;

/* The number that the scorer queue-depth reads. */
typedef enum {
    FLEET_SIGNAL_QUEUE = 0,     /* requests waiting in the replica */
    FLEET_SIGNAL_EFFECTIVE      /* requests waiting, running, or sent there */
} fleet_signal_t;

/* Whether a prompt is computed at a different replica from its answer. */
typedef enum {
    FLEET_SPLIT_NEVER = 0,
    FLEET_SPLIT_ALWAYS,
    FLEET_SPLIT_PREFIX          /* if over split_tokens are not cached */
} fleet_split_t;

typedef struct {
    const char              *rule_name;         /* as the settings spell it */
    fleet_rule_t             rule;              /* its bucket is not set */
    double                   bucket_capacity;   /* tokens */
    double                   bucket_rate;       /* tokens a second */
    int64_t                  latency_us;
    llmgw_classes_t          classes;
    int                      has_budgets;
    fleet_nameds_t           budgets;           /* by tenant: fleet's share */
} fleet_admission_t;

typedef struct {
    const char              *policy_name;
    fleet_policy_t           policy;
    fleet_policy_t           prefill;           /* valid only if has_prefill */
    fleet_policy_t           decode;
    int                      has_prefill;
    int                      has_decode;
    fleet_signal_t           signal;
    int64_t                  latency_us;
    int64_t                  snapshot_us;       /* age of facts; 0: fresh */
    int64_t                  cache_us;          /* the same, of the view of
                                                   cached blocks */
} fleet_routing_t;

typedef struct {
    int                      is_on;
    llmgw_flow_conf_t        queue;
    llmgw_saturation_t       saturation;
    fleet_nameds_t           targets;           /* us to first token */
    fleet_dispatch_t         dispatch;
    int64_t                  tick_us;
    int64_t                  ttl_us;            /* longest wait; 0: no limit */
    int                      evicts;            /* may evict running requests */
} fleet_flow_t;

/* All zero: every replica computes prompts and answers. */
typedef struct {
    uint32_t                 prefill;           /* number: the first ones */
    uint32_t                 decode;            /* the ones after these */
    uint32_t                 both;              /* the ones after these */
    fleet_split_t            split;
    int64_t                  split_tokens;
    double                   bandwidth_gbps;    /* GB a second */
    double                   base_ms;
    int                      has_contention;
    const model_config_t    *prefill_model;     /* NULL: as `model` */
    const model_config_t    *decode_model;
    double                   kv_bytes;          /* of a token's KV cache */
} fleet_pools_t;

typedef struct {
    uint32_t                 replicas;
    model_config_t           model;
    const char              *model_name;        /* the only model served */
    int64_t                  horizon_us;
    uint64_t                 seed;
    fleet_admission_t        admission;
    fleet_routing_t          routing;
    fleet_flow_t             flow;
    fleet_pools_t            pools;
    uint32_t                 top;               /* candidates reported with a
                                                   decision; 0: regret is not
                                                   computed */
    int                      checks;            /* check invariants */
} fleet_config_t;


/* Sets the defaults: one replica.  A latency model has none and must be set. */
void fleet_config_init(fleet_config_t *config);

/* Checks the settings.  0, or -1 and an error in one line. */
int fleet_config_check(const fleet_config_t *config, char *error,
    size_t bytes);

/*
 * The priority of a class; a request whose priority is below 0 may be shed.
 * Names that are no class are accepted: see classes.h.
 */
int32_t fleet_priority(const llmgw_classes_t *classes, const char *name,
    size_t len);

/*
 * The priority to send to an engine that schedules by priority, where less is
 * more urgent: the highest priority of all classes, less that of the request.
 */
int32_t fleet_engine_priority(const llmgw_classes_t *classes,
    int32_t priority);

static inline int
fleet_has_pools(const fleet_config_t *config)
{
    return config->pools.prefill > 0 || config->pools.decode > 0
           || config->pools.both > 0;
}

#endif /* FLEET_CONFIG_H */
