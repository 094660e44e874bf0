
/*
 * llmgw-sim calibrate: compares a simulation with an observed trace, and fits
 * coefficients of the linear latency model to the trace.
 */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/options.h"
#include "sim/commands.h"
#include "sim/live/compare.h"
#include "sim/live/fit.h"

#define HEADER  -1      /* use what the trace's header has */

typedef struct {
    const char     *trace_header;
    const char     *trace_data;
    const char     *sim_results;
    const char     *report;
    const char     *itl_data;
    const char     *sim_metrics;
    const char     *slo[REPORT_TIMES];
    int64_t         warm_up;
    int64_t         rtt_us;
    double          bandwidth_mbps;
    double          hit_rate_tolerance;
    double          ttft_threshold;
    int             fit;
} calibrate_options_t;

#define AT(field)  offsetof(calibrate_options_t, field)

static const option_t  calibrate_table[] = {
    { .name = "trace-header", .kind = OPTION_STRING,
      .offset = AT(trace_header), .metavar = "FILE", .required = 1,
      .help = "the observed trace: its header" },
    { .name = "trace-data", .kind = OPTION_STRING, .offset = AT(trace_data),
      .metavar = "FILE", .required = 1, .help = "and its requests" },
    { .name = "sim-results", .kind = OPTION_STRING, .offset = AT(sim_results),
      .metavar = "FILE", .help = "what \"replay --results-path\" wrote" },
    { .name = "report", .kind = OPTION_STRING, .offset = AT(report),
      .metavar = "FILE", .help = "where the comparison goes (stdout)" },
    { .name = "itl-data", .kind = OPTION_STRING, .offset = AT(itl_data),
      .metavar = "FILE", .help = "when each token came, as \"observe\" wrote" },
    { .name = "warmup-requests", .kind = OPTION_INT, .offset = AT(warm_up),
      .value = "-1", .min = HEADER, .max = WORK_MAX_REQUESTS,
      .help = "first requests to leave out; -1: as the header says" },
    { .name = "network-rtt-us", .kind = OPTION_INT, .offset = AT(rtt_us),
      .value = "-1", .min = HEADER, .max = 1e12,
      .help = "added to simulated times; -1: as the header says" },
    { .name = "network-bandwidth-mbps", .kind = OPTION_DOUBLE,
      .offset = AT(bandwidth_mbps), .value = "0", .min = 0, .max = 1e9,
      .help = "bandwidth: adds the time for 4 bytes a token; 0: none" },
    { .name = "slo-ttft", .kind = OPTION_STRING,
      .offset = AT(slo[REPORT_TTFT]), .metavar = "CLASS=TIME,...",
      .help = "targets of goodput: first token" },
    { .name = "slo-itl", .kind = OPTION_STRING, .offset = AT(slo[REPORT_ITL]),
      .metavar = "CLASS=TIME,...", .help = "mean between tokens" },
    { .name = "slo-e2e", .kind = OPTION_STRING, .offset = AT(slo[REPORT_E2E]),
      .metavar = "CLASS=TIME,...", .help = "the whole answer" },
    { .name = "sim-metrics", .kind = OPTION_STRING, .offset = AT(sim_metrics),
      .metavar = "FILE", .help = "what \"replay --metrics-path\" wrote, for "
      "the cache's hit rate" },
    { .name = "hit-rate-tolerance-pp", .kind = OPTION_DOUBLE,
      .offset = AT(hit_rate_tolerance), .value = "5", .min = 0, .max = 100,
      .help = "accepted difference of that rate, in percentage points" },
    { .name = "ttft-mape-threshold", .kind = OPTION_DOUBLE,
      .offset = AT(ttft_threshold), .value = "0.15", .min = 0, .max = 1e9,
      .help = "accepted error of the time to the first token" },
    { .name = "fit", .kind = OPTION_FLAG, .offset = AT(fit),
      .help = "print the linear latency model that fits the trace" },
    { .name = NULL }
};

static const options_spec_t  calibrate_spec = {
    "llmgw-sim calibrate",
    "--trace-header FILE --trace-data FILE [--sim-results FILE] [--fit]",
    "Compares a simulation with an observed trace, or fits the linear latency\n"
    "model to that trace.",
    NULL,
    calibrate_table
};

typedef struct {
    calibrate_options_t   options;
    live_compare_t        compare;
    work_trace_t          trace;
    work_itl_t            itl;
    live_sims_t           sims;
    work_error_t          error;
} calibrate_t;


