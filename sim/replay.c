
/*
 * `llmgw-sim replay`: sends a trace's requests to a simulated fleet.
 */

#include <stdio.h>
#include <string.h>

#include "sim/commands.h"
#include "sim/simulate.h"


typedef struct {
    sim_settings_t    settings;
    report_options_t  report;
    char             *trace_header;
    char             *trace_data;
    char             *trace_output;
    char             *session_mode;
    char             *think_time;
    int64_t           think_time_ms;
} replay_t;


static const option_t  replay_table[] = {
    { .name = "trace-header", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = offsetof(replay_t, trace_header),
      .help = "the trace: YAML of its header", .required = 1 },
    { .name = "trace-data", .kind = OPTION_STRING, .metavar = "FILE",
      .offset = offsetof(replay_t, trace_data),
      .help = "CSV of its requests", .required = 1 },
    { .name = "trace-output", .kind = OPTION_STRING, .metavar = "PREFIX",
      .offset = offsetof(replay_t, trace_output),
      .help = "write PREFIX.yaml and PREFIX.csv with simulated times" },
    { .name = "session-mode", .kind = OPTION_STRING,
      .offset = offsetof(replay_t, session_mode), .value = "fixed",
      .metavar = "fixed|closed-loop",
      .help = "rounds start as traced, or after the previous one's end" },
    { .name = "think-time-ms", .kind = OPTION_INT,
      .offset = offsetof(replay_t, think_time_ms), .value = "0",
      .min = 0, .max = 1e9, .help = "pause between rounds of closed-loop" },
    { .name = "think-time-dist", .kind = OPTION_STRING, .metavar = "DIST",
      .offset = offsetof(replay_t, think_time),
      .help = "random pause: lognormal:mu=2,sigma=0.6,min=3s" },
    REPORT_OPTIONS(replay_t, report),
    SIM_SETTINGS_OPTIONS(replay_t, settings),
    { .name = NULL }
};

static const options_spec_t  replay_spec = {
    "llmgw-sim replay",
    "--trace-header FILE --trace-data FILE [options]",
    "Simulates the requests of a trace.",
    NULL,
    replay_table
};


static int
replay_mode(const replay_t *replay, char *think, size_t bytes,
    work_replay_options_t *options)
{
    int  is_closed;

    is_closed = strcmp(replay->session_mode, "closed-loop") == 0;

    if (!is_closed && strcmp(replay->session_mode, "fixed") != 0) {
        return sim_refuse("--session-mode is fixed or closed-loop");
    }

    if (replay->think_time != NULL && replay->think_time_ms > 0) {
        return sim_refuse("--think-time-ms and --think-time-dist exclude "
                          "each other");
    }

    if (!is_closed && (replay->think_time != NULL
                       || replay->think_time_ms > 0))
    {
        return sim_refuse("a think time needs --session-mode closed-loop");
    }

    snprintf(think, bytes, "constant:value=%lldms",
             (long long) replay->think_time_ms);
    options->mode = is_closed ? WORK_REPLAY_CLOSED_LOOP : WORK_REPLAY_FIXED;
    options->seed = (uint64_t) sim_seed(&replay->settings);
    options->think_time = replay->think_time_ms > 0 ? think
                                                    : replay->think_time;

    return 0;
}


static int
replay_simulate(const replay_t *replay, const work_trace_t *trace,
    const work_replay_options_t *options)
{
    int           rc;
    work_t        work;
    sim_job_t     job;
    work_error_t  error;

    work_init(&work);

    if (work_from_trace(&work, trace, options, &error) != 0) {
        rc = sim_refuse(error.text);

    } else {
        job = (sim_job_t) {
            .settings = &replay->settings,
            .report = &replay->report,
            .work = &work,
            .slos = &trace->header.slos,
            .trace_output = replay->trace_output,
            .trace_mode = "replayed",
            .horizon_us = work_trace_horizon(trace),
            .seed = sim_seed(&replay->settings)
        };
        rc = sim_simulate(&job);
    }

    work_done(&work);

    return rc;
}


static int
replay(const replay_t *r)
{
    int                     rc;
    char                    think[64];
    work_error_t            error;
    work_trace_t            trace;
    work_replay_options_t   options;

    rc = replay_mode(r, think, sizeof(think), &options);

    if (rc != 0) {
        return rc;
    }

    work_trace_init(&trace);

    if (work_trace_read(&trace, r->trace_header, r->trace_data, &error)
        != 0)
    {
        rc = sim_refuse(error.text);

    } else {
        options.horizon_us = r->settings.horizon_us != SIM_UNSET
                             ? r->settings.horizon_us
                             : work_trace_horizon(&trace);
        rc = replay_simulate(r, &trace, &options);
    }

    work_trace_done(&trace);

    return rc;
}


int
replay_main(int argc, char **argv)
{
    int       rc, rest;
    replay_t  r;

    memset(&r, 0, sizeof(r));
    sim_settings_init(&r.settings);

    switch (options_parse(&replay_spec, &r, argc, argv, 0, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    rc = replay(&r);
    options_done(&replay_spec, &r);

    return rc;
}
