
/*
 * llmgw-sim observe: sends a workload to a real endpoint, and writes what came
 * back as a trace that `replay` and `calibrate` read.
 */

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/options.h"
#include "sim/commands.h"
#include "sim/live/drive.h"
#include "sim/work/spec/flags.h"

#define OBSERVE_TIMEOUT_S    300
#define OBSERVE_PREWARM_IN   256        /* tokens of warming prompts */
#define OBSERVE_PREWARM_OUT  64
#define OBSERVE_PREWARM      4          /* warming requests in flight */

typedef struct {
    work_flags_t    workload;
    const char     *server_url;
    const char     *model;
    const char     *trace_header;
    const char     *trace_data;
    const char     *itl_output;
    const char     *api_format;
    const char     *api_key;
    const char     *server_type;
    int64_t         seed;
    int64_t         horizon_us;
    int64_t         max_in_flight;
    int64_t         warm_up;
    uint64_t        prewarm_ms;
    double          rtt_ms;
    int64_t         bytes_per_token;
    int             no_streaming;
    int             unconstrained;
    int             record_itl;
} observe_options_t;

#define AT(field)       offsetof(observe_options_t, field)
#define AT_WORK(field)  offsetof(observe_options_t, workload.field)

static const option_t  observe_table[] = {
    { .name = "server-url", .kind = OPTION_STRING, .offset = AT(server_url),
      .metavar = "URL", .required = 1,
      .help = "http://HOST:PORT for OpenAI's API, grpc://HOST:PORT for Infer" },
    { .name = "model", .kind = OPTION_STRING, .offset = AT(model),
      .value = "", .help = "the model, as OpenAI's API names it" },
    { .name = "trace-header", .kind = OPTION_STRING,
      .offset = AT(trace_header), .metavar = "FILE", .required = 1,
      .help = "where to write the trace's header" },
    { .name = "trace-data", .kind = OPTION_STRING, .offset = AT(trace_data),
      .metavar = "FILE", .required = 1, .help = "and its requests" },
    WORK_FLAGS_OPTIONS(AT_WORK),
    { .name = "seed", .kind = OPTION_INT, .offset = AT(seed), .value = "-1",
      .min = -1, .max = 1e15,
      .help = "seed of the workload and its prompts (42, or as its "
      "specification says)" },
    { .name = "horizon", .kind = OPTION_INT, .offset = AT(horizon_us),
      .value = "0", .min = 0, .max = 1e15,
      .help = "us after which nothing is sent; 0: as the workload says" },
    { .name = "max-concurrency", .kind = OPTION_INT,
      .offset = AT(max_in_flight), .value = "256", .min = 1, .max = 100000,
      .help = "requests in flight; others wait" },
    { .name = "warmup-requests", .kind = OPTION_INT, .offset = AT(warm_up),
      .value = "0", .min = 0, .max = WORK_MAX_REQUESTS,
      .help = "number of first requests that are not recorded" },
    { .name = "prewarm-duration", .kind = OPTION_DURATION,
      .offset = AT(prewarm_ms), .value = "0", .min = 0, .max = 86400000,
      .help = "seconds of small requests before all others" },
    { .name = "api-format", .kind = OPTION_STRING, .offset = AT(api_format),
      .value = "completions", .help = "completions or chat" },
    { .name = "api-key", .kind = OPTION_STRING, .offset = AT(api_key),
      .help = "sent as a bearer token" },
    { .name = "server-type", .kind = OPTION_STRING, .offset = AT(server_type),
      .value = "vllm", .help = "kind of server, noted in the trace" },
    { .name = "rtt-ms", .kind = OPTION_DOUBLE, .offset = AT(rtt_ms),
      .value = "0", .min = 0, .max = 1e6,
      .help = "the network's round trip, noted in the trace" },
    { .name = "bytes-per-token", .kind = OPTION_INT,
      .offset = AT(bytes_per_token), .value = "4", .min = 2, .max = 64,
      .help = "length of a token in prompts" },
    { .name = "no-streaming", .kind = OPTION_FLAG, .offset = AT(no_streaming),
      .help = "ask for answers in one piece" },
    { .name = "unconstrained-output", .kind = OPTION_FLAG,
      .offset = AT(unconstrained), .help = "do not limit answers" },
    { .name = "record-itl", .kind = OPTION_FLAG, .offset = AT(record_itl),
      .help = "record when each piece of an answer came" },
    { .name = "itl-output", .kind = OPTION_STRING, .offset = AT(itl_output),
      .metavar = "FILE", .help = "where to write it (TRACE-DATA.itl.csv)" },
    { .name = NULL }
};

