
/*
 * The common part of `run` and `replay`, once there is a workload: the fleet is
 * simulated, and the run reported.
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
    const char              *trace_mode;    /* generated, replayed */
    int                      only_arrived;  /* and in order of arrival */
    int64_t                  horizon_us;    /* where the settings have none */
    int64_t                  seed;          /* of the workload */
} sim_job_t;


/* Returns the exit status; errors are printed on stderr. */
int sim_simulate(const sim_job_t *job);

/* "llmgw-sim: TEXT" on stderr; 2. */
int sim_refuse(const char *text);

#endif /* SIM_SIMULATE_H */
