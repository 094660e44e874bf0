
/*
 * Writes the output of a run: to standard output, and to files.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/report/full.h"
#include "sim/report/report.h"
#include "sim/report/requests.h"
#include "sim/report/saturation_file.h"
#include "sim/report/text.h"


/* A run, and what its files are made of. */
typedef struct {
    report_t          *report;
    report_run_t       run;
    report_summary_t   summary;
} report_told_t;

typedef int (*report_writer_t)(report_told_t *told, FILE *out);


/* --- options */

int
report_targets_read(report_targets_t *targets, const work_yaml_list_t *slos,
    const char *const texts[REPORT_TIMES], char error[REPORT_ERROR_BYTES])
{
    int                i;
    char               what[160];
    size_t             k;
    const work_slo_t  *slo;
    report_target_t   *target;

    for (k = 0; slos != NULL && k < slos->n; k++) {
        slo = &((const work_slo_t *) slos->items)[k];
        target = report_target_of(targets, slo->of.name,
                                  strlen(slo->of.name));
        if (target != NULL) {
            target->ms[REPORT_TTFT] = slo->ttft_ms;
            target->ms[REPORT_ITL] = slo->itl_ms;
            target->ms[REPORT_E2E] = slo->e2e_ms;
        }
    }

    for (i = 0; i < REPORT_TIMES; i++) {
        if (texts[i] != NULL
            && report_targets_parse(targets, (report_time_t) i, texts[i],
                                    what, sizeof(what)) != 0)
        {
            snprintf(error, REPORT_ERROR_BYTES, "--slo-%s: %s",
                     report_time_names[i], what);
            return -1;
        }
    }

    return 0;
}


static int
report_needs_detectors(const report_options_t *o, char *error)
{
    const char  *name;

    name = o->saturation_config != NULL ? "config"
           : o->saturation_report != NULL ? "report"
           : o->saturation_window != NULL ? "final-window" : NULL;

    if (name == NULL) {
        return 0;
    }

    snprintf(error, REPORT_ERROR_BYTES, "--saturation-%s needs --detectors",
             name);

    return -1;
}


static int
report_init_saturation(report_t *r, char *error)
{
    int64_t                  ns;
    const char              *accepted;
    work_error_t             wrong;
    const report_options_t  *o;

    o = r->options;
    report_saturation_init(&r->saturation);

    if (o->detectors == NULL || *o->detectors == '\0') {
        return report_needs_detectors(o, error);
    }

    if (report_saturation_select(&r->saturation, o->detectors, &accepted)
        != 0)
    {
        snprintf(error, REPORT_ERROR_BYTES, "--detectors: \"%s\" is not %s",
                 o->detectors, accepted);
        return -1;
    }

    if (o->saturation_config != NULL
        && report_saturation_read(&r->saturation, o->saturation_config,
                                  &wrong) != 0)
    {
        snprintf(error, REPORT_ERROR_BYTES, "%s", wrong.text);
        return -1;
    }

    if (o->saturation_window != NULL) {
        ns = report_duration_ns(o->saturation_window,
                                strlen(o->saturation_window));
        if (ns < 0) {
            snprintf(error, REPORT_ERROR_BYTES, "--saturation-final-window:"
                     " \"%s\" is not a time above 0, as 30s",
                     o->saturation_window);
            return -1;
        }

        r->saturation.final_window_us = ns / 1000;
    }

    return 0;
}


int
report_init(report_t *report, const report_options_t *options,
    const work_yaml_list_t *slos, char error[REPORT_ERROR_BYTES])
{
    char               what[160];
    const char *const  texts[REPORT_TIMES] = {
        options->slo_ttft, options->slo_itl, options->slo_e2e
    };

    memset(report, 0, sizeof(*report));
    report->options = options;

    if (options->fitness != NULL
        && report_fitness_parse(&report->fitness, options->fitness, what,
                                sizeof(what)) != 0)
    {
        snprintf(error, REPORT_ERROR_BYTES, "--fitness-weights: %s", what);
        return -1;
    }

    if (strcmp(options->trace_level, "none") != 0
        && strcmp(options->trace_level, "decisions") != 0)
    {
        snprintf(error, REPORT_ERROR_BYTES,
                 "--trace-level: \"%s\" is neither none nor decisions",
                 options->trace_level);
        return -1;
    }

    if (options->text && options->csv) {
        snprintf(error, REPORT_ERROR_BYTES,
                 "--text and --csv exclude each other");
        return -1;
    }

    return report_targets_read(&report->targets, slos, texts, error) != 0
           || report_init_saturation(report, error) != 0 ? -1 : 0;
}


