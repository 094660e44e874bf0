
/*
 * Pairing, and the comparison as text and as JSON.
 */

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare/compare.h"


/* --- pairs */

static size_t
compare_differences(const report_run_t *here, const report_run_t *there,
    report_time_t time, double *differences)
{
    size_t                  i, n, k;
    const fleet_outcome_t  *a, *b;

    n = here->result->n < there->result->n ? here->result->n
                                           : there->result->n;

    for (i = 0, k = 0; i < n; i++) {
        a = &here->result->outcomes[i];
        b = &there->result->outcomes[i];

        if (strcmp(work_at(here->work, i)->id, work_at(there->work, i)->id)
            != 0)
        {
            continue;       /* rounds of sessions may be in another order */
        }

        if (time == REPORT_TTFT && report_has_ttft(a) && report_has_ttft(b)) {
            differences[k++] = (double) (a->ttft_us - b->ttft_us) / 1e3;
        }

        if (time == REPORT_E2E && report_has_e2e(a) && report_has_e2e(b)) {
            differences[k++] = (double) (a->e2e_us - b->e2e_us) / 1e3;
        }
    }

    return k;
}


static void
compare_completed(const report_run_t *here, const report_run_t *there,
    report_against_t *against)
{
    int     a, b;
    size_t  i;

    for (i = 0; i < here->result->n && i < there->result->n; i++) {
        a = report_has_e2e(&here->result->outcomes[i]);
        b = report_has_e2e(&there->result->outcomes[i]);
        against->only_here += (uint64_t) (a && !b);
        against->only_there += (uint64_t) (b && !a);
    }
}


int
report_comparison_init(report_comparison_t *c, uint64_t seed)
{
    size_t             i, n;
    double            *differences;
    report_variant_t  *v;

    for (i = 0; i < c->n; i++) {
        v = &c->variants[i];

        if (report_summary_init(&v->summary, &v->run) != 0) {
            return -1;
        }
    }

    differences = malloc((c->variants[0].run.result->n + 1)
                         * sizeof(double));

    if (differences == NULL) {
        return -1;
    }

    for (i = 1; i < c->n; i++) {
        v = &c->variants[i];
        compare_completed(&v->run, &c->variants[0].run, &v->against);

        n = compare_differences(&v->run, &c->variants[0].run, REPORT_TTFT,
                                differences);
        if (report_pair(differences, n, seed, &v->against.ttft) != 0) {
            break;
        }

        n = compare_differences(&v->run, &c->variants[0].run, REPORT_E2E,
                                differences);
        if (report_pair(differences, n, seed, &v->against.e2e) != 0) {
            break;
        }
    }

    free(differences);

    return i == c->n ? 0 : -1;
}


void
report_comparison_done(report_comparison_t *c)
{
    size_t  i;

    for (i = 0; i < c->n; i++) {
        report_summary_done(&c->variants[i].summary);
    }
}


double
report_variant_goodput(const report_variant_t *v)
{
    size_t                   i;
    int64_t                  good, injected;
    const report_metrics_t  *m;

    good = injected = 0;
    m = &v->summary.cluster;

    for (i = 0; m->targets != NULL && i < m->targets->n; i++) {
        good += m->classes[i].attained.good;
        injected += m->classes[i].attained.injected;
    }

    return injected == 0 ? NAN : (double) good / (double) injected;
}


/* --- figures */

static double
column_completed(const report_variant_t *v)
{
    return (double) v->summary.cluster.completed;
}


static double
column_ttft_p50(const report_variant_t *v)
{
    return v->summary.ttft.p50 / 1e3;
}


static double
column_ttft_p99(const report_variant_t *v)
{
    return v->summary.ttft.p99 / 1e3;
}


static double
column_e2e_p50(const report_variant_t *v)
{
    return v->summary.e2e.p50 / 1e3;
}


static double
column_e2e_p99(const report_variant_t *v)
{
    return v->summary.e2e.p99 / 1e3;
}


static double
column_tokens_per_s(const report_variant_t *v)
{
    double  seconds;

    seconds = (double) v->summary.cluster.ended_us / 1e6;

    return seconds > 0 ? (double) v->summary.cluster.output_tokens / seconds
                       : 0;
}


static double
column_hit_rate(const report_variant_t *v)
{
    return v->summary.hit_rate_by_block;
}


static double
column_jain(const report_variant_t *v)
{
    return v->summary.jain;
}


const report_column_t  report_columns[] = {
    { NULL, "completed", "completed", 9, 0, 1, column_completed },
    { "ttft_p50_ms", "TTFT p50", "TTFT p50, ms", 9, 1, 1, column_ttft_p50 },
    { NULL, "TTFT p99", "p99", 9, 1, 1, column_ttft_p99 },
    { "e2e_p50_ms", "E2E p50", "E2E p50, ms", 10, 1, 1, column_e2e_p50 },
    { NULL, "E2E p99", "p99", 10, 1, 1, column_e2e_p99 },
    { NULL, "tokens/s", "tokens/s", 9, 1, 1, column_tokens_per_s },
    { "hit_rate_by_block", "hits %", "cache hits, %", 6, 1, 100,
      column_hit_rate },
    { "tenants_jain", NULL, "tenants, Jain", 0, 3, 1, column_jain },
    { "goodput", "good %", "goodput, %", 7, 2, 100, report_variant_goodput },
    { .value = NULL }
};


