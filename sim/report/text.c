
/*
 * A run as text, as BLIS prints it.
 */

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "sim/report/text.h"


static void
text_fitness(const report_fitness_t *fitness, const report_summary_t *s,
    FILE *out)
{
    size_t  i;

    fprintf(out, "=== Fitness Evaluation ===\nScore: %.6f\n",
            report_fitness_score(fitness, s));

    for (i = 0; i < REPORT_FITNESS_KEYS; i++) {
        if (fitness->is_given[i]) {
            fprintf(out, "  %s: %.6f\n", report_fitness_keys[i],
                    report_fitness_value(s, i));
        }
    }
}


/* Prints refusals of admission by class, after their sum. */
static void
text_shed(const report_summary_t *s, FILE *out)
{
    size_t  i;

    for (i = 0; i < s->nshed; i++) {
        if (s->shed[i].n > 0) {
            fprintf(out, "  Shed (%s): %" PRIu64 "\n", s->shed[i].name,
                    s->shed[i].n);
        }
    }
}


/* Prints nothing if there is no anomaly. */
static void
text_anomalies(const fleet_result_t *r, const report_summary_t *s, FILE *out)
{
    size_t            i;
    report_anomaly_t  list[REPORT_ANOMALIES];

    if (report_anomalies(s, r, list) == 0) {
        return;
    }

    fputs("=== Anomaly Counters ===\n", out);

    for (i = 0; i < REPORT_ANOMALIES; i++) {
        if (list[i].count > 0 || !list[i].unless_zero) {
            fprintf(out, "%s: %" PRIu64 "\n", list[i].label, list[i].count);
        }

        if (list[i].key != NULL
            && strcmp(list[i].key, "rejected_admission") == 0)
        {
            text_shed(s, out);
        }
    }
}


/* KV memory has one tier here, so the thrashing rate is always 0. */
static void
text_cache(const report_summary_t *s, FILE *out)
{
    if (s->preemption_rate == 0 && s->cluster.cache_hit_rate == 0) {
        return;
    }

    fprintf(out, "=== KV Cache Metrics ===\n"
                 "Preemption Rate: %.4f\n"
                 "Cache Hit Rate: %.4f\n"
                 "KV Thrashing Rate: %.4f\n",
            s->preemption_rate, s->cluster.cache_hit_rate, 0.0);
}


static void
text_time(FILE *out, const char *name, const report_dist_t *d)
{
    fprintf(out, "    %-5s mean=%.2f p99=%.2f (n=%zu)\n", name, d->mean,
            d->p99, d->count);
}


static void
text_classes(const report_run_t *run, const report_parts_t *classes,
    FILE *out)
{
    size_t                i;
    const report_part_t  *c;

    if (classes->n == 0
        || (classes->n == 1
            && (run->targets == NULL || run->targets->n == 0)))
    {
        return;
    }

    fputs("=== Per-SLO Metrics ===\n", out);

    for (i = 0; i < classes->n; i++) {
        c = &classes->list[i];
        fprintf(out, "  %s:\n", c->name);
        text_time(out, "TTFT:", &c->times[REPORT_TTFT]);
        text_time(out, "ITL:", &c->times[REPORT_ITL]);
        text_time(out, "E2E:", &c->times[REPORT_E2E]);
    }
}


static void
text_median(FILE *out, const char *name, const report_dist_t *d)
{
    fprintf(out, "    %-5s p50=%.2f p99=%.2f (n=%zu)\n", name, d->p50,
            d->p99, d->count);
}


static void
text_models(const report_summary_t *s, FILE *out)
{
    size_t                i;
    double                seconds;
    const report_part_t  *m;

    if (s->models.n == 0) {
        return;
    }

    fputs("=== Per-Model Metrics ===\n", out);
    seconds = (double) s->cluster.ended_us / 1e6;

    for (i = 0; i < s->models.n; i++) {
        m = &s->models.list[i];
        fprintf(out, "  %s:\n", m->name);
        text_median(out, "TTFT:", &m->times[REPORT_TTFT]);
        text_median(out, "E2E:", &m->times[REPORT_E2E]);
        fprintf(out, "    Throughput: %.2f req/s, %.2f tok/s\n",
                seconds > 0 ? (double) m->completed / seconds : 0,
                seconds > 0 ? (double) m->output_tokens / seconds : 0);
    }
}


