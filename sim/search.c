
/*
 * search: the settings that serve a workload as promised.
 *
 *   --replicas MIN-MAX   the least number of replicas that reaches --goodput
 *                        for each class.  Each round tries four numbers that
 *                        cut the range into equal parts, and continues with the
 *                        part in which the answer must be.  This assumes
 *                        that more replicas serve better.
 *   --weights NAME,...   the best weights of scorers: some at random, then,
 *                        from the best on, each weight doubled and halved for
 *                        as long as that helps.
 *
 * The tries depend only on the options and the seed, not on the number of
 * cores, so the answer is the same everywhere.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/commands.h"
#include "sim/fleet/policy/scorers.h"
#include "sim/report/figure/json.h"
#include "sim/search_inner.h"
#include "sim/simulate.h"


static const option_t  search_table[] = {
    { .name = "replicas", .kind = OPTION_STRING, .metavar = "MIN-MAX",
      .offset = offsetof(search_options_t, replicas),
      .help = "find the least number of replicas" },
    { .name = "weights", .kind = OPTION_STRING, .metavar = "SCORER,...",
      .offset = offsetof(search_options_t, weights),
      .help = "find the best weights of these scorers" },
    { .name = "goodput", .kind = OPTION_STRING,
      .metavar = "PERCENT | CLASS=PERCENT,...",
      .offset = offsetof(search_options_t, goodput), .value = "99",
      .help = "goodput required of each class with a target" },
    { .name = "fitness-weights", .kind = OPTION_STRING,
      .metavar = "KEY:WEIGHT,...",
      .offset = offsetof(search_options_t, fitness),
      .help = "with --weights: what to maximize, instead of goodput" },
    { .name = "tries", .kind = OPTION_INT, .value = "32",
      .offset = offsetof(search_options_t, tries), .min = 1, .max = 256,
      .help = "random sets of weights to try" },
    { .name = "jobs", .kind = OPTION_INT, .value = "0",
      .offset = offsetof(search_options_t, jobs), .min = 0, .max = 256,
      .help = "simulations run in parallel; 0: one for each core" },
    { .name = "json", .kind = OPTION_FLAG,
      .offset = offsetof(search_options_t, json), .help = "print JSON" },
    VARIANT_OPTIONS,
    { .name = NULL }
};

static const options_spec_t  search_spec = {
    "llmgw-sim search",
    "--replicas MIN-MAX | --weights SCORER,... [options]",
    "Finds the least number of replicas, or the best weights.",
    "exit status: 1 if nothing that was tried reaches the goodput",
    search_table
};


/* --- options */

int
search_refuse(search_t *s, const char *what, const char *text)
{
    snprintf(s->error, sizeof(s->error), what, text);

    return -1;
}


static int
search_share(const char *text, const char **end, double *share)
{
    char  *stop;

    *share = strtod(text, &stop) / 100;
    *end = stop;

    return stop != text && *share > 0 && *share <= 1 ? 0 : -1;
}


static int
search_pair(search_t *s, const char *text, const char **end)
{
    size_t       i, len;
    double       share;

    len = strcspn(text, "=,");

    if (text[len] != '=' || search_share(text + len + 1, end, &share) != 0) {
        return search_refuse(s, "--goodput: \"%s\" is not CLASS=PERCENT,"
                                " 0 to 100", text);
    }

    for (i = 0; i < s->source.targets.n; i++) {
        if (strlen(s->source.targets.list[i].slo_class) == len
            && memcmp(s->source.targets.list[i].slo_class, text, len) == 0)
        {
            s->wanted[i] = share;
            return 0;
        }
    }

    return search_refuse(s, "--goodput: \"%s\" is a class without a target;"
                            " see --slo-ttft", text);
}


static int
search_goodput(search_t *s)
{
    size_t       i;
    double       share;
    const char  *p, *end;

    p = end = s->options->goodput;

    if (strchr(p, '=') == NULL) {
        if (search_share(p, &end, &share) != 0 || *end != '\0') {
            return search_refuse(s, "--goodput: \"%s\" is not a share of 0"
                                    " to 100 %%", p);
        }

        for (i = 0; i < s->source.targets.n; i++) {
            s->wanted[i] = share;
        }

        return 0;
    }

    for ( ; ; p = end + 1) {
        if (search_pair(s, p, &end) != 0) {
            return -1;
        }

        if (*end == '\0') {
            return 0;
        }

        if (*end != ',') {
            return search_refuse(s, "--goodput: \"%s\" is not"
                                    " CLASS=PERCENT", p);
        }
    }
}


