
/*
 * A policy bundle: YAML with the policies of admission, routing and scheduling
 * (BLIS's --policy-config).
 *
 *     admission: {policy: tier-shed, tier_shed_threshold: 30}
 *     routing: {policy: weighted, scorers: [{name: queue-depth, weight: 2}]}
 *     scheduler: priority-fcfs
 *     preemption: {policy: priority}
 *     tenant_budgets: {tc: 0.25}
 *
 * Node pools and the autoscaler are not simulated: their keys are refused.
 */

#ifndef SIM_BUNDLE_H
#define SIM_BUNDLE_H

#include "sim/work/yaml.h"


typedef struct {
    work_yaml_t          at;
    const char          *policy;
    double               bucket_capacity;
    double               bucket_rate;
    int64_t              tier_threshold;
    int64_t              tier_min_priority;
    double               gaie_queue_depth;
    double               gaie_kv_utilization;
    int                  has_bucket_capacity;
    int                  has_bucket_rate;
    int                  has_tier_threshold;
    int                  has_tier_min_priority;
    int                  has_gaie_queue_depth;
    int                  has_gaie_kv_utilization;
    work_yaml_numbers_t  priorities;
    work_yaml_numbers_t  targets;
} bundle_admission_t;

typedef struct {
    work_yaml_t          at;
    const char          *name;
    double               weight;
} bundle_scorer_t;

typedef struct {
    work_yaml_t          at;
    const char          *policy;
    work_yaml_list_t     scorers;           /* items are bundle_scorer_t */
} bundle_routing_t;

typedef struct {
    work_yaml_t          at;
    const char          *policy;
} bundle_named_t;

typedef struct {
    work_yaml_t          at;
    bundle_admission_t  *admission;
    bundle_routing_t    *routing;
    bundle_named_t      *priority;          /* read, but has no effect */
    bundle_named_t      *preemption;
    const char          *scheduler;
    work_yaml_numbers_t  budgets;
} bundle_t;


/*
 * Reads a bundle.  0, or -1 and *error.  The caller zeroes bundle; its texts
 * live in the arena.
 */
int bundle_read(bundle_t *bundle, const char *path, work_arena_t *arena,
    work_error_t *error);

#endif /* SIM_BUNDLE_H */
