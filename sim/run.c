
/*
 * `llmgw-sim run`: draws a workload, and sends it to a simulated fleet.
 */

#include <string.h>

#include "sim/commands.h"
#include "sim/simulate.h"
#include "sim/work/spec/flags.h"


#define RUN_REQUESTS  100               /* BLIS's default */

typedef struct {
    sim_settings_t    settings;
    report_options_t  report;
    work_flags_t      workload;
    char             *trace_output;
    int               lazy;             /* BLIS's option; without effect */
} run_t;


#define RUN_WORK(field)  offsetof(run_t, workload.field)

static const option_t  run_table[] = {
    WORK_FLAGS_OPTIONS(RUN_WORK),
    { .name = "trace-output", .kind = OPTION_STRING, .metavar = "PREFIX",
      .offset = offsetof(run_t, trace_output),
      .help = "write the run as a trace: PREFIX.yaml, PREFIX.csv" },
    { .name = "lazy-generation", .kind = OPTION_FLAG,
      .offset = offsetof(run_t, lazy) },
    REPORT_OPTIONS(run_t, report),
    SIM_SETTINGS_OPTIONS(run_t, settings),
    { .name = NULL }
};

static const options_spec_t  run_spec = {
    "llmgw-sim run",
    "[--workload-spec FILE | --rate X | --concurrency N] [options]",
    "Simulates a workload that is drawn from a specification.",
    NULL,
    run_table
};


static int
run_generate(const run_t *run, work_t *work, work_spec_t *spec,
    work_arena_t *arena, int64_t *horizon_us, work_error_t *error)
{
    int64_t                max;
    const sim_settings_t  *s = &run->settings;

    if (work_flags_spec(&run->workload, s->seed != SIM_SEED_UNSET,
                        sim_seed(s), spec, &max, arena, error)
        != 0)
    {
        return -1;
    }

    *horizon_us = s->horizon_us != SIM_UNSET ? s->horizon_us
                                             : spec->horizon_us;

    return work_generate(work, spec, max, *horizon_us, error);
}


static int
run(const run_t *r)
{
    int           rc;
    work_t        work;
    int64_t       horizon_us;
    sim_job_t     job;
    work_spec_t   spec;
    work_error_t  error;
    work_arena_t  arena;

    memset(&spec, 0, sizeof(spec));
    memset(&arena, 0, sizeof(arena));
    work_init(&work);

    if (run_generate(r, &work, &spec, &arena, &horizon_us, &error) != 0) {
        rc = sim_refuse(error.text);

    } else {
        job = (sim_job_t) {
            .settings = &r->settings,
            .report = &r->report,
            .work = &work,
            .slos = &spec.slos,
            .trace_output = r->trace_output,
            .trace_mode = "generated",
            .only_arrived = 1,
            .horizon_us = horizon_us > 0 ? horizon_us : INT64_MAX,
            .seed = spec.seed
        };
        rc = sim_simulate(&job);
    }

    work_done(&work);
    work_arena_done(&arena);

    return rc;
}


int
run_main(int argc, char **argv)
{
    int    rc, rest;
    run_t  r;

    memset(&r, 0, sizeof(r));
    sim_settings_init(&r.settings);
    work_flags_init(&r.workload, RUN_REQUESTS);

    switch (options_parse(&run_spec, &r, argc, argv, 0, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    rc = run(&r);
    options_done(&run_spec, &r);

    return rc;
}
