
/*
 * Files of the detectors.
 */

#include <stddef.h>
#include <string.h>

#include "sim/report/figure/json.h"
#include "sim/report/saturation_file.h"
#include "sim/work/yaml.h"


#define SATURATION_TINY      1e-9       /* limits must be above 0 */
#define SATURATION_MAX_MS    1e12
#define SATURATION_MAX_S     1000000
#define SATURATION_MAX_N     1000000


typedef struct {
    work_yaml_t            at;
    double                 threshold_ms;
} saturation_threshold_t;

/*
 * Settings of backlog-drift.  Only the window has an effect, since this
 * detector judges events as they come.
 */
typedef struct {
    work_yaml_t            at;
    int64_t                window_size_sec;
    int64_t                min_windows;
    double                 peak_ratio;
    double                 peak_ratio_band;
    double                 confidence_ci;
    int64_t                warmup_windows;
    int64_t                tail_windows;
    double                 saturated_drain_ratio;
    double                 transient_drain_ratio;
    int                    has_window;
} saturation_drift_t;

typedef struct {
    work_yaml_t              at;
    saturation_threshold_t  *threshold;
    saturation_drift_t      *drift;
} saturation_settings_t;

#define THRESHOLD(field)  .offset = offsetof(saturation_threshold_t, field)
#define DRIFT(field)      .offset = offsetof(saturation_drift_t, field)

static const work_yaml_field_t  saturation_threshold_keys[] = {
    { .key = "threshold_ms", .kind = WORK_YAML_DOUBLE,
      THRESHOLD(threshold_ms), .min = SATURATION_TINY,
      .max = SATURATION_MAX_MS },
    { .key = NULL }
};

static const work_yaml_field_t  saturation_drift_keys[] = {
    { .key = "window_size_sec", .kind = WORK_YAML_INT,
      DRIFT(window_size_sec), .min = 1, .max = SATURATION_MAX_S,
      .present = offsetof(saturation_drift_t, has_window) },
    { .key = "min_windows", .kind = WORK_YAML_INT, DRIFT(min_windows),
      .min = 1, .max = SATURATION_MAX_N },
    { .key = "peak_ratio", .kind = WORK_YAML_DOUBLE, DRIFT(peak_ratio),
      .min = SATURATION_TINY, .max = SATURATION_MAX_MS },
    { .key = "peak_ratio_band", .kind = WORK_YAML_DOUBLE,
      DRIFT(peak_ratio_band), .min = 0, .max = SATURATION_MAX_MS },
    { .key = "confidence_ci", .kind = WORK_YAML_DOUBLE, DRIFT(confidence_ci),
      .min = SATURATION_TINY, .max = 1 - SATURATION_TINY },
    { .key = "warmup_windows", .kind = WORK_YAML_INT, DRIFT(warmup_windows),
      .min = 0, .max = SATURATION_MAX_N },
    { .key = "tail_windows", .kind = WORK_YAML_INT, DRIFT(tail_windows),
      .min = 0, .max = SATURATION_MAX_N },
    { .key = "saturated_drain_ratio", .kind = WORK_YAML_DOUBLE,
      DRIFT(saturated_drain_ratio), .min = SATURATION_TINY, .max = 1 },
    { .key = "transient_drain_ratio", .kind = WORK_YAML_DOUBLE,
      DRIFT(transient_drain_ratio), .min = SATURATION_TINY, .max = 1 },
    { .key = NULL }
};

static const work_yaml_field_t  saturation_keys[] = {
    { .key = "threshold", .kind = WORK_YAML_MAP,
      .offset = offsetof(saturation_settings_t, threshold),
      .table = saturation_threshold_keys,
      .size = sizeof(saturation_threshold_t) },
    { .key = "backlog_drift", .kind = WORK_YAML_MAP,
      .offset = offsetof(saturation_settings_t, drift),
      .table = saturation_drift_keys, .size = sizeof(saturation_drift_t) },
    { .key = NULL }
};


/*
 * Refuses settings of a detector that is not selected, which would have no
 * effect.
 */