/* --- before the run */

static int
report_cannot(const char *path, char *error)
{
    snprintf(error, REPORT_ERROR_BYTES, "cannot write %s: %s", path,
             strerror(errno));

    return -1;
}


/*
 * Checks that a file can be written.  Its content is kept; a new file is empty.
 */
static int
report_can_write(const char *path, char *error)
{
    FILE  *file;

    if (path == NULL) {
        return 0;
    }

    file = fopen(path, "a");

    return file == NULL || fclose(file) != 0 ? report_cannot(path, error)
                                             : 0;
}


static void
report_watch_progress(void *data, int64_t clock_us, size_t ended)
{
    char       note[48];
    report_t  *r;

    r = data;
    snprintf(note, sizeof(note), "at %.1f s", (double) clock_us / 1e6);
    report_progress(&r->progress, ended, note);
}


static void
report_watch_decided(void *data, const fleet_decision_t *decision)
{
    report_t  *r;

    r = data;

    if (r->decided.targets != NULL) {
        report_decided(&r->decided, decision);
    }

    if (r->log.out != NULL) {
        report_log_decided(&r->log, decision);
    }
}


static void
report_watch_chose(void *data, const fleet_chosen_t *chosen)
{
    report_log_chose(&((report_t *) data)->log, chosen);
}


static int
report_is_traced(const report_options_t *o)
{
    return strcmp(o->trace_level, "decisions") == 0
           || o->decisions_table != NULL;
}


static int
report_begin_table(report_t *r, fleet_config_t *config, char *error)
{
    const report_options_t  *o;

    o = r->options;

    if (!report_is_traced(o)) {
        return 0;
    }

    config->top = (uint32_t) o->top;
    r->watch.decided = report_watch_decided;

    if (report_decided_init(&r->decided, config->replicas) != 0) {
        snprintf(error, REPORT_ERROR_BYTES, "no memory");
        return -1;
    }

    if (o->decisions_table != NULL
        && report_decided_table(&r->decided, o->decisions_table) != 0)
    {
        return report_cannot(o->decisions_table, error);
    }

    return 0;
}


static int
report_begin_log(report_t *r, const fleet_config_t *config, char *error)
{
    const report_options_t  *o;

    o = r->options;

    if (o->decisions == NULL) {
        return 0;
    }

    r->watch.decided = report_watch_decided;
    r->watch.chose = report_watch_chose;

    return report_log_open(&r->log, o->decisions, config,
                           (uint32_t) o->decisions_top,
                           o->decisions_sample / 100) == 0
           ? 0 : report_cannot(o->decisions, error);
}


int
report_begin(report_t *report, fleet_config_t *config, const work_t *work,
    char error[REPORT_ERROR_BYTES])
{
    const report_options_t  *o;

    o = report->options;

    if (report_can_write(o->report, error) != 0
        || report_can_write(o->metrics, error) != 0
        || report_can_write(o->results, error) != 0
        || report_can_write(o->table, error) != 0
        || report_can_write(o->saturation_report, error) != 0)
    {
        return -1;
    }

    report->watch.data = report;
    report->watch.progress = report_watch_progress;
    report_progress_init(&report->progress, "simulating", work->n);

    return report_begin_table(report, config, error) != 0
           || report_begin_log(report, config, error) != 0 ? -1 : 0;
}


/* --- after the run */

static int
report_write_full(report_told_t *t, FILE *out)
{
    return report_full(&t->run, &t->summary, &t->report->fitness,
                       t->report->decided.targets != NULL
                       ? &t->report->decided : NULL, out);
}


static int
report_write_metrics(report_told_t *t, FILE *out)
{
    return report_requests_metrics(&t->run, &t->summary.cluster, out);
}


