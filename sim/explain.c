
/*
 * explain: analyses a decision log.
 *
 * Every choice is made once more, by core's functions from the facts in the
 * log.  If one comes out otherwise, the log and the code disagree: it is shown,
 * and the exit status is 1.  Also shown: how the choices spread over replicas,
 * what was refused, and regret, the difference between the scores of the best
 * candidate and the chosen one.  It is measured twice: by the policy's own
 * ranks, where it is 0 unless the winner was not available, and by load, which
 * shows the cost of a policy's other criteria.
 *
 * A live log may have incomplete lines: a worker was killed while it wrote, or
 * the disk was full.  Each of these is reported, and the rest is explained.
 */

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "sim/commands.h"
#include "sim/report/figure/json.h"
#include "sim/report/figure/stat.h"
#include "sim/report/log/replay.h"
#include "sim/report/log/tally.h"
#include "sim/report/log/values.h"


#define EXPLAIN_REASON  48              /* of the text of a kind of refusal */


typedef struct {
    int          json;
    const char  *as;
    int64_t      show;
} explain_options_t;

typedef struct {
    const explain_options_t  *options;
    report_replay_t           replay;
    fleet_policy_t            as;       /* the policy of --as, options->as */

    uint64_t                  admitted;
    uint64_t                  rejected;
    uint64_t                  routed;
    uint64_t                  replayed;
    uint64_t                  different;
    uint64_t                  lacking;      /* cannot be replayed */
    uint64_t                  broken;       /* lines that are not JSON */
    uint64_t                  without;      /* claims that got no replica */
    uint64_t                  as_different;
    uint64_t                  as_replayed;
    int                       no_memory;

    report_tally_t            targets;
    report_tally_t            reasons;
    report_tally_t            outcomes;     /* of the claims in `without` */
    report_values_t           regret;       /* by the policy's ranks */
    report_values_t           load_regret;
    report_values_t           as_regret;
} explain_t;

#define FIELD(name)  .offset = offsetof(explain_options_t, name)

static const option_t  explain_table[] = {
    { .name = "json", .kind = OPTION_FLAG, FIELD(json),
      .help = "print JSON" },
    { .name = "as", .kind = OPTION_STRING, FIELD(as),
      .metavar = "POLICY[:SCORERS]",
      .help = "compare with what that policy would have chosen" },
    { .name = "show", .kind = OPTION_INT, FIELD(show), .value = "10",
      .min = 0, .max = 1000000,
      .help = "most differing choices to show" },
    { .name = NULL }
};

static const options_spec_t  explain_spec = {
    "llmgw-sim explain",
    "[options] FILE",
    "Explains a decision log: replays each choice, measures regret.",
    NULL,
    explain_table
};


/* --- count the log */

static void
explain_value(explain_t *x, report_values_t *values, double value)
{
    x->no_memory |= report_value(values, value) != 0;
}


/* Refusals contain numbers; the text before the first number is their kind. */
static void
explain_reason(explain_t *x, const char *reason)
{
    char    kind[EXPLAIN_REASON];
    size_t  len;

    len = strcspn(reason, ":=0123456789");
    len = len < sizeof(kind) ? len : sizeof(kind) - 1;

    while (len > 0 && reason[len - 1] == ' ') {
        len--;
    }

    snprintf(kind, sizeof(kind), "%.*s", (int) len, reason);
    x->no_memory |= report_tally(&x->reasons, kind) != 0;
}


static const report_log_candidate_t *
explain_at(const report_log_entry_t *e, uint32_t position)
{
    uint32_t  i;

    for (i = 0; i < e->n; i++) {
        if (e->candidates[i].position == position) {
            return &e->candidates[i];
        }
    }

    return NULL;
}


/* Counts from the log alone, without replay. */
static void
explain_regret(explain_t *x, const report_log_entry_t *e)
{
    double    rank, load, best_rank, least_load, of_chosen;
    uint32_t  i;

    best_rank = -INFINITY;
    least_load = INFINITY;
    rank = of_chosen = 0;

    for (i = 0; i < e->n; i++) {
        load = (double) llmgw_candidate_load(&e->facts[i]);
        best_rank = fmax(best_rank, e->candidates[i].rank);
        least_load = fmin(least_load, load);

        if (e->candidates[i].position == e->chosen) {
            rank = e->candidates[i].rank;
            of_chosen = load;
        }
    }

    explain_value(x, &x->regret, best_rank - rank);

    if (e->n == e->of) {
        explain_value(x, &x->load_regret, of_chosen - least_load);
    }
}


/* --- replay the choices */

static void
explain_show(explain_t *x, const report_log_entry_t *e, const char *path,
    uint32_t best)
{
    if (x->different > (uint64_t) x->options->show) {
        return;
    }

    if (best == LLMGW_RANK_NONE) {
        fprintf(stderr, "%s:%zu: request %s: the log has %s, core's functions"
                        " find none\n", path, e->line, e->request,
                e->candidates[e->chosen].id);
        return;
    }

    fprintf(stderr, "%s:%zu: request %s: the log has %s with %.17g, core's"
                    " functions choose %s with %.17g\n", path, e->line,
            e->request, e->candidates[e->chosen].id,
            e->candidates[e->chosen].rank, e->candidates[best].id,
            x->replay.ranks[best]);
}


