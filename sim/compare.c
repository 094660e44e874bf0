
/*
 * compare: one workload, several settings, side by side.
 *
 * Every variant gets the same requests at the same times, so the runs are
 * paired: request by request, each against the first variant.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/commands.h"
#include "sim/report/compare/compare.h"
#include "sim/report/progress.h"
#include "sim/simulate.h"
#include "sim/variant.h"


#define COMPARE_MAX    16               /* variants, as many as plots show */
#define COMPARE_WORDS  128              /* of a variant's own options */


typedef struct {
    variant_common_t  common;
    int               json;
    char             *html;
} compare_options_t;

/* A variant, from its words to its run. */
typedef struct {
    char               name[VARIANT_NAME_BYTES];
    char              *memory;
    char             **argv;
    compare_options_t  options;
    variant_run_t      run;
    int                is_parsed;
    int                is_run;
} compare_variant_t;

typedef struct {
    variant_source_t    source;
    compare_variant_t   variants[COMPARE_MAX];
    size_t              n;
    report_progress_t   progress;
    char                error[VARIANT_ERROR_BYTES];
} compare_t;

static const option_t  compare_table[] = {
    { .name = "json", .kind = OPTION_FLAG,
      .offset = offsetof(compare_options_t, json), .help = "print JSON" },
    { .name = "html", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = offsetof(compare_options_t, html),
      .help = "write a page with tables and plots" },
    VARIANT_OPTIONS,
    { .name = NULL }
};

static const options_spec_t  compare_spec = {
    "llmgw-sim compare",
    "[options] VARIANT VARIANT...",
    "Simulates one workload with several settings, and compares request by "
    "request.",
    "A VARIANT is a policy, \"least-loaded\" or"
    " \"weighted=SCORER:WEIGHT,...\", or\n"
    "\"NAME: --OPTION VALUE...\"; the first one is what others are compared"
    " with.",
    compare_table
};


/* The common words, then the variant's own. */
static int
compare_parse(compare_t *c, compare_variant_t *v, const char *text,
    int nbase, char **base)
{
    int   n, rest;

    v->memory = malloc(2 * strlen(text) + 2);
    v->argv = calloc((size_t) nbase + COMPARE_WORDS + 1, sizeof(char *));

    if (v->memory == NULL || v->argv == NULL) {
        snprintf(c->error, sizeof(c->error), "no memory");
        return -1;
    }

    memcpy(v->argv, base, (size_t) nbase * sizeof(char *));
    n = variant_words(text, v->name, v->memory, v->argv + nbase,
                      COMPARE_WORDS, c->error);

    if (n < 0) {
        return -1;
    }

    variant_common_init(&v->options.common);
    v->is_parsed = 1;
    c->error[0] = '\0';     /* the error was printed */

    return options_parse(&compare_spec, &v->options, nbase + n, v->argv, 0,
                         &rest) == OPTIONS_DONE ? 0 : -1;
}


static void
compare_progress(void *data, int64_t clock_us, size_t ended)
{
    compare_t          *c;
    compare_variant_t  *v;

    c = data;
    v = &c->variants[c->n - 1];
    report_progress(&c->progress, ended, v->name);
}


static int
compare_simulate(compare_t *c)
{
    size_t              i, n;
    fleet_watch_t       watch;
    compare_variant_t  *v;

    memset(&watch, 0, sizeof(watch));
    watch.progress = compare_progress;
    watch.data = c;

    for (i = 0, n = c->n; i < n; i++) {
        v = &c->variants[i];
        c->n = i + 1;
        v->is_run = 1;
        report_progress_init(&c->progress, "comparing", c->source.trace.n);

        if (variant_run(&v->run, &c->source, &v->options.common.settings,
                        &watch, c->error) != 0)
        {
            report_progress_done(&c->progress);
            return -1;
        }

        report_progress_done(&c->progress);
    }

    return 0;
}


static int
compare_page(compare_t *c, const report_comparison_t *comparison,
    const char *path)
{
    int    rc;
    FILE  *out;

    out = fopen(path, "w");

    if (out == NULL) {
        snprintf(c->error, sizeof(c->error), "cannot write %s: %s", path,
                 strerror(errno));
        return -1;
    }

    rc = report_comparison_html(comparison, out);

    if (rc != 0) {
        snprintf(c->error, sizeof(c->error), "no memory for %s", path);
    }

    if (ferror(out) || fclose(out) != 0) {
        snprintf(c->error, sizeof(c->error), "cannot write %s: %s", path,
                 strerror(errno));
        return -1;
    }

    return rc;
}


static int
compare_print(compare_t *c, const compare_options_t *options,
    char *const *texts)
{
    int                  rc;
    size_t               i;
    report_variant_t     variants[COMPARE_MAX];
    report_comparison_t  comparison;

    memset(variants, 0, sizeof(variants));
    comparison.workload = c->source.words;
    comparison.variants = variants;
    comparison.n = c->n;

    for (i = 0; i < c->n; i++) {
        variants[i].name = c->variants[i].name;
        variants[i].words = texts[i];
        variants[i].run = c->variants[i].run.run;
    }

    rc = report_comparison_init(&comparison, (uint64_t)
                                sim_seed(&options->common.settings));
    if (rc != 0) {
        snprintf(c->error, sizeof(c->error), "no memory");

    } else {
        if (options->json) {
            report_comparison_json(&comparison, stdout);

        } else {
            report_comparison_text(&comparison, stdout);
        }

        if (options->html != NULL) {
            rc = compare_page(c, &comparison, options->html);
        }
    }

    report_comparison_done(&comparison);

    return rc;
}


static int
compare_run(compare_t *c, const compare_options_t *options, int nbase,
    char **base, int n, char **texts)
{
    int  i;

    if (n < 1 || n > COMPARE_MAX) {
        snprintf(c->error, sizeof(c->error),
                 "compare takes 1 to %d variants, see --help", COMPARE_MAX);
        return -1;
    }

    for (i = 0; i < n; i++) {
        if (compare_parse(c, &c->variants[i], texts[i], nbase, base) != 0) {
            return -1;
        }
    }

    c->n = (size_t) n;

    return variant_source_init(&c->source, &options->common, c->error) != 0
           || compare_simulate(c) != 0
           || compare_print(c, options, texts) != 0 ? -1 : 0;
}


static void
compare_done(compare_t *c)
{
    size_t              i;
    compare_variant_t  *v;

    for (i = 0; i < COMPARE_MAX; i++) {
        v = &c->variants[i];

        if (v->is_run) {
            variant_run_done(&v->run);
        }

        if (v->is_parsed) {
            options_done(&compare_spec, &v->options);
        }

        free(v->memory);
        free(v->argv);
    }

    variant_source_done(&c->source);
    free(c);
}


int
compare_main(int argc, char **argv)
{
    int                 rc, rest;
    compare_t          *c;
    compare_options_t   options;

    memset(&options, 0, sizeof(options));
    variant_common_init(&options.common);

    switch (options_parse(&compare_spec, &options, argc, argv, 1, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    c = calloc(1, sizeof(*c));

    if (c == NULL) {
        return sim_refuse("no memory");
    }

    rc = compare_run(c, &options, rest, argv, argc - rest, argv + rest);

    if (rc != 0) {
        rc = c->error[0] != '\0' ? sim_refuse(c->error) : 2;
    }

    compare_done(c);
    options_done(&compare_spec, &options);

    return rc;
}
