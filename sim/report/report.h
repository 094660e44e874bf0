
/*
 * The output of `run` and `replay`.
 *
 * Standard output has one JSON document, the cluster's metrics block; with
 * --text it has what BLIS prints, with --csv a line for each instance.
 * Everything else goes to files.  Bad option values and files that cannot be
 * written are reported before the run.
 *
 *     report_init()    options, targets of the trace's header
 *     report_begin()   files; then report->watch is for fleet_run()
 *     report_end()     prints and writes
 *     report_done()    in any case
 */

#ifndef REPORT_H
#define REPORT_H

#include "common/options.h"
#include "sim/report/decided.h"
#include "sim/report/fitness.h"
#include "sim/report/log/write.h"
#include "sim/report/progress.h"
#include "sim/report/run.h"
#include "sim/work/trace/trace.h"


#define REPORT_ERROR_BYTES  512

typedef struct {
    int          text;
    int          csv;
    const char  *report;
    const char  *metrics;
    const char  *results;
    const char  *table;
    const char  *decisions_table;
    const char  *decisions;
    int64_t      decisions_top;
    double       decisions_sample;
    const char  *slo_ttft;
    const char  *slo_itl;
    const char  *slo_e2e;
    const char  *detectors;
    const char  *saturation_config;
    const char  *saturation_report;
    const char  *saturation_window;
    const char  *fitness;
    int          summarize;
    const char  *trace_level;
    int64_t      top;
} report_options_t;

/* Rows of an option table, for the member m of the struct s. */
#define REPORT_DECISION_OPTIONS(s, m)                                         \
    { .name = "decisions-tsv", .kind = OPTION_STRING, .metavar = "FILE",      \
      .offset = offsetof(s, m.decisions_table),                               \
      .help = "write each decision, as a table" },                            \
    { .name = "decisions", .kind = OPTION_STRING, .metavar = "FILE",          \
      .offset = offsetof(s, m.decisions),                                     \
      .help = "write the decision log that explain reads" },                  \
    { .name = "decisions-top", .kind = OPTION_INT, .value = "0",              \
      .offset = offsetof(s, m.decisions_top), .min = 0, .max = 65535,         \
      .help = "best candidates listed for each decision; 0: all" },           \
    { .name = "decisions-sample", .kind = OPTION_DOUBLE, .value = "100",      \
      .metavar = "PERCENT", .offset = offsetof(s, m.decisions_sample),        \
      .min = 0, .max = 100, .help = "share of requests that are logged" },    \
    { .name = "summarize-trace", .kind = OPTION_FLAG,                         \
      .offset = offsetof(s, m.summarize),                                     \
      .help = "count decisions and regret, with --trace-level" },             \
    { .name = "trace-level", .kind = OPTION_STRING, .value = "none",          \
      .metavar = "none|decisions", .offset = offsetof(s, m.trace_level),      \
      .help = "whether decisions are recorded" },                             \
    { .name = "counterfactual-k", .kind = OPTION_INT, .value = "0",           \
      .offset = offsetof(s, m.top), .min = 0, .max = 65535,                   \
      .help = "candidates kept of each decision; 0: no regret" }

#define REPORT_OPTIONS(s, m)                                                  \
    { .name = "text", .kind = OPTION_FLAG, .offset = offsetof(s, m.text),     \
      .help = "print what BLIS prints: blocks, then sections" },              \
    { .name = "csv", .kind = OPTION_FLAG, .offset = offsetof(s, m.csv),       \
      .help = "print a line for each instance and the cluster" },             \
    { .name = "report", .kind = OPTION_STRING, .metavar = "FILE",             \
      .offset = offsetof(s, m.report),                                        \
      .help = "write all figures to FILE, as JSON" },                         \
    { .name = "metrics-path", .kind = OPTION_STRING, .metavar = "FILE",       \
      .offset = offsetof(s, m.metrics),                                       \
      .help = "write the cluster's block with each request, JSON" },          \
    { .name = "results-path", .kind = OPTION_STRING, .metavar = "FILE",       \
      .offset = offsetof(s, m.results),                                       \
      .help = "write times of each request, JSON for calibrate" },            \
    { .name = "results-tsv", .kind = OPTION_STRING, .metavar = "FILE",        \
      .offset = offsetof(s, m.table),                                         \
      .help = "write the outcome of each request, as a table" },              \
    { .name = "slo-ttft", .kind = OPTION_STRING, .metavar = "CLASS=TIME,...", \
      .offset = offsetof(s, m.slo_ttft),                                      \
      .help = "targets for goodput: first token" },                           \
    { .name = "slo-itl", .kind = OPTION_STRING, .metavar = "CLASS=TIME,...",  \
      .offset = offsetof(s, m.slo_itl),                                       \
      .help = "likewise: mean time between tokens" },                         \
    { .name = "slo-e2e", .kind = OPTION_STRING, .metavar = "CLASS=TIME,...",  \
      .offset = offsetof(s, m.slo_e2e),                                       \
      .help = "likewise: end to end" },                                       \
    { .name = "detectors", .kind = OPTION_STRING, .metavar = "NAME,...",      \
      .offset = offsetof(s, m.detectors),                                     \
      .help = "detectors: composite, threshold, backlog-drift, all" },        \
    { .name = "saturation-config", .kind = OPTION_STRING, .metavar = "FILE",  \
      .offset = offsetof(s, m.saturation_config),                             \
      .help = "settings of the detectors, YAML" },                            \
    { .name = "saturation-report", .kind = OPTION_STRING, .metavar = "FILE",  \
      .offset = offsetof(s, m.saturation_report),                             \
      .help = "write the detectors' verdict after each event, JSON" },        \
    { .name = "saturation-final-window", .kind = OPTION_STRING,               \
      .metavar = "TIME", .offset = offsetof(s, m.saturation_window),          \
      .help = "length of the last window that is judged (30s)" },             \
    { .name = "fitness-weights", .kind = OPTION_STRING,                       \
      .metavar = "KEY:WEIGHT,...", .offset = offsetof(s, m.fitness),          \
      .help = "rate the run by one number (docs/simulator.md)" },             \
    REPORT_DECISION_OPTIONS(s, m)

typedef struct {
    const report_options_t  *options;
    report_targets_t         targets;
    report_saturation_t      saturation;
    report_fitness_t         fitness;
    report_decided_t         decided;
    report_log_t             log;
    report_progress_t        progress;
    fleet_watch_t            watch;
} report_t;


/*
 * Reads goodput targets: slos (of work_slo_t; may be NULL), then the texts of
 * --slo-ttft, --slo-itl and --slo-e2e (each may be NULL), which override slos.
 * 0, or -1 and error.
 */
int report_targets_read(report_targets_t *targets,
    const work_yaml_list_t *slos, const char *const texts[REPORT_TIMES],
    char error[REPORT_ERROR_BYTES]);

/*
 * Reads the options.  slos is of work_slo_t; --slo-... override it.  0, or -1
 * and error.
 */
int report_init(report_t *report, const report_options_t *options,
    const work_yaml_list_t *slos, char error[REPORT_ERROR_BYTES]);

/* Opens the files, and sets config->top.  0, or -1 and error. */
int report_begin(report_t *report, fleet_config_t *config,
    const work_t *work, char error[REPORT_ERROR_BYTES]);

/* Prints and writes the reports.  0, or -1 and error. */
int report_end(report_t *report, const fleet_config_t *config,
    const work_t *work, const fleet_result_t *result,
    char error[REPORT_ERROR_BYTES]);

void report_done(report_t *report);

#endif /* REPORT_H */