/* Targets of the trace's header, overridden by those of the options. */
static int
calibrate_targets(calibrate_t *c)
{
    size_t            i;
    char              wrong[200];
    work_slo_t       *slo;
    report_target_t  *target;

    static const char *const  names[REPORT_TIMES] = {
        [REPORT_TTFT] = "--slo-ttft", [REPORT_ITL] = "--slo-itl",
        [REPORT_E2E] = "--slo-e2e"
    };

    slo = c->trace.header.slos.items;

    for (i = 0; i < c->trace.header.slos.n; i++) {
        target = report_target_of(&c->compare.targets, slo[i].of.name,
                                  strlen(slo[i].of.name));

        if (target == NULL) {
            return work_fail(&c->error, c->options.trace_header,
                             slo[i].of.at.line, "more than %d classes, or a "
                             "name that is too long", REPORT_MAX_TARGETS);
        }

        target->ms[REPORT_TTFT] = slo[i].ttft_ms;
        target->ms[REPORT_ITL] = slo[i].itl_ms;
        target->ms[REPORT_E2E] = slo[i].e2e_ms;
    }

    for (i = 0; i < REPORT_TIMES; i++) {
        if (c->options.slo[i] != NULL
            && report_targets_parse(&c->compare.targets, (report_time_t) i,
                                    c->options.slo[i], wrong, sizeof(wrong))
               != 0)
        {
            return work_fail(&c->error, names[i], 0, "%s", wrong);
        }
    }

    return 0;
}


/* Takes from the header what the options leave to it. */
static void
calibrate_defaults(calibrate_t *c)
{
    const work_trace_header_t  *h;

    h = &c->trace.header;
    c->compare.warm_up = c->options.warm_up != HEADER ? c->options.warm_up
                                                      : h->warm_up_requests;
    c->compare.rtt_us = c->options.rtt_us != HEADER ? c->options.rtt_us
                        : h->network != NULL
                        ? (int64_t) (h->network->measured_rtt_ms * 1000) : 0;
    c->compare.bandwidth_mbps = c->options.bandwidth_mbps;
    c->compare.ttft_threshold = c->options.ttft_threshold;
    c->compare.hit_rate_tolerance = c->options.hit_rate_tolerance;
    c->compare.hit_rate = -1;
}


static int
calibrate_read(calibrate_t *c)
{
    if (work_trace_read(&c->trace, c->options.trace_header,
                        c->options.trace_data, &c->error) != 0)
    {
        return -1;
    }

    calibrate_defaults(c);

    if (c->options.itl_data != NULL
        && work_itl_read(&c->itl, c->options.itl_data, &c->error) != 0)
    {
        return -1;
    }

    if (c->options.sim_metrics != NULL
        && live_hit_rate_read(c->options.sim_metrics, &c->compare.hit_rate,
                              &c->error) < 0)
    {
        return -1;
    }

    return calibrate_targets(c);
}


static int
calibrate_fit(calibrate_t *c)
{
    live_fit_t  fit;

    if (live_fit(&c->trace, c->itl.n > 0 ? &c->itl : NULL, c->compare.warm_up,
                 &fit, &c->error) != 0)
    {
        return -1;
    }

    live_fit_write(&fit, stdout);
    live_fit_say(&fit, stderr);

    return 0;
}


static int
calibrate_compare(calibrate_t *c)
{
    int     rc;
    FILE   *out;

    if (live_sims_read(&c->sims, c->options.sim_results, &c->error) != 0) {
        live_sims_done(&c->sims);
        return -1;
    }

    out = c->options.report == NULL ? stdout : fopen(c->options.report, "wb");
    rc = out == NULL ? work_fail(&c->error, c->options.report, 0, "%s",
                                 strerror(errno))
         : live_compare(&c->compare, &c->trace, &c->sims,
                        c->itl.n > 0 ? &c->itl : NULL, out, stderr, &c->error);
    live_sims_done(&c->sims);

    if (out == stdout) {

        if (rc == 0) {
            fputc('\n', stdout);
        }

    } else if (out != NULL && fclose(out) != 0 && rc == 0) {
        rc = work_fail(&c->error, c->options.report, 0, "%s",
                       strerror(errno));
    }

    return rc;
}


int
calibrate_main(int argc, char **argv)
{
    int          rc, rest;
    calibrate_t  c;

    memset(&c, 0, sizeof(c));

    switch (options_parse(&calibrate_spec, &c.options, argc, argv, 0, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    if (c.options.sim_results == NULL && !c.options.fit) {
        fprintf(stderr, "llmgw-sim calibrate: --sim-results or --fit is "
                "needed\n");
        options_done(&calibrate_spec, &c.options);
        return 2;
    }

    work_trace_init(&c.trace);
    rc = calibrate_read(&c);

    if (rc == 0 && c.options.fit) {
        rc = calibrate_fit(&c);
    }

    if (rc == 0 && c.options.sim_results != NULL) {
        rc = calibrate_compare(&c);
    }

    if (rc != 0) {
        fprintf(stderr, "llmgw-sim: %s\n", c.error.text);
    }

    work_trace_done(&c.trace);
    work_itl_done(&c.itl);
    options_done(&calibrate_spec, &c.options);

    return rc == 0 ? 0 : 2;
}
