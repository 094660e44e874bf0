
/*
 * What was tried, and the answer.
 */

#include <stdio.h>

#include "sim/report/figure/json.h"
#include "sim/search_inner.h"


static void
search_text_try(const search_t *s, const search_try_t *t, int is_best)
{
    size_t  i;

    printf("%c %8lld %9.2f %10.1f %10.1f ", is_best ? '*' : ' ',
           (long long) t->replicas, t->got.goodput * 100, t->got.ttft_p99_ms,
           t->got.e2e_p99_ms);

    for (i = 0; i < s->source.targets.n; i++) {
        printf(" %s=%.2f", s->source.targets.list[i].slo_class,
               t->got.attained[i] * 100);
    }

    if (s->fitness.n > 0) {
        printf(" fitness=%.6f", t->got.fitness);
    }

    printf("%s%s\n", *t->scorers != '\0' ? "  " : "", t->scorers);
}


void
search_text(const search_t *s)
{
    size_t  i;

    printf("workload: %s\n\n  %8s %9s %10s %10s  attained, %%\n",
           s->source.words, "replicas", "goodput %", "TTFT p99", "E2E p99");

    for (i = 0; i < s->ntries; i++) {
        search_text_try(s, &s->tries[i], i == s->best);
    }

    if (s->best == SIZE_MAX) {
        printf("\nno number of replicas in %s keeps the promise\n",
               s->options->replicas);

    } else if (s->nnames > 0) {
        printf("\nbest weights: %s\n", s->tries[s->best].scorers);

    } else {
        printf("\nleast number of replicas: %lld\n",
               (long long) s->tries[s->best].replicas);
    }
}


static void
search_json_try(const search_t *s, report_json_t *json, const char *key,
    const search_try_t *t)
{
    size_t  i;

    report_json_object(json, key);
    report_json_int(json, "replicas", t->replicas);

    if (*t->scorers != '\0') {
        report_json_string(json, "scorers", t->scorers);
    }

    report_json_int(json, "completed", t->got.completed);
    report_json_double(json, "goodput", t->got.goodput);
    report_json_object(json, "attained");

    for (i = 0; i < s->source.targets.n; i++) {
        report_json_double(json, s->source.targets.list[i].slo_class,
                           t->got.attained[i]);
    }

    report_json_end(json);

    if (s->fitness.n > 0) {
        report_json_double(json, "fitness", t->got.fitness);
    }

    report_json_double(json, "ttft_p99_ms", t->got.ttft_p99_ms);
    report_json_double(json, "e2e_p99_ms", t->got.e2e_p99_ms);
    report_json_end(json);
}


void
search_json(const search_t *s)
{
    size_t         i;
    report_json_t  json;

    report_json_init(&json, stdout, 2);
    report_json_object(&json, NULL);
    report_json_string(&json, "workload", s->source.words);

    if (s->best == SIZE_MAX) {
        report_json_null(&json, "best");

    } else {
        search_json_try(s, &json, "best", &s->tries[s->best]);
    }

    report_json_array(&json, "tried");

    for (i = 0; i < s->ntries; i++) {
        search_json_try(s, &json, NULL, &s->tries[i]);
    }

    report_json_end(&json);
    report_json_end(&json);
    putchar('\n');
}