static void
explain_replay(explain_t *x, const report_log_entry_t *e, const char *path)
{
    int       differs;
    uint32_t  i, best;

    switch (report_replay_own(&x->replay, e, &best)) {

    case REPORT_REPLAY_NO_MEMORY:
        x->no_memory = 1;
        return;

    case REPORT_REPLAY_LACKS:
        x->lacking++;
        return;

    case REPORT_REPLAYED:
        break;
    }

    x->replayed++;
    differs = best != e->chosen;

    for (i = 0; i < e->n; i++) {
        differs |= x->replay.ranks[i] != e->candidates[i].rank
                   && !e->candidates[i].has_failed;
    }

    if (differs) {
        x->different++;
        explain_show(x, e, path, best);
    }
}


static void
explain_as(explain_t *x, const report_log_entry_t *e)
{
    uint32_t  best;

    if (x->options->as == NULL || e->chosen == LLMGW_RANK_NONE
        || report_replay(&x->replay, e, &x->as, &best) != REPORT_REPLAYED)
    {
        return;
    }

    x->as_replayed++;
    x->as_different += best != e->chosen;
    explain_value(x, &x->as_regret, x->replay.ranks[best]
                                    - x->replay.ranks[e->chosen]);
}


static void
explain_admission(explain_t *x, const report_log_entry_t *e)
{
    x->admitted += (uint64_t) e->is_admitted;
    x->rejected += !e->is_admitted;

    if (!e->is_admitted) {
        explain_reason(x, e->reason);
    }
}


/* The id of the chosen replica, also if it was no candidate; "?" if it is not
   among the logged top candidates. */
static const char *
explain_target(const report_log_entry_t *e)
{
    const report_log_candidate_t  *chosen;

    chosen = explain_at(e, e->chosen);

    if (chosen != NULL) {
        return chosen->id;
    }

    return e->replica[0] != '\0' ? e->replica : "?";
}


static void
explain_entry(explain_t *x, const report_log_entry_t *e, const char *path)
{
    if (e->kind == REPORT_LOG_ADMISSION) {
        explain_admission(x, e);
        return;
    }

    if (e->outcome[0] != '\0') {
        x->without++;
        x->no_memory |= report_tally(&x->outcomes, e->outcome) != 0;
        return;
    }

    x->routed++;
    x->no_memory |= report_tally(&x->targets, explain_target(e)) != 0;

    if (explain_at(e, e->chosen) != NULL) {
        explain_regret(x, e);
    }

    explain_replay(x, e, path);
    explain_as(x, e);
}


static void
explain_broken(void *data, const char *path, size_t line)
{
    explain_t  *x;

    x = data;

    if (++x->broken <= (uint64_t) x->options->show) {
        fprintf(stderr, "%s:%zu: the line is cut off, or no JSON object: it is"
                        " passed over\n", path, line);
    }
}


/* --- print the answer */

static double
explain_jain(const explain_t *x)
{
    size_t   i;
    double   jain, *n;

    n = malloc((x->targets.n + 1) * sizeof(double));

    for (i = 0; n != NULL && i < x->targets.n; i++) {
        n[i] = (double) x->targets.rows[i].n;
    }

    jain = n == NULL ? 0 : report_jain(n, x->targets.n);
    free(n);

    return jain;
}


static void
explain_text_regret(const char *name, report_values_t *values)
{
    report_dist_t  d;

    report_dist(values->list, values->n, &d);

    if (d.count > 0) {
        printf("%-21s mean %.6g  p50 %.6g  p99 %.6g  max %.6g\n", name,
               d.mean, d.p50, d.p99, d.max);
    }
}


static void
explain_text_counts(const report_tally_t *counts)
{
    size_t  i;

    for (i = 0; i < counts->n; i++) {
        printf("  %-19s %" PRIu64 "\n", counts->rows[i].name,
               counts->rows[i].n);
    }
}


/* Figures that only the log of a serving gateway may have. */
static void
explain_text_live(const explain_t *x)
{
    if (x->without != 0) {
        printf("without a replica     %" PRIu64 "\n", x->without);
        explain_text_counts(&x->outcomes);
    }

    if (x->broken != 0) {
        printf("unreadable lines      %" PRIu64 "\n", x->broken);
    }
}