static const options_spec_t  observe_spec = {
    "llmgw-sim observe",
    "--server-url URL --trace-header FILE --trace-data FILE [workload]",
    "Sends a workload to a real endpoint and records what came back.",
    "exit status: 0 all were served, 1 some were not, 2 bad input",
    observe_table
};

typedef struct {
    observe_options_t        options;
    live_options_t           live;
    const live_protocol_t   *protocol;
    work_spec_t              spec;
    work_arena_t             arena;
    work_trace_t             trace;
    work_itl_t               itl;
    work_trace_server_t      server;
    work_trace_network_t     network;
    live_driver_t            driver;
    work_error_t             error;
    char                     created_at[32];
} observe_t;


/* Checks the options together; 0, or -1 and the error. */
static int
observe_check(observe_t *o)
{
    live_options_t     *live;
    observe_options_t  *said;

    said = &o->options;
    live = &o->live;
    o->protocol = &live_openai;
    live->target = said->server_url;

    if (strncmp(said->server_url, "grpc://", 7) == 0) {
        o->protocol = &live_grpc;
        live->target = said->server_url + 7;

    } else if (strncmp(said->server_url, "http://", 7) != 0
               && strncmp(said->server_url, "https://", 8) != 0)
    {
        return work_fail(&o->error, "--server-url", 0, "it begins with "
                         "http://, https:// or grpc://");

    } else if (said->model[0] == '\0') {
        return work_fail(&o->error, "--model", 0,
                         "OpenAI's API needs a model");
    }

    live->is_chat = strcmp(said->api_format, "chat") == 0;

    if (!live->is_chat && strcmp(said->api_format, "completions") != 0) {
        return work_fail(&o->error, "--api-format", 0,
                         "\"%.40s\" is not completions or chat",
                         said->api_format);
    }

    if (said->no_streaming && said->record_itl) {
        return work_fail(&o->error, "--record-itl", 0,
                         "goes not with --no-streaming");
    }

    live->model = said->model;
    live->api_key = said->api_key;
    live->is_whole = said->no_streaming;
    live->is_unbounded = said->unconstrained;
    live->records_itl = said->record_itl;
    live->bytes_per_token = said->bytes_per_token;
    live->max_in_flight = said->max_in_flight;
    live->timeout_us = (said->workload.timeout_s > 0
                        ? said->workload.timeout_s : OBSERVE_TIMEOUT_S)
                       * INT64_C(1000000);
    live->warm_up = said->warm_up;

    return 0;
}


static int
observe_workload(observe_t *o, work_t *work)
{
    int64_t             max;
    observe_options_t  *said;

    said = &o->options;

    if (work_flags_spec(&said->workload, said->seed >= 0,
                        said->seed >= 0 ? said->seed : 42, &o->spec, &max,
                        &o->arena, &o->error) != 0)
    {
        return -1;
    }

    o->live.horizon_us = said->horizon_us > 0 ? said->horizon_us
                                              : o->spec.horizon_us;
    o->live.seed = (uint64_t) o->spec.seed;

    return work_generate(work, &o->spec, max, o->live.horizon_us, &o->error);
}


/*
 * Sends small requests that are not recorded, a few at a time.  Their seed is
 * different, so that they leave no prompt of the workload in caches.
 */
