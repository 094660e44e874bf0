
/* The keys of a specification, with kinds and limits. */

#include "sim/work/spec/spec.h"

#include <stdlib.h>
#include <string.h>

#include "sim/work/file.h"
#include "sim/work/slo.h"

#define US      ((double) WORK_MAX_US)
#define TOKENS  ((double) WORK_MAX_TOKENS)
#define RATE    1e9         /* requests a second; more is a typo */

#define TEXT(key, type, field)                                               \
    { key, WORK_YAML_TEXT, offsetof(type, field), 0, 0, NULL, 0, 0 }
#define INT(key, type, field, min, max)                                      \
    { key, WORK_YAML_INT, offsetof(type, field), min, max, NULL, 0, 0 }
#define INT_SET(key, type, field, min, max, has)                             \
    { key, WORK_YAML_INT, offsetof(type, field), min, max, NULL, 0,          \
      offsetof(type, has) }
#define NUMBER(key, type, field, min, max)                                   \
    { key, WORK_YAML_DOUBLE, offsetof(type, field), min, max, NULL, 0, 0 }
#define NUMBER_SET(key, type, field, min, max, has)                          \
    { key, WORK_YAML_DOUBLE, offsetof(type, field), min, max, NULL, 0,       \
      offsetof(type, has) }
#define BOOL(key, type, field)                                               \
    { key, WORK_YAML_BOOL, offsetof(type, field), 0, 0, NULL, 0, 0 }
#define MAP(key, type, field, keys, inner)                                   \
    { key, WORK_YAML_MAP, offsetof(type, field), 0, 0, keys,                 \
      sizeof(inner), 0 }
#define LIST(key, type, field, keys, inner)                                  \
    { key, WORK_YAML_LIST, offsetof(type, field), 0, 0, keys,                \
      sizeof(inner), 0 }
/* A key that BLIS has and the simulator does not support. */
#define NONE(key)  { key, WORK_YAML_REFUSED, 0, 0, 0, NULL, 0, 0 }
#define END  { NULL, 0, 0, 0, 0, NULL, 0, 0 }

static const work_yaml_field_t  arrival_keys[] = {
    TEXT("process", work_arrival_t, process),
    NUMBER_SET("cv", work_arrival_t, cv, 1e-6, 1e6, has_cv),
    NUMBER_SET("shape", work_arrival_t, shape, 1e-9, 1e9, has_shape),
    NUMBER_SET("scale", work_arrival_t, scale, 1e-9, 1e18, has_scale),
    END
};

static const work_yaml_field_t  window_keys[] = {
    INT("start_us", work_window_t, start_us, 0, US),
    INT("end_us", work_window_t, end_us, 0, US),
    NUMBER_SET("trace_rate", work_window_t, trace_rate, 0, RATE, has_rate),
    MAP("arrival", work_window_t, arrival, arrival_keys, work_arrival_t),
    MAP("input_distribution", work_window_t, input, work_dist_keys,
        work_dist_t),
    MAP("output_distribution", work_window_t, output, work_dist_keys,
        work_dist_t),
    END
};

static const work_yaml_field_t  lifecycle_keys[] = {
    LIST("windows", work_lifecycle_t, windows, window_keys, work_window_t),
    END
};

static const work_yaml_field_t  multi_turn_keys[] = {
    INT("max_rounds", work_multi_turn_t, max_rounds, 1, 1e6),
    INT("think_time_us", work_multi_turn_t, think_time_us, 0, US),
    TEXT("context_growth", work_multi_turn_t, context_growth),
    BOOL("single_session", work_multi_turn_t, single_session),
    END
};

static const work_yaml_field_t  reasoning_keys[] = {
    MAP("reason_ratio_distribution", work_reasoning_t, reason_ratio,
        work_dist_keys, work_dist_t),
    MAP("multi_turn", work_reasoning_t, multi_turn, multi_turn_keys,
        work_multi_turn_t),
    END
};

static const work_yaml_field_t  network_keys[] = {
    NUMBER("rtt_ms", work_network_t, rtt_ms, 0, 1e9),
    NUMBER("bandwidth_mbps", work_network_t, bandwidth_mbps, 0, 1e9),
    END
};

static const work_yaml_field_t  diurnal_keys[] = {
    INT("peak_hour", work_diurnal_t, peak_hour, 0, 23),
    NUMBER("peak_to_trough_ratio", work_diurnal_t, peak_to_trough_ratio, 1,
           1e9),
    END
};