static int
report_write_results(report_told_t *t, FILE *out)
{
    return report_requests_results(&t->run, out);
}


static int
report_write_table(report_told_t *t, FILE *out)
{
    report_requests_table(&t->run, out);

    return 0;
}


static int
report_write_verdicts(report_told_t *t, FILE *out)
{
    int               rc;
    size_t            n;
    report_served_t  *served;

    served = report_run_served(&t->run, &n);

    if (served == NULL) {
        return -1;
    }

    rc = report_saturation_write(&t->report->saturation, served, n, out);
    free(served);

    return rc;
}


static int
report_file(report_told_t *t, const char *path, report_writer_t write,
    char *error)
{
    int    rc;
    FILE  *out;

    if (path == NULL) {
        return 0;
    }

    out = fopen(path, "w");

    if (out == NULL) {
        return report_cannot(path, error);
    }

    rc = write(t, out);

    if (ferror(out) || fclose(out) != 0) {
        return report_cannot(path, error);
    }

    if (rc != 0) {
        snprintf(error, REPORT_ERROR_BYTES, "no memory for %s", path);
    }

    return rc;
}


static int
report_csv(report_told_t *t, FILE *out)
{
    int               rc;
    uint32_t          i;
    report_metrics_t  m;

    report_metrics_csv_head(out);

    for (i = 0; i < t->run.result->nreplicas; i++) {
        rc = report_instance(&t->run, i, &m);

        if (rc == 0) {
            m.has_hit_rate = 1;
            report_metrics_csv(&m, out);
        }

        report_metrics_done(&m);

        if (rc != 0) {
            return -1;
        }
    }

    report_metrics_csv(&t->summary.cluster, out);

    return 0;
}


static int
report_print(report_told_t *t, FILE *out)
{
    report_json_t            json;
    const report_options_t  *o;

    o = t->report->options;

    if (o->csv) {
        return report_csv(t, out);
    }

    if (o->text) {
        return report_text(&t->run, &t->summary, &t->report->fitness,
                           o->summarize && report_is_traced(o)
                           ? &t->report->decided : NULL, out);
    }

    report_json_init(&json, out, 2);
    report_json_object(&json, NULL);
    report_metrics_json(&t->summary.cluster, &json, NULL, NULL);
    report_extras(t->run.result, &json);
    report_refused(t->run.result, &json);
    report_json_end(&json);
    putc('\n', out);

    return 0;
}


static int
report_tell(report_told_t *t, char *error)
{
    const report_options_t  *o;

    o = t->report->options;

    if (report_summary_init(&t->summary, &t->run) != 0
        || report_print(t, stdout) != 0)
    {
        snprintf(error, REPORT_ERROR_BYTES, "no memory for the report");
        return -1;
    }

    if (fflush(stdout) != 0) {
        return report_cannot("standard output", error);
    }

    if (report_decided_finish(&t->report->decided) != 0) {
        return report_cannot(o->decisions_table, error);
    }

    if (report_log_close(&t->report->log) != 0) {
        return report_cannot(o->decisions, error);
    }

    return report_file(t, o->report, report_write_full, error) != 0
           || report_file(t, o->metrics, report_write_metrics, error) != 0
           || report_file(t, o->results, report_write_results, error) != 0
           || report_file(t, o->table, report_write_table, error) != 0
           || report_file(t, o->saturation_report, report_write_verdicts,
                          error) != 0 ? -1 : 0;
}


int
report_end(report_t *report, const fleet_config_t *config,
    const work_t *work, const fleet_result_t *result,
    char error[REPORT_ERROR_BYTES])
{
    int            rc;
    report_told_t  told;

    report_progress_done(&report->progress);

    memset(&told, 0, sizeof(told));
    told.report = report;
    told.run.config = config;
    told.run.work = work;
    told.run.result = result;
    told.run.targets = report->targets.n > 0 ? &report->targets : NULL;
    told.run.saturation = report->saturation.detectors != 0
                          ? &report->saturation : NULL;

    rc = report_tell(&told, error);
    report_summary_done(&told.summary);

    return rc;
}


void
report_done(report_t *report)
{
    report_progress_done(&report->progress);
    report_decided_done(&report->decided);
    report_log_close(&report->log);
}
