
/*
 * The metrics block.
 *
 * Its figures are a table in the order of BLIS's keys, from which JSON and CSV
 * are written; figures that are computed from counters are made before.
 */

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "sim/report/metrics.h"
#include "sim/report/figure/number.h"


typedef enum {
    METRICS_COUNT = 0,          /* int64_t */
    METRICS_NUMBER              /* double */
} metrics_kind_t;

typedef struct {
    const char      *key;
    metrics_kind_t   kind;
    size_t           offset;            /* in report_metrics_t */
    int              unless_zero;       /* JSON omits it if it is 0 */
    size_t           if_set;            /* offset of an int; JSON omits the
                                           figure if that is 0; 0: always
                                           written */
} metrics_figure_t;

#define AT(field)           offsetof(report_metrics_t, field)
#define COUNT(key, field)   { key, METRICS_COUNT, AT(field), 0, 0 }
#define NUMBER(key, field)  { key, METRICS_NUMBER, AT(field), 0, 0 }

#define TAIL(prefix, field)                                                   \
    NUMBER(prefix "_mean_ms", made.field.mean),                               \
    NUMBER(prefix "_p90_ms", made.field.p90),                                 \
    NUMBER(prefix "_p95_ms", made.field.p95),                                 \
    NUMBER(prefix "_p99_ms", made.field.p99)

static const metrics_figure_t  metrics_figures[] = {
    COUNT("completed_requests", completed),
    COUNT("still_queued", still_queued),
    COUNT("still_running", still_running),
    COUNT("injected_requests", made.injected),
    COUNT("total_input_tokens", input_tokens),
    COUNT("total_output_tokens", output_tokens),
    NUMBER("vllm_estimated_duration_s", made.seconds),
    NUMBER("responses_per_sec", made.responses_per_s),
    NUMBER("tokens_per_sec", made.tokens_per_s),
    TAIL("e2e", e2e),
    TAIL("ttft", ttft),
    TAIL("itl", itl),
    NUMBER("scheduling_delay_p99_ms", made.sched_delay_p99_ms),
    { "kv_allocation_failures", METRICS_COUNT, AT(kv_allocation_failures), 1,
      0 },
    COUNT("preemption_count", preemptions),
    { "cache_hit_rate", METRICS_NUMBER, AT(cache_hit_rate), 0,
      AT(has_hit_rate) },
    COUNT("dropped_unservable", unservable),
    COUNT("length_capped_requests", length_capped),
    COUNT("timed_out_requests", timed_out)
};

#define METRICS_FIGURES  (sizeof(metrics_figures) / sizeof(metrics_figures[0]))


static int64_t
metrics_count(const report_metrics_t *m, size_t offset)
{
    return *(const int64_t *) (const void *) ((const char *) m + offset);
}


static double
metrics_number(const report_metrics_t *m, size_t offset)
{
    return *(const double *) (const void *) ((const char *) m + offset);
}


static int
metrics_is_shown(const report_metrics_t *m, const metrics_figure_t *f)
{
    return (!f->unless_zero || metrics_count(m, f->offset) != 0)
           && (f->if_set == 0
               || *(const int *) (const void *) ((const char *) m
                                                 + f->if_set));
}


/* --- computed figures */

static void
metrics_tail(report_values_t *values, report_tail_t *tail)
{
    report_sort(values->list, values->n);

    tail->mean = report_mean_ms(values->list, values->n);
    tail->p90 = report_percentile_ms(values->list, values->n, 90);
    tail->p95 = report_percentile_ms(values->list, values->n, 95);
    tail->p99 = report_percentile_ms(values->list, values->n, 99);
}


static void
metrics_gap_tail(const report_metrics_t *m, report_tail_t *tail)
{
    tail->mean = report_count_mean_ms(m->gaps, m->ngaps);
    tail->p90 = report_count_percentile_ms(m->gaps, m->ngaps, 90);
    tail->p95 = report_count_percentile_ms(m->gaps, m->ngaps, 95);
    tail->p99 = report_count_percentile_ms(m->gaps, m->ngaps, 99);
}


/* If no request completed, all times are 0, whatever was measured. */
static void
metrics_make(report_metrics_t *m)
{
    report_made_t  *made = &m->made;

    memset(made, 0, sizeof(*made));
    made->seconds = (double) m->ended_us / 1e6;
    made->injected = m->completed + m->still_queued + m->still_running
                     + m->unservable + m->timed_out;

    if (m->completed == 0) {
        return;
    }

    if (made->seconds > 0) {
        made->responses_per_s = (double) m->completed / made->seconds;
        made->tokens_per_s = (double) m->output_tokens / made->seconds;
    }

    metrics_tail(&m->e2e, &made->e2e);
    metrics_tail(&m->ttft, &made->ttft);
    metrics_gap_tail(m, &made->itl);

    report_sort(m->sched_delay.list, m->sched_delay.n);
    made->sched_delay_p99_ms = report_percentile_ms(m->sched_delay.list,
                                                    m->sched_delay.n, 99);
}