static int
search_scorer(search_t *s, const char *text, size_t len)
{
    size_t                 i;
    const llmgw_scorer_t  *scorer;

    scorer = llmgw_scorer_find(fleet_scorers, text, len);

    if (scorer == NULL) {
        return search_refuse(s, "--weights: there is no scorer \"%s\"", text);
    }

    for (i = 0; i < s->nnames; i++) {
        if (s->names[i] == scorer->name) {
            return search_refuse(s, "--weights: \"%s\" is named twice",
                                 text);
        }
    }

    s->names[s->nnames++] = scorer->name;

    return 0;
}


static int
search_scorers(search_t *s)
{
    size_t       len;
    const char  *p;

    for (p = s->options->weights; ; p += len + 1) {
        len = strcspn(p, ",");

        if (search_scorer(s, p, len) != 0) {
            return -1;
        }

        if (p[len] == '\0') {
            return 0;
        }
    }
}


static void
search_done_one(void *data)
{
    char       note[32];
    search_t  *s;

    s = data;
    snprintf(note, sizeof(note), "%zu tried", (size_t) ++s->done);
    report_progress(&s->progress, s->done, note);
}


static int
search_begin(search_t *s)
{
    char                     what[160];
    const search_options_t  *o;

    o = s->options;

    if ((o->replicas == NULL) == (o->weights == NULL)) {
        return search_refuse(s, "%s", "search takes one of --replicas and"
                                      " --weights, see --help");
    }

    if (o->fitness != NULL
        && report_fitness_parse(&s->fitness, o->fitness, what, sizeof(what))
           != 0)
    {
        return search_refuse(s, "--fitness-weights: %s", what);
    }

    if (variant_source_init(&s->source, &o->common, s->error) != 0) {
        return -1;
    }

    if (s->source.targets.n == 0
        && (o->weights == NULL || s->fitness.n == 0))
    {
        return search_refuse(s, "%s", "no class has a target; see"
                                      " --slo-ttft, --slo-itl, --slo-e2e");
    }

    if (search_goodput(s) != 0
        || (o->weights != NULL && search_scorers(s) != 0))
    {
        return -1;
    }

    s->evaluate.source = &s->source;
    s->evaluate.fitness = &s->fitness;
    s->evaluate.jobs = o->jobs > 0 ? (int) o->jobs : evaluate_cores();
    s->evaluate.done = search_done_one;
    s->evaluate.data = s;
    s->best = SIZE_MAX;
    s->tries = calloc(SEARCH_TRIES, sizeof(*s->tries));

    return s->tries == NULL ? search_refuse(s, "%s", "no memory") : 0;
}


/* --- results */

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


static void
search_text(const search_t *s)
{
    size_t  i;

    printf("workload: %s\n\n  %8s %9s %10s %10s  attained, %%\n",
           s->source.words, "replicas", "goodput %", "TTFT p99", "E2E p99");

    for (i = 0; i < s->ntries; i++) {
        search_text_try(s, &s->tries[i], i == s->best);
    }

    if (s->best == SIZE_MAX) {
        printf("\nno number of replicas in %s reaches the goodput\n",
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


static void
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


/* --- */

static int
search_run(search_t *s)
{
    int  rc;

    if (search_begin(s) != 0) {
        return sim_refuse(s->error);
    }

    rc = s->nnames > 0 ? search_weights(s) : search_replicas(s);
    report_progress_done(&s->progress);

    if (rc != 0) {
        return sim_refuse(s->error);
    }

    if (s->options->json) {
        search_json(s);

    } else {
        search_text(s);
    }

    return s->best == SIZE_MAX
           || !search_keeps(s, &s->tries[s->best].got);
}


int
search_main(int argc, char **argv)
{
    int               rc, rest;
    search_t          s;
    search_options_t  options;

    memset(&options, 0, sizeof(options));
    variant_common_init(&options.common);

    switch (options_parse(&search_spec, &options, argc, argv, 0, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    memset(&s, 0, sizeof(s));
    s.options = &options;
    rc = search_run(&s);

    free(s.tries);
    variant_source_done(&s.source);
    options_done(&search_spec, &options);

    return rc;
}