static void
explain_text(explain_t *x)
{
    printf("admitted              %" PRIu64 "\n"
           "rejected              %" PRIu64 "\n", x->admitted, x->rejected);
    explain_text_counts(&x->reasons);
    explain_text_live(x);

    printf("routed                %" PRIu64 "\n"
           "replayed              %" PRIu64 ", %" PRIu64 " differ\n"
           "not replayed          %" PRIu64 "\n", x->routed, x->replayed,
           x->different, x->lacking);
    printf("Jain's index          %.6f\n", explain_jain(x));

    explain_text_counts(&x->targets);
    explain_text_regret("regret", &x->regret);
    explain_text_regret("regret by load", &x->load_regret);

    if (x->options->as != NULL) {
        printf("as %s:\n  replayed            %" PRIu64 "\n"
               "  would differ        %" PRIu64 "\n", x->options->as,
               x->as_replayed, x->as_different);
        explain_text_regret("  regret", &x->as_regret);
    }
}


static void
explain_json_regret(report_json_t *json, const char *key,
    report_values_t *values)
{
    report_dist_t  d;

    report_dist(values->list, values->n, &d);

    report_json_object(json, key);
    report_json_uint(json, "count", d.count);
    report_json_double(json, "mean", d.mean);
    report_json_double(json, "p50", d.p50);
    report_json_double(json, "p99", d.p99);
    report_json_double(json, "max", d.max);
    report_json_end(json);
}


static void
explain_json_counts(report_json_t *json, const char *key,
    const report_tally_t *counts)
{
    size_t  i;

    report_json_object(json, key);

    for (i = 0; i < counts->n; i++) {
        report_json_uint(json, counts->rows[i].name, counts->rows[i].n);
    }

    report_json_end(json);
}


static void
explain_json(explain_t *x)
{
    report_json_t  json;

    report_json_init(&json, stdout, 2);
    report_json_object(&json, NULL);
    report_json_uint(&json, "admitted", x->admitted);
    report_json_uint(&json, "rejected", x->rejected);
    explain_json_counts(&json, "rejections", &x->reasons);
    report_json_uint(&json, "unreadable", x->broken);
    report_json_uint(&json, "without_replica", x->without);
    explain_json_counts(&json, "outcomes", &x->outcomes);
    report_json_uint(&json, "routed", x->routed);
    report_json_uint(&json, "replayed", x->replayed);
    report_json_uint(&json, "different", x->different);
    report_json_uint(&json, "not_replayed", x->lacking);
    explain_json_counts(&json, "targets", &x->targets);
    report_json_double(&json, "jain", explain_jain(x));
    explain_json_regret(&json, "regret", &x->regret);
    explain_json_regret(&json, "regret_by_load", &x->load_regret);

    if (x->options->as != NULL) {
        report_json_object(&json, "as");
        report_json_string(&json, "policy", x->options->as);
        report_json_uint(&json, "replayed", x->as_replayed);
        report_json_uint(&json, "different", x->as_different);
        explain_json_regret(&json, "regret", &x->as_regret);
        report_json_end(&json);
    }

    report_json_end(&json);
    putchar('\n');
}


static void
explain_say(const char *what)
{
    fprintf(stderr, "llmgw-sim: %s\n", what);
}


static int
explain_print(explain_t *x)
{
    if (x->no_memory) {
        explain_say("no memory");
        return 2;
    }

    report_tally_sort(&x->targets);
    report_tally_sort(&x->reasons);
    report_tally_sort(&x->outcomes);

    if (x->options->json) {
        explain_json(x);

    } else {
        explain_text(x);
    }

    return x->different > 0;
}


static int
explain_file(explain_t *x, const char *path)
{
    int                   rc;
    work_error_t          error;
    report_log_entry_t    entry;
    report_log_reader_t   reader;

    memset(&entry, 0, sizeof(entry));
    rc = report_log_read_open(&reader, path, &error);
    reader.broken = explain_broken;
    reader.data = x;

    if (rc == 0) {
        while ((rc = report_log_read(&reader, &entry, &error)) > 0) {
            explain_entry(x, &entry, path);
        }
    }

    report_log_read_close(&reader);
    report_log_entry_done(&entry);

    if (rc != 0) {
        explain_say(error.text);
        return 2;
    }

    return explain_print(x);
}


static int
explain_run(const explain_options_t *options, const char *path)
{
    int        rc;
    char       what[160];
    explain_t  x;

    memset(&x, 0, sizeof(x));
    x.options = options;

    if (options->as != NULL
        && report_log_policy(&x.as, options->as, what, sizeof(what)) != 0)
    {
        fprintf(stderr, "llmgw-sim: --as: %s\n", what);
        return 2;
    }

    rc = explain_file(&x, path);

    report_replay_done(&x.replay);
    report_tally_done(&x.targets);
    report_tally_done(&x.reasons);
    report_tally_done(&x.outcomes);
    free(x.regret.list);
    free(x.load_regret.list);
    free(x.as_regret.list);

    return rc;
}


int
explain_main(int argc, char **argv)
{
    int                rc, rest;
    explain_options_t  options;

    memset(&options, 0, sizeof(options));

    switch (options_parse(&explain_spec, &options, argc, argv, 1, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    if (rest != argc - 1) {
        explain_say("explain needs one FILE, see --help");
        rc = 2;

    } else {
        rc = explain_run(&options, argv[rest]);
    }

    options_done(&explain_spec, &options);

    return rc;
}