static int
observe_prewarm(observe_t *o)
{
    int              rc;
    work_t           work;
    int64_t          max;
    work_spec_t      spec;
    work_flags_t     flags;
    live_options_t   live;

    if (o->options.prewarm_ms == 0) {
        return 0;
    }

    memset(&spec, 0, sizeof(spec));
    work_flags_init(&flags, 0);
    flags.concurrency = OBSERVE_PREWARM;
    flags.prompt_tokens = OBSERVE_PREWARM_IN;
    flags.output_tokens = OBSERVE_PREWARM_OUT;
    flags.prompt_min = flags.prompt_max = OBSERVE_PREWARM_IN;
    flags.output_min = flags.output_max = OBSERVE_PREWARM_OUT;
    live = o->live;
    live.horizon_us = (int64_t) o->options.prewarm_ms * 1000;
    live.max_in_flight = OBSERVE_PREWARM;
    live.seed = ~o->live.seed;
    work_init(&work);

    rc = work_flags_spec(&flags, 1, ~o->spec.seed, &spec, &max, &o->arena,
                         &o->error);
    rc = rc == 0 ? work_generate(&work, &spec, 0, live.horizon_us, &o->error)
                 : rc;
    rc = rc == 0 ? live_drive(&o->driver, &live, o->protocol, &work, NULL,
                              NULL, &o->error) : rc;
    work_done(&work);

    return rc;
}


static void
observe_header(observe_t *o)
{
    time_t                now;
    work_trace_header_t  *h;

    h = &o->trace.header;
    now = time(NULL);
    strftime(o->created_at, sizeof(o->created_at), "%Y-%m-%dT%H:%M:%SZ",
             gmtime(&now));
    h->created_at = o->created_at;
    h->mode = "real";
    h->warm_up_requests = o->options.warm_up;
    h->has_seed = 1;
    h->workload_seed = o->spec.seed;
    h->workload_spec = o->options.workload.workload_spec;
    h->slos = o->spec.slos;
    o->server.type = o->options.server_type;
    o->server.model = o->options.model;
    h->server = &o->server;

    if (o->options.rtt_ms > 0) {
        o->network.measured_rtt_ms = o->options.rtt_ms;
        h->network = &o->network;
    }
}


static int
record_order(const void *a, const void *b)
{
    const work_record_t  *x, *y;

    x = a;
    y = b;

    return x->request_id < y->request_id ? -1 : x->request_id > y->request_id;
}


static int
observe_write(observe_t *o)
{
    char  path[4096];

    observe_header(o);

    if (o->trace.n > 0) {
        qsort(o->trace.records, o->trace.n, sizeof(o->trace.records[0]),
              record_order);
    }

    if (work_trace_write(&o->trace, o->options.trace_header,
                         o->options.trace_data, &o->error) != 0)
    {
        return -1;
    }

    if (!o->options.record_itl) {
        return 0;
    }

    if (o->options.itl_output != NULL) {
        return work_itl_write(&o->itl, o->options.itl_output, &o->error);
    }

    snprintf(path, sizeof(path), "%.4000s.itl.csv", o->options.trace_data);

    return work_itl_write(&o->itl, path, &o->error);
}


static int
observe(observe_t *o)
{
    int     rc;
    work_t  work;

    work_init(&work);
    work_trace_init(&o->trace);

    rc = observe_check(o);
    rc = rc == 0 ? observe_workload(o, &work) : rc;
    rc = rc == 0 ? observe_prewarm(o) : rc;
    rc = rc == 0 ? live_drive(&o->driver, &o->live, o->protocol, &work,
                              &o->trace, &o->itl, &o->error) : rc;
    rc = rc == 0 ? observe_write(o) : rc;

    if (rc != 0) {
        fprintf(stderr, "llmgw-sim: %s\n", o->error.text);

    } else if (o->driver.failed > 0) {
        fprintf(stderr, "llmgw-sim: %lld of %lld requests were not served, "
                "the first: %s\n", (long long) o->driver.failed,
                (long long) (o->driver.served + o->driver.failed),
                o->driver.first_error);
    }

    work_done(&work);
    work_trace_done(&o->trace);
    work_itl_done(&o->itl);
    work_arena_done(&o->arena);

    return rc != 0 ? 2 : o->driver.failed > 0;
}


int
observe_main(int argc, char **argv)
{
    int        rc, rest;
    observe_t  o;

    memset(&o, 0, sizeof(o));
    work_flags_init(&o.options.workload, 0);
    signal(SIGPIPE, SIG_IGN);

    switch (options_parse(&observe_spec, &o.options, argc, argv, 0, &rest)) {

    case OPTIONS_EXIT:
        return 0;

    case OPTIONS_EUSAGE:
        return 2;

    default:
        break;
    }

    rc = observe(&o);
    options_done(&observe_spec, &o.options);

    return rc;
}
