
#include <stddef.h>

#include "sim/bundle.h"


#define PRIORITY_MAX  100

#define TEXT(type, key_, field)                                               \
    { .key = key_, .kind = WORK_YAML_TEXT, .offset = offsetof(type, field) }

/* Rows for a number of `admission` and for whether it was given. */
#define NUMBER(key_, kind_, field, least, most)                               \
    { .key = key_, .kind = kind_,                                             \
      .offset = offsetof(bundle_admission_t, field), .min = least,            \
      .max = most, .present = offsetof(bundle_admission_t, has_##field) }

#define NUMBERS(type, key_, field, least, most)                               \
    { .key = key_, .kind = WORK_YAML_NUMBERS, .offset = offsetof(type, field),\
      .min = least, .max = most }

#define INNER(type, key_, kind_, field, table_, inner)                        \
    { .key = key_, .kind = kind_, .offset = offsetof(type, field),            \
      .table = table_, .size = sizeof(inner) }


static const work_yaml_field_t  bundle_admission_keys[] = {
    TEXT(bundle_admission_t, "policy", policy),
    NUMBER("token_bucket_capacity", WORK_YAML_DOUBLE, bucket_capacity, 0,
           1e18),
    NUMBER("token_bucket_refill_rate", WORK_YAML_DOUBLE, bucket_rate, 0,
           1e18),
    NUMBER("tier_shed_threshold", WORK_YAML_INT, tier_threshold, 0, 1e15),
    NUMBER("tier_shed_min_priority", WORK_YAML_INT, tier_min_priority, -1e9,
           1e9),
    NUMBER("gaie_qd_threshold", WORK_YAML_DOUBLE, gaie_queue_depth, 1e-9,
           1e15),
    NUMBER("gaie_kv_threshold", WORK_YAML_DOUBLE, gaie_kv_utilization, 1e-9,
           1),
    NUMBERS(bundle_admission_t, "slo_priorities", priorities, -PRIORITY_MAX,
            PRIORITY_MAX),
    NUMBERS(bundle_admission_t, "slo_targets", targets, 0, 1e15),
    { .key = NULL }
};

static const work_yaml_field_t  bundle_scorer_keys[] = {
    TEXT(bundle_scorer_t, "name", name),
    { .key = "weight", .kind = WORK_YAML_DOUBLE,
      .offset = offsetof(bundle_scorer_t, weight) },
    { .key = NULL }
};

static const work_yaml_field_t  bundle_routing_keys[] = {
    TEXT(bundle_routing_t, "policy", policy),
    INNER(bundle_routing_t, "scorers", WORK_YAML_LIST, scorers,
          bundle_scorer_keys, bundle_scorer_t),
    { .key = NULL }
};

static const work_yaml_field_t  bundle_named_keys[] = {
    TEXT(bundle_named_t, "policy", policy),
    { .key = NULL }
};

static const work_yaml_field_t  bundle_keys[] = {
    INNER(bundle_t, "admission", WORK_YAML_MAP, admission,
          bundle_admission_keys, bundle_admission_t),
    INNER(bundle_t, "routing", WORK_YAML_MAP, routing, bundle_routing_keys,
          bundle_routing_t),
    INNER(bundle_t, "priority", WORK_YAML_MAP, priority, bundle_named_keys,
          bundle_named_t),
    TEXT(bundle_t, "scheduler", scheduler),
    INNER(bundle_t, "preemption", WORK_YAML_MAP, preemption,
          bundle_named_keys, bundle_named_t),
    NUMBERS(bundle_t, "tenant_budgets", budgets, 0, 1),
    { .key = NULL }
};


int
bundle_read(bundle_t *bundle, const char *path, work_arena_t *arena,
    work_error_t *error)
{
    return work_yaml_read(bundle_keys, bundle, path, arena, error);
}