/* --- text */

static void
compare_heads(int width, FILE *out)
{
    const report_column_t  *c;

    fprintf(out, "%-*s", width, "variant");

    for (c = report_columns; c->value != NULL; c++) {
        if (c->label != NULL) {
            fprintf(out, " %*s", c->width, c->label);
        }
    }

    putc('\n', out);
}


static void
compare_row(const report_variant_t *v, int width, FILE *out)
{
    double                  value;
    const report_column_t  *c;

    fprintf(out, "%-*s", width, v->name);

    for (c = report_columns; c->value != NULL; c++) {
        value = c->value(v) * c->shown;

        if (c->label == NULL) {
            continue;
        }

        if (isnan(value)) {
            fprintf(out, " %*s", c->width, "-");

        } else {
            fprintf(out, " %*.*f", c->width, c->digits, value);
        }
    }

    putc('\n', out);
}


static void
compare_pair(const char *name, int width, const char *what,
    const report_pair_t *p, FILE *out)
{
    fprintf(out, "%-*s %-4s %8zu %11.3f %11.3f %11.3f %11.3f %8zu %8zu"
                 " %9.2g\n", width, name, what, p->n, p->mean, p->low,
            p->high, p->median, p->less, p->more, p->p);
}


void
report_comparison_text(const report_comparison_t *c, FILE *out)
{
    int                      len, width;
    size_t                   i;
    const report_variant_t  *v;

    for (i = 0, width = 8; i < c->n; i++) {
        len = (int) strlen(c->variants[i].name);
        width = len > width ? len : width;
    }

    fprintf(out, "workload: %s\n\n", c->workload);
    compare_heads(width, out);

    for (i = 0; i < c->n; i++) {
        compare_row(&c->variants[i], width, out);
    }

    if (c->n < 2) {
        return;
    }

    fprintf(out, "\nagainst %s, paired by request (ms; below 0 is"
                 " better)\n%-*s %-4s %8s %11s %11s %11s %11s %8s %8s %9s\n",
            c->variants[0].name, width, "variant", "time", "pairs", "mean",
            "2.5 %", "97.5 %", "median", "better", "worse", "p (sign)");

    for (i = 1; i < c->n; i++) {
        v = &c->variants[i];
        compare_pair(v->name, width, "TTFT", &v->against.ttft, out);
        compare_pair(v->name, width, "E2E", &v->against.e2e, out);

        if (v->against.only_here + v->against.only_there > 0) {
            fprintf(out, "%-*s completed only here %" PRIu64 ", only there %"
                         PRIu64 "\n", width, v->name, v->against.only_here,
                    v->against.only_there);
        }
    }
}


/* --- JSON */

static void
compare_json_pair(report_json_t *json, const char *key,
    const report_pair_t *p)
{
    report_json_object(json, key);
    report_json_uint(json, "pairs", p->n);
    report_json_double(json, "mean_ms", p->mean);
    report_json_double(json, "low_ms", p->low);
    report_json_double(json, "high_ms", p->high);
    report_json_double(json, "median_ms", p->median);
    report_json_uint(json, "better", p->less);
    report_json_uint(json, "worse", p->more);
    report_json_double(json, "sign_test_p", p->p);
    report_json_end(json);
}


static void
compare_json_variant(report_json_t *json, report_variant_t *v, int is_first)
{
    const report_column_t  *c;

    report_json_object(json, NULL);
    report_json_string(json, "name", v->name);
    report_json_string(json, "options", v->words);
    report_json_object(json, "cluster");
    report_metrics_json(&v->summary.cluster, json, NULL, NULL);
    report_json_end(json);

    for (c = report_columns; c->value != NULL; c++) {
        if (c->key != NULL && !isnan(c->value(v))) {
            report_json_double(json, c->key, c->value(v));
        }
    }

    if (!is_first) {
        report_json_object(json, "against_first");
        compare_json_pair(json, "ttft", &v->against.ttft);
        compare_json_pair(json, "e2e", &v->against.e2e);
        report_json_uint(json, "completed_only_here", v->against.only_here);
        report_json_uint(json, "completed_only_there",
                         v->against.only_there);
        report_json_end(json);
    }

    report_json_end(json);
}


void
report_comparison_members(const report_comparison_t *c, report_json_t *json)
{
    size_t  i;

    report_json_string(json, "workload", c->workload);
    report_json_array(json, "variants");

    for (i = 0; i < c->n; i++) {
        compare_json_variant(json, &c->variants[i], i == 0);
    }

    report_json_end(json);
}


void
report_comparison_json(const report_comparison_t *c, FILE *out)
{
    report_json_t  json;

    report_json_init(&json, out, 2);
    report_json_object(&json, NULL);
    report_comparison_members(c, &json);
    report_json_end(&json);
    putc('\n', out);
}
