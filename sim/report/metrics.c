
/*
 * The metrics block.
 *
 * First the figures are made, in the order of the keys; JSON and CSV then only
 * write them down.
 */

#include <inttypes.h>
#include <string.h>

#include "sim/report/metrics.h"
#include "sim/report/figure/number.h"


typedef struct {
    report_figure_t  *list;
    size_t            n;
} metrics_list_t;

typedef struct {
    double            mean;
    double            p90;
    double            p95;
    double            p99;
} metrics_tail_t;


static void
metrics_count(metrics_list_t *l, const char *key, int64_t count,
    int if_not_zero)
{
    report_figure_t  *f;

    f = &l->list[l->n++];
    f->key = key;
    f->kind = REPORT_COUNT;
    f->if_not_zero = if_not_zero;
    f->count = count;
    f->number = 0;
}


static void
metrics_number(metrics_list_t *l, const char *key, double number)
{
    report_figure_t  *f;

    f = &l->list[l->n++];
    f->key = key;
    f->kind = REPORT_NUMBER;
    f->if_not_zero = 0;
    f->count = 0;
    f->number = number;
}


static void
metrics_tail(report_values_t *values, metrics_tail_t *tail)
{
    report_sort(values->list, values->n);

    tail->mean = report_mean_ms(values->list, values->n);
    tail->p90 = report_percentile_ms(values->list, values->n, 90);
    tail->p95 = report_percentile_ms(values->list, values->n, 95);
    tail->p99 = report_percentile_ms(values->list, values->n, 99);
}


static void
metrics_gap_tail(const report_metrics_t *m, metrics_tail_t *tail)
{
    tail->mean = report_count_mean_ms(m->gaps, m->ngaps);
    tail->p90 = report_count_percentile_ms(m->gaps, m->ngaps, 90);
    tail->p95 = report_count_percentile_ms(m->gaps, m->ngaps, 95);
    tail->p99 = report_count_percentile_ms(m->gaps, m->ngaps, 99);
}


/* Without a completed request all of them are 0, whatever came before. */
static void
metrics_latencies(report_metrics_t *m, metrics_list_t *l)
{
    double          delay;
    metrics_tail_t  e2e, ttft, itl;

    memset(&e2e, 0, sizeof(e2e));
    memset(&ttft, 0, sizeof(ttft));
    memset(&itl, 0, sizeof(itl));
    delay = 0;

    if (m->completed > 0) {
        metrics_tail(&m->e2e, &e2e);
        metrics_tail(&m->ttft, &ttft);
        metrics_gap_tail(m, &itl);

        report_sort(m->sched_delay.list, m->sched_delay.n);
        delay = report_percentile_ms(m->sched_delay.list, m->sched_delay.n,
                                     99);
    }

    metrics_number(l, "e2e_mean_ms", e2e.mean);
    metrics_number(l, "e2e_p90_ms", e2e.p90);
    metrics_number(l, "e2e_p95_ms", e2e.p95);
    metrics_number(l, "e2e_p99_ms", e2e.p99);
    metrics_number(l, "ttft_mean_ms", ttft.mean);
    metrics_number(l, "ttft_p90_ms", ttft.p90);
    metrics_number(l, "ttft_p95_ms", ttft.p95);
    metrics_number(l, "ttft_p99_ms", ttft.p99);
    metrics_number(l, "itl_mean_ms", itl.mean);
    metrics_number(l, "itl_p90_ms", itl.p90);
    metrics_number(l, "itl_p95_ms", itl.p95);
    metrics_number(l, "itl_p99_ms", itl.p99);
    metrics_number(l, "scheduling_delay_p99_ms", delay);
}


size_t
report_metrics_figures(report_metrics_t *m,
    report_figure_t figures[REPORT_FIGURES])
{
    double          seconds;
    metrics_list_t  l;

    l.list = figures;
    l.n = 0;
    seconds = (double) m->ended_us / 1e6;

    metrics_count(&l, "completed_requests", m->completed, 0);
    metrics_count(&l, "still_queued", m->still_queued, 0);
    metrics_count(&l, "still_running", m->still_running, 0);
    metrics_count(&l, "injected_requests",
                  m->completed + m->still_queued + m->still_running
                  + m->unservable + m->timed_out, 0);
    metrics_count(&l, "total_input_tokens", m->input_tokens, 0);
    metrics_count(&l, "total_output_tokens", m->output_tokens, 0);
    metrics_number(&l, "vllm_estimated_duration_s", seconds);
    metrics_number(&l, "responses_per_sec",
                   m->completed > 0 && seconds > 0
                   ? (double) m->completed / seconds : 0);
    metrics_number(&l, "tokens_per_sec",
                   m->completed > 0 && seconds > 0
                   ? (double) m->output_tokens / seconds : 0);

    metrics_latencies(m, &l);

    metrics_count(&l, "kv_allocation_failures", m->kv_allocation_failures,
                  1);
    metrics_count(&l, "preemption_count", m->preemptions, 0);

    if (m->has_hit_rate) {
        metrics_number(&l, "cache_hit_rate", m->cache_hit_rate);
    }

    metrics_count(&l, "dropped_unservable", m->unservable, 0);
    metrics_count(&l, "length_capped_requests", m->length_capped, 0);
    metrics_count(&l, "timed_out_requests", m->timed_out, 0);

    return l.n;
}


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


/* Keys are in the order of the alphabet here, as those of a map in Go. */
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
    size_t                  i, n;
    report_figure_t         figures[REPORT_FIGURES];
    const report_figure_t  *f;

    n = report_metrics_figures(m, figures);

    report_json_string(json, "instance_id", m->id);

    for (i = 0; i < n; i++) {
        f = &figures[i];

        if (f->kind == REPORT_NUMBER) {
            report_json_double(json, f->key, f->number);

        } else if (f->count != 0 || !f->if_not_zero) {
            report_json_int(json, f->key, f->count);
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
    size_t            i, n;
    report_figure_t   figures[REPORT_FIGURES];
    report_metrics_t  none;

    memset(&none, 0, sizeof(none));
    none.has_hit_rate = 1;
    n = report_metrics_figures(&none, figures);

    fputs("instance_id", out);

    for (i = 0; i < n; i++) {
        fprintf(out, ",%s", figures[i].key);
    }

    putc('\n', out);
}


void
report_metrics_csv(report_metrics_t *m, FILE *out)
{
    char             buf[REPORT_NUMBER_BYTES];
    size_t           i, n;
    report_figure_t  figures[REPORT_FIGURES];

    n = report_metrics_figures(m, figures);

    fputs(m->id, out);

    for (i = 0; i < n; i++) {
        if (figures[i].kind == REPORT_NUMBER) {
            report_number(figures[i].number, buf);
            fprintf(out, ",%s", buf);

        } else {
            fprintf(out, ",%" PRId64, figures[i].count);
        }
    }

    putc('\n', out);
}