static const work_yaml_field_t  spike_keys[] = {
    INT("start_time_us", work_spike_t, start_us, 0, US),
    INT("duration_us", work_spike_t, duration_us, 1, US),
    NUMBER_SET("trace_rate", work_spike_t, trace_rate, 1e-9, RATE, has_rate),
    END
};

static const work_yaml_field_t  drain_keys[] = {
    INT("start_time_us", work_drain_t, start_us, 0, US),
    INT("ramp_duration_us", work_drain_t, ramp_us, 1, US),
    END
};

#define EACH                                                                 \
    TEXT("id", work_client_t, id),                                           \
    TEXT("tenant_id", work_client_t, tenant_id),                             \
    TEXT("slo_class", work_client_t, slo_class),                             \
    TEXT("model", work_client_t, model),                                     \
    TEXT("adapter", work_client_t, adapter),                                 \
    NUMBER("rate_fraction", work_client_t, rate_fraction, 0, 1e9),       \
    MAP("arrival", work_client_t, arrival, arrival_keys, work_arrival_t),    \
    MAP("input_distribution", work_client_t, input, work_dist_keys,          \
        work_dist_t),                                                        \
    MAP("output_distribution", work_client_t, output, work_dist_keys,        \
        work_dist_t),                                                        \
    TEXT("prefix_group", work_client_t, prefix_group),                       \
    INT("prefix_length", work_client_t, prefix_length, 0, TOKENS),           \
    BOOL("streaming", work_client_t, streaming),                             \
    MAP("network", work_client_t, network, network_keys, work_network_t),    \
    MAP("reasoning", work_client_t, reasoning, reasoning_keys,               \
        work_reasoning_t),                                                   \
    { "closed_loop", WORK_YAML_BOOL, offsetof(work_client_t, closed_loop),   \
      0, 0, NULL, 0, offsetof(work_client_t, has_closed_loop) },             \
    INT_SET("timeout", work_client_t, timeout_us, 0, US, has_timeout),       \
    INT("slo_target_us", work_client_t, slo_target_us, 0, US),               \
    NONE("multimodal")

static const work_yaml_field_t  client_keys[] = {
    EACH,
    INT("concurrency", work_client_t, concurrency, 0, WORK_MAX_POPULATION),
    INT("think_time_us", work_client_t, think_time_us, 0, US),
    MAP("lifecycle", work_client_t, lifecycle, lifecycle_keys,
        work_lifecycle_t),
    END
};

/* A cohort's keys begin with those of its members. */
static const work_yaml_field_t  cohort_keys[] = {
    EACH,
    INT("population", work_cohort_t, population, 1, WORK_MAX_POPULATION),
    TEXT("prefix_sharing", work_cohort_t, prefix_sharing),
    MAP("diurnal", work_cohort_t, diurnal, diurnal_keys, work_diurnal_t),
    MAP("spike", work_cohort_t, spike, spike_keys, work_spike_t),
    MAP("drain", work_cohort_t, drain, drain_keys, work_drain_t),
    END
};

static const work_yaml_field_t  spec_keys[] = {
    TEXT("version", work_spec_t, version),
    INT("seed", work_spec_t, seed, 0, 0),
    TEXT("category", work_spec_t, category),
    NUMBER("aggregate_rate", work_spec_t, aggregate_rate, 0, RATE),
    INT("num_requests", work_spec_t, num_requests, 0, WORK_MAX_REQUESTS),
    INT("horizon", work_spec_t, horizon_us, 0, US),
    LIST("clients", work_spec_t, clients, client_keys, work_client_t),
    LIST("cohorts", work_spec_t, cohorts, cohort_keys, work_cohort_t),
    { "goodput_slo_targets", WORK_YAML_NAMED, offsetof(work_spec_t, slos),
      0, 0, work_slo_keys, sizeof(work_slo_t), 0 },
    NONE("servegen_data"),
    NONE("inference_perf"),
    END
};


int
work_spec_parse(work_spec_t *spec, const char *file, const char *bytes,
    size_t len, work_arena_t *arena, work_error_t *error)
{
    spec->file = work_arena_text(arena, file, strlen(file));

    if (work_yaml_parse(spec_keys, spec, file, bytes, len, arena, error) != 0)
    {
        return -1;
    }

    return work_spec_check(spec, error);
}


int
work_spec_read(work_spec_t *spec, const char *path, work_arena_t *arena,
    work_error_t *error)
{
    int      rc;
    char    *bytes;
    size_t   len;

    bytes = work_file_read(path, &len, error);

    if (bytes == NULL) {
        return -1;
    }

    rc = work_spec_parse(spec, path, bytes, len, arena, error);
    free(bytes);

    return rc;
}