static void
text_tenants(const report_summary_t *s, FILE *out)
{
    size_t  i;

    if (s->tenants.n == 0) {
        return;
    }

    fputs("=== Per-Tenant Metrics ===\n", out);

    for (i = 0; i < s->tenants.n; i++) {
        fprintf(out, "  %s: requests=%" PRIu64 ", tokens=%" PRIu64 "\n",
                s->tenants.list[i].name, s->tenants.list[i].completed,
                s->tenants.list[i].output_tokens);
    }

    fprintf(out, "  Jain Fairness Index: %.4f\n", s->jain);
}


static void
text_session_time(FILE *out, const char *name, const report_dist_t *d)
{
    if (d->count > 0) {
        fprintf(out, "  %s mean=%.2f p50=%.2f p95=%.2f p99=%.2f ms"
                     " (n=%zu)\n", name, d->mean, d->p50, d->p95, d->p99,
                d->count);
    }
}


static void
text_sessions(const report_sessions_t *s, FILE *out)
{
    if (s->n == 0) {
        return;
    }

    fprintf(out, "=== Session Metrics ===\n  Sessions: %" PRIu64 "\n", s->n);
    text_session_time(out, "TTFT cold (round 0):", &s->cold);
    text_session_time(out, "TTFT warm (round\xe2\x89\xa5""1):", &s->warm);
    text_session_time(out, "Session duration:   ", &s->duration);
}


static void
text_pool_time(FILE *out, const char *name, const report_dist_t *d)
{
    if (d->count > 0) {
        fprintf(out, "%s (us): mean=%.1f p50=%.1f p95=%.1f p99=%.1f\n", name,
                d->mean, d->p50, d->p95, d->p99);
    }
}


static void
text_pools(const report_run_t *run, const report_pools_t *p, FILE *out)
{
    if (p->split == 0) {
        return;
    }

    fprintf(out, "=== PD Metrics ===\n"
                 "Disaggregated Requests: %" PRIu64 "\n"
                 "Dropped at Decode KV: %" PRIu64 "\n"
                 "Prefill Throughput: %.4f sub-req/s\n"
                 "Decode Throughput: %.4f sub-req/s\n",
            p->transferred, p->dropped, p->prefill_rps, p->decode_rps);

    if (isinf(p->imbalance)) {
        fputs("Load Imbalance Ratio: inf (one pool idle)\n", out);

    } else {
        fprintf(out, "Load Imbalance Ratio: %.4f\n", p->imbalance);
    }

    text_pool_time(out, "Parent TTFT", &p->ttft);
    text_pool_time(out, "KV Transfer Duration", &p->transfer);

    if (run->config->pools.has_contention) {
        fprintf(out, "Peak Concurrent Transfers: %" PRIu64 "\n"
                     "Mean Transfer Queue Depth: %.4f\n",
                run->result->transfers_peak, p->mean_transfers);
    }
}


static void
text_extras(const fleet_result_t *r, FILE *out)
{
    size_t  i;

    if (r->nextras > 0) {
        fputs("=== Gateway ===\n", out);
    }

    for (i = 0; i < r->nextras; i++) {
        fprintf(out, "%s: %" PRIu64 "\n", r->extras[i].name,
                r->extras[i].value);
    }
}


void
report_text_sections(const report_run_t *run, const report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out)
{
    if (fitness->n > 0) {
        text_fitness(fitness, s, out);
    }

    text_anomalies(run->result, s, out);
    text_extras(run->result, out);
    text_cache(s, out);
    text_classes(run, &s->classes, out);
    text_models(s, out);
    text_tenants(s, out);
    text_sessions(&s->sessions, out);
    text_pools(run, &s->pools, out);

    if (decided != NULL) {
        report_decided_text(decided, out);
    }
}


static void
text_block(report_metrics_t *m, FILE *out)
{
    report_json_t  json;

    fputs("=== Simulation Metrics ===\n", out);
    report_json_init(&json, out, 2);
    report_json_object(&json, NULL);
    report_metrics_json(m, &json, NULL, NULL);
    report_json_end(&json);
    putc('\n', out);
}


int
report_text(const report_run_t *run, report_summary_t *s,
    const report_fitness_t *fitness, const report_decided_t *decided,
    FILE *out)
{
    int               rc;
    uint32_t          i;
    report_metrics_t  m;

    for (i = 0; run->result->nreplicas > 1 && i < run->result->nreplicas;
         i++)
    {
        rc = report_instance(run, i, &m);

        if (rc == 0) {
            text_block(&m, out);
        }

        report_metrics_done(&m);

        if (rc != 0) {
            return -1;
        }
    }

    text_block(&s->cluster, out);
    report_text_sections(run, s, fitness, decided, out);

    return 0;
}
