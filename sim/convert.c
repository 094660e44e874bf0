
/*
 * llmgw-sim convert: nginx's access log becomes a trace.
 */

#include <stdio.h>
#include <string.h>

#include "common/options.h"
#include "sim/commands.h"
#include "sim/work/trace/trace.h"

typedef struct {
    const char  *access_log;
    const char  *trace_header;
    const char  *trace_data;
    int64_t      input_tokens;
} convert_options_t;

#define AT(field)  offsetof(convert_options_t, field)

static const option_t  convert_table[] = {
    { .name = "access-log", .kind = OPTION_STRING, .offset = AT(access_log),
      .metavar = "FILE", .required = 1,
      .help = "nginx's access log, in the JSON format of docs/logging.md" },
    { .name = "trace-header", .kind = OPTION_STRING,
      .offset = AT(trace_header), .metavar = "FILE", .required = 1,
      .help = "where to write the trace's header" },
    { .name = "trace-data", .kind = OPTION_STRING, .offset = AT(trace_data),
      .metavar = "FILE", .required = 1, .help = "and its requests" },
    { .name = "input-tokens", .kind = OPTION_INT, .offset = AT(input_tokens),
      .value = "512", .min = 0, .max = WORK_MAX_TOKENS,
      .help = "length of prompts, where the log does not give it" },
    { .name = NULL }
};

static const options_spec_t  convert_spec = {
    "llmgw-sim convert",
    "--access-log FILE --trace-header FILE --trace-data FILE",
    "Makes a trace of an access log, for replay and calibrate.",
    NULL,
    convert_table
};


static int
convert(const convert_options_t *o, work_trace_t *trace, work_error_t *error)
{
    size_t  i, skipped;

    if (work_trace_read_access_log(trace, o->access_log, &skipped, error)
        != 0)
    {
        return -1;
    }

    if (trace->n == 0) {
        return work_fail(error, o->access_log, 0, "no requests");
    }

    for (i = 0; i < trace->n; i++) {
        if (trace->records[i].input_tokens == 0) {
            trace->records[i].input_tokens = (uint32_t) o->input_tokens;
        }
    }

    if (work_trace_write(trace, o->trace_header, o->trace_data, error) != 0) {
        return -1;
    }

    fprintf(stderr, "%zu requests, %zu other lines\n", trace->n, skipped);

    return 0;
}


int
convert_main(int argc, char **argv)
{
    int                rc, rest;
    work_trace_t       trace;
    work_error_t       error;
    convert_options_t  options;

    memset(&options, 0, sizeof(options));

    switch (options_parse(&convert_spec, &options, argc, argv, 0, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    work_trace_init(&trace);
    rc = convert(&options, &trace, &error);

    if (rc != 0) {
        fprintf(stderr, "llmgw-sim: %s\n", error.text);
    }

    work_trace_done(&trace);
    options_done(&convert_spec, &options);

    return rc == 0 ? 0 : 2;
}
