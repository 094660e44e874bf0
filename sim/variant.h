
/*
 * One workload, simulated many times with other settings: the common part of
 * compare and search.
 *
 * A variant is given in words, as on a command line:
 *
 *     least-loaded                        a policy
 *     weighted=queue-depth:2,load-balance:1
 *     "8 replicas: --num-instances 8 --routing-policy least-loaded"
 *
 * A variant's words follow the common ones, and override them.
 */

#ifndef SIM_VARIANT_H
#define SIM_VARIANT_H

#include "sim/report/report.h"
#include "sim/settings.h"
#include "sim/work/spec/flags.h"
#include "sim/work/trace/trace.h"


#define VARIANT_NAME_BYTES   64
#define VARIANT_ERROR_BYTES  REPORT_ERROR_BYTES

/* The struct of a command that simulates variants begins with this. */
typedef struct {
    sim_settings_t  settings;
    work_flags_t    workload;
    char           *trace_header;
    char           *trace_data;
    char           *slo_ttft;
    char           *slo_itl;
    char           *slo_e2e;
} variant_common_t;

#define VARIANT_WORK(field)  offsetof(variant_common_t, workload.field)

/* Rows for a struct that begins with a variant_common_t. */
#define VARIANT_OPTIONS                                                       \
    { .name = "trace-header", .kind = OPTION_STRING, .metavar = "FILE",       \
      .offset = offsetof(variant_common_t, trace_header),                     \
      .help = "workload from a trace: its header, YAML" },                    \
    { .name = "trace-data", .kind = OPTION_STRING, .metavar = "FILE",         \
      .offset = offsetof(variant_common_t, trace_data),                       \
      .help = "and its requests, CSV" },                                      \
    WORK_FLAGS_OPTIONS(VARIANT_WORK),                                         \
    { .name = "slo-ttft", .kind = OPTION_STRING, .metavar = "CLASS=TIME,...", \
      .offset = offsetof(variant_common_t, slo_ttft),                         \
      .help = "targets for goodput: first token" },                           \
    { .name = "slo-itl", .kind = OPTION_STRING, .metavar = "CLASS=TIME,...",  \
      .offset = offsetof(variant_common_t, slo_itl),                          \
      .help = "likewise: mean time between tokens" },                         \
    { .name = "slo-e2e", .kind = OPTION_STRING, .metavar = "CLASS=TIME,...",  \
      .offset = offsetof(variant_common_t, slo_e2e),                          \
      .help = "likewise: end to end" },                                       \
    SIM_SETTINGS_OPTIONS(variant_common_t, settings)

/* Where requests come from; it is read once. */
typedef struct {
    const variant_common_t  *common;
    work_trace_t             trace;     /* if requests come from a trace */
    work_spec_t              spec;      /* else */
    work_arena_t             arena;
    int64_t                  max_requests;
    report_targets_t         targets;
    char                     words[256];    /* description for people */
} variant_source_t;

/* The run of one variant. */
typedef struct {
    work_t                   work;
    sim_plan_t               plan;
    fleet_result_t           result;
    report_run_t             run;
} variant_run_t;


/* To be called before options_parse(). */
void variant_common_init(variant_common_t *common);

/* 0, or -1 and error. */
int variant_source_init(variant_source_t *source,
    const variant_common_t *common, char error[VARIANT_ERROR_BYTES]);
void variant_source_done(variant_source_t *source);

/*
 * Simulates a variant.  0, or -1 and error; call variant_run_done() in both
 * cases.  watch may be NULL.
 */
int variant_run(variant_run_t *v, variant_source_t *source,
    const sim_settings_t *settings, const fleet_watch_t *watch,
    char error[VARIANT_ERROR_BYTES]);
void variant_run_done(variant_run_t *v);

/*
 * Splits the words of a variant: its name into name, its options into list (at
 * most max; their bytes go to memory, which must have room for twice the text).
 * Returns how many, or -1 and error.
 */
int variant_words(const char *text, char name[VARIANT_NAME_BYTES],
    char *memory, char **list, int max, char error[VARIANT_ERROR_BYTES]);

#endif /* SIM_VARIANT_H */
