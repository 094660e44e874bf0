
/*
 * The common part of `run` and `replay`: given a workload, simulates the fleet
 * and reports the run.
 */

#ifndef SIM_SIMULATE_H
#define SIM_SIMULATE_H

#include "sim/report/report.h"
#include "sim/settings.h"


typedef struct {
    const sim_settings_t    *settings;
    const report_options_t  *report;
    work_t                  *work;
    const work_yaml_list_t  *slos;          /* of work_slo_t */
    const char              *trace_output;  /* NULL: no trace is written */
    const char              *trace_mode;    /* "generated" or "replayed" */
    int                      only_arrived;  /* the trace has only requests that
                                               arrived, in order of arrival */
    int64_t                  horizon_us;    /* used if the settings have none */
    int64_t                  seed;          /* of the workload */
} sim_job_t;


/* Simulates and reports.  Returns the exit status; errors are on stderr. */
int sim_simulate(const sim_job_t *job);

/* Prints "llmgw-sim: TEXT" on stderr, and returns 2. */
int sim_refuse(const char *text);

#endif /* SIM_SIMULATE_H */