/* --- */

static double
metrics_share(int64_t part, int64_t of)
{
    return of == 0 ? 0 : (double) part / (double) of;
}


static void
metrics_not_zero(report_json_t *json, const char *key, double value)
{
    if (value != 0) {
        report_json_double(json, key, value);
    }
}


/*
 * Writes a class.  Its keys are in alphabetical order, as those of a map in Go.
 */
static void
metrics_class(report_json_t *json, const report_target_t *target,
    const report_class_t *c, double seconds)
{
    int                       i;
    const report_attained_t  *a;
    static const int          order[REPORT_TIMES] = {
        REPORT_E2E, REPORT_ITL, REPORT_TTFT
    };

    a = &c->attained;

    report_json_object(json, target->slo_class);
    report_json_int(json, "count", a->injected);
    metrics_not_zero(json, "e2e_p99_ms", c->e2e_p99_ms);
    report_json_double(json, "goodput_rps",
                       seconds > 0 ? (double) a->good / seconds : 0);
    metrics_not_zero(json, "itl_mean_ms", c->itl_mean_ms);
    report_json_double(json, "slo_attainment",
                       metrics_share(a->good, a->injected));
    report_json_object(json, "slo_attainment_by_dim");

    for (i = 0; i < REPORT_TIMES; i++) {
        if (target->ms[order[i]] > 0) {
            report_json_double(json, report_time_names[order[i]],
                               metrics_share(a->met[order[i]],
                                             a->seen[order[i]]));
        }
    }

    report_json_end(json);
    metrics_not_zero(json, "ttft_p99_ms", c->ttft_p99_ms);
    report_json_end(json);
}


static void
metrics_goodput(const report_metrics_t *m, report_json_t *json)
{
    size_t   i;
    double   seconds;
    int64_t  good, injected;

    good = 0;
    injected = 0;
    seconds = (double) m->ended_us / 1e6;

    for (i = 0; i < m->targets->n; i++) {
        good += m->classes[i].attained.good;
        injected += m->classes[i].attained.injected;
    }

    metrics_not_zero(json, "goodput_rps",
                     seconds > 0 ? (double) good / seconds : 0);
    metrics_not_zero(json, "slo_attainment", metrics_share(good, injected));

    report_json_object(json, "per_class");

    for (i = 0; i < m->targets->n; i++) {
        metrics_class(json, &m->targets->list[i], &m->classes[i], seconds);
    }

    report_json_end(json);
}


static void
metrics_saturation(const report_metrics_t *m, report_json_t *json)
{
    size_t            i;
    static const int  order[REPORT_DETECTORS] = {
        REPORT_BACKLOG_DRIFT, REPORT_COMPOSITE, REPORT_THRESHOLD
    };

    report_json_object(json, "saturation");

    for (i = 0; i < REPORT_DETECTORS; i++) {
        if (m->detectors & (1U << order[i])) {
            report_json_string(json, report_detector_names[order[i]],
                               report_level_names[m->labels[order[i]]]);
        }
    }

    report_json_end(json);
}


void
report_metrics_json(report_metrics_t *m, report_json_t *json,
    void (*requests)(report_json_t *json, void *data), void *data)
{
    size_t                   i;
    const metrics_figure_t  *f;

    metrics_make(m);
    report_json_string(json, "instance_id", m->id);

    for (i = 0; i < METRICS_FIGURES; i++) {
        f = &metrics_figures[i];

        if (!metrics_is_shown(m, f)) {
            continue;
        }

        if (f->kind == METRICS_NUMBER) {
            report_json_double(json, f->key, metrics_number(m, f->offset));

        } else {
            report_json_int(json, f->key, metrics_count(m, f->offset));
        }
    }

    if (requests != NULL) {
        requests(json, data);
    }

    if (m->detectors != 0) {
        metrics_saturation(m, json);
    }

    if (m->targets != NULL) {
        metrics_goodput(m, json);
    }
}


void
report_metrics_csv_head(FILE *out)
{
    size_t  i;

    fputs("instance_id", out);

    for (i = 0; i < METRICS_FIGURES; i++) {
        fprintf(out, ",%s", metrics_figures[i].key);
    }

    putc('\n', out);
}


void
report_metrics_csv(report_metrics_t *m, FILE *out)
{
    char                     buf[REPORT_NUMBER_BYTES];
    size_t                   i;
    const metrics_figure_t  *f;

    metrics_make(m);
    fputs(m->id, out);

    for (i = 0; i < METRICS_FIGURES; i++) {
        f = &metrics_figures[i];

        if (f->kind == METRICS_NUMBER) {
            report_number(metrics_number(m, f->offset), buf);
            fprintf(out, ",%s", buf);

        } else {
            fprintf(out, ",%" PRId64, metrics_count(m, f->offset));
        }
    }

    putc('\n', out);
}