static int
saturation_owner(const report_saturation_t *s, report_detector_t detector,
    const char *path, size_t line, work_error_t *error)
{
    if (s->detectors & (1U << detector)) {
        return 0;
    }

    return work_fail(error, path, line, "these settings need --detectors %s",
                     report_detector_names[detector]);
}


static int
saturation_apply(report_saturation_t *s, const saturation_settings_t *set,
    const char *path, work_error_t *error)
{
    const saturation_drift_t  *drift;

    if (set->threshold != NULL) {
        if (saturation_owner(s, REPORT_THRESHOLD, path,
                             set->threshold->at.line, error) != 0)
        {
            return -1;
        }

        if (set->threshold->threshold_ms > 0) {
            s->threshold_ms = set->threshold->threshold_ms;
        }
    }

    drift = set->drift;

    if (drift == NULL) {
        return 0;
    }

    if (drift->transient_drain_ratio > 0
        && drift->saturated_drain_ratio > drift->transient_drain_ratio)
    {
        return work_fail(error, path, drift->at.line,
                         "saturated_drain_ratio is above"
                         " transient_drain_ratio");
    }

    if (drift->has_window) {
        s->drift_window_us = drift->window_size_sec * 1000000;
        s->final_window_us = s->drift_window_us;
    }

    return saturation_owner(s, REPORT_BACKLOG_DRIFT, path, drift->at.line,
                            error);
}


int
report_saturation_read(report_saturation_t *s, const char *path,
    work_error_t *error)
{
    int                    rc;
    work_arena_t           arena;
    saturation_settings_t  set;

    memset(&set, 0, sizeof(set));
    memset(&arena, 0, sizeof(arena));

    rc = work_yaml_read(saturation_keys, &set, path, &arena, error);

    if (rc == 0) {
        rc = saturation_apply(s, &set, path, error);
    }

    work_arena_done(&arena);

    return rc;
}


/* --- verdicts */

static void
saturation_verdict(void *data, int64_t at_us, report_detector_t detector,
    const report_verdict_t *v)
{
    size_t          i;
    report_json_t  *json;

    json = data;

    report_json_object(json, NULL);
    report_json_int(json, "timestamp", at_us);
    report_json_string(json, "detector", report_detector_names[detector]);
    report_json_object(json, "result");
    report_json_string(json, "level", report_level_names[v->level]);
    report_json_double(json, "score", v->score);
    report_json_double(json, "confidence", v->confidence);
    report_json_object(json, "signals");

    for (i = 0; i < v->nsignals; i++) {
        report_json_double(json, v->signals[i].name, v->signals[i].value);
    }

    report_json_end(json);
    report_json_end(json);
    report_json_end(json);
}


static void
saturation_labels(const report_saturation_t *s,
    const report_level_t labels[REPORT_DETECTORS], report_json_t *json)
{
    int               i;
    static const int  order[REPORT_DETECTORS] = {
        REPORT_BACKLOG_DRIFT, REPORT_COMPOSITE, REPORT_THRESHOLD
    };

    report_json_object(json, "final");

    for (i = 0; i < REPORT_DETECTORS; i++) {
        if (s->detectors & (1U << order[i])) {
            report_json_string(json, report_detector_names[order[i]],
                               report_level_names[labels[order[i]]]);
        }
    }

    report_json_end(json);
}


int
report_saturation_write(const report_saturation_t *s,
    const report_served_t *served, size_t n, FILE *out)
{
    int                  rc;
    report_json_t        json;
    report_level_t       labels[REPORT_DETECTORS];
    report_saturation_t  traced;

    rc = report_saturation_run(s, served, n, labels);

    if (rc < 0) {
        return -1;
    }

    report_json_init(&json, out, 2);
    report_json_object(&json, NULL);

    if (rc > 0) {
        saturation_labels(s, labels, &json);
    }

    report_json_array(&json, "trace");
    traced = *s;
    traced.verdict = saturation_verdict;
    traced.data = &json;
    rc = report_saturation_run(&traced, served, n, labels);
    report_json_end(&json);
    report_json_end(&json);
    putc('\n', out);

    return rc < 0 ? -1 : 0;
}
