
/*
 * llmgw-client bench: the command line and the steps of a run.
 */

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/bench.h"
#include "client/bench_inner.h"
#include "common/options.h"
#include "common/os/descriptors.h"


/* Enough for "prompt 123456789", the part that differs between prompts. */
#define BENCH_PROMPT_BYTES_MIN  16
#define BENCH_PROMPTS_MAX       1000000000

/*
 * Limits that catch typing errors: a slot takes some 150 bytes of this process.
 */
#define BENCH_CONNECTIONS_MAX   20000
#define BENCH_STREAMS_MAX       100000
#define BENCH_SLOTS_MAX         1000000
#define BENCH_TIME_MAX_MS       86400000

#define FIELD(name)  offsetof(bench_options_t, name)

static const option_t  bench_table[] = {

    { "gateway", OPTION_ADDRESS, FIELD(gateway), NULL, NULL,
      "what to measure: nginx, or another", 0, 0, 1 },

    { "method", OPTION_STRING, FIELD(method), "infer", "NAME",
      "infer, or generate for a replica",
      0, 0, 0 },

    { "openai", OPTION_FLAG, FIELD(is_openai), NULL, NULL,
      "chat completions over HTTP/1.1, streamed", 0, 0, 0 },

    { "model", OPTION_STRING, FIELD(model), "sim", "NAME",
      "the model to ask for (openai)", 0, 0, 0 },

    { "any-text", OPTION_FLAG, FIELD(is_any_text), NULL, NULL,
      "do not compare tokens with the simulated ones", 0, 0, 0 },

    { "connections", OPTION_INT, FIELD(connections), "1", NULL,
      "number of connections", 1, BENCH_CONNECTIONS_MAX, 0 },

    { "streams", OPTION_INT, FIELD(streams), "1", NULL,
      "concurrent streams on each of them", 1, BENCH_STREAMS_MAX, 0 },

    { "max-tokens", OPTION_INT, FIELD(max_tokens), "100", NULL,
      "tokens in each stream", 1, INT32_MAX, 0 },

    { "duration", OPTION_DURATION, FIELD(duration_ms), "10s", NULL,
      "length of the measurement window", 1, BENCH_TIME_MAX_MS, 0 },

    { "warmup", OPTION_DURATION, FIELD(warmup_ms), "0", NULL,
      "time before the window, not measured", 0, BENCH_TIME_MAX_MS, 0 },

    { "drain", OPTION_DURATION, FIELD(drain_ms), "10s", NULL,
      "time after it, for running streams to end", 0, BENCH_TIME_MAX_MS, 0 },

    { "requests", OPTION_INT, FIELD(requests), "0", NULL,
      "end after this many; 0: no limit", 0, 1e15, 0 },

    { "rate", OPTION_DOUBLE, FIELD(rate), "0", NULL,
      "open loop: starts per second; 0: closed loop", 0, 1e6, 0 },

    { "ramp", OPTION_DURATION, FIELD(ramp_ms), "1s", NULL,
      "closed loop: time for the first starts",
      0, BENCH_TIME_MAX_MS, 0 },

    { "poisson", OPTION_FLAG, FIELD(is_poisson), NULL, NULL,
      "start at random times with the same rate", 0, 0, 0 },

    { "lockstep", OPTION_FLAG, FIELD(is_lockstep), NULL, NULL,
      "start all at once, the next when all have ended", 0, 0, 0 },

    { "hold", OPTION_FLAG, FIELD(is_held), NULL, NULL,
      "hold streams open, cut them off at the end", 0, 0, 0 },

    { "prompts", OPTION_INT, FIELD(prompts), "1000", NULL,
      "number of different prompts", 1, BENCH_PROMPTS_MAX, 0 },

    { "prompt-bytes", OPTION_INT, FIELD(prompt_bytes), "64", NULL,
      "length of each prompt", BENCH_PROMPT_BYTES_MIN, 8388608, 0 },

    { "seed", OPTION_INT, FIELD(seed), "1", NULL,
      "seed for the order of prompts, and --poisson", 0, 1e15, 0 },

    { "hedge", OPTION_FLAG, FIELD(is_hedged), NULL, NULL,
      "set the request's hedge flag (infer)", 0, 0, 0 },

    { "timeout", OPTION_DURATION, FIELD(timeout_ms), "0", NULL,
      "grpc-timeout of each stream; 0: none", 0, BENCH_TIME_MAX_MS, 0 },

    { "token-delay", OPTION_DURATION, FIELD(token_delay_ms), "0", NULL,
      "that of the replicas, for the lag",
      0, 3600000, 0 },

    { "first-token-delay", OPTION_DURATION, FIELD(first_token_delay_ms), "0",
      NULL, "likewise", 0, 3600000, 0 },

    { "json", OPTION_FLAG, FIELD(is_json), NULL, NULL,
      "print one JSON object", 0, 0, 0 },

    CLIENT_TLS_OPTIONS,

    CLIENT_KEY_OPTION,

    { .name = NULL }
};

static const options_spec_t  bench_spec = {
    "llmgw-client bench",
    "--gateway HOST:PORT [options]",
    "Runs many concurrent streams against simulated replicas, checks every\n"
    "token, and reports how fast they came.",
    "exit status: 0 all streams were correct, 1 some were not, 2 usage",
    bench_table
};


/* Checks options against each other.  NULL, or what is wrong. */
static const char *
bench_options_error(const bench_options_t *o)
{
    if (strcmp(o->method, "infer") != 0 && strcmp(o->method, "generate") != 0) {
        return "--method is infer or generate";
    }

    if (o->is_openai && (o->streams > 1 || o->is_hedged
                         || strcmp(o->method, "infer") != 0
                         || o->tls.name != NULL))
    {
        return "--openai takes none of --streams, --hedge, --method and"
               " --tls-name";
    }

    if (o->is_lockstep && o->rate > 0) {
        return "--lockstep is a closed loop, --rate an open one";
    }

    if (o->is_lockstep && o->is_poisson) {
        return "--lockstep starts all at once, --poisson none";
    }

    if (o->is_hedged && strcmp(o->method, "generate") == 0) {
        return "--hedge is a flag of infer";
    }

    if (o->first_token_delay_ms > 0 && o->token_delay_ms == 0) {
        return "--first-token-delay needs --token-delay";
    }

    if (o->connections * o->streams > BENCH_SLOTS_MAX) {
        return "more than 1000000 streams at once";
    }

    return NULL;
}


static int
bench_measure(bench_t *bench)
{
    int  rc;

    descriptors_raise();

    if (client_tls_open(&bench->options.tls, bench->options.gateway,
                        bench->error) != 0
        || address_resolve(bench->options.gateway, &bench->address,
                           bench->error) != 0
        || bench_run(bench) != 0)
    {
        fprintf(stderr, "llmgw-client: %s\n", bench->error);
        return 1;
    }

    rc = 0;

    if (bench->options.is_json) {
        rc = bench_json(bench);

    } else {
        bench_report(bench);
    }

    return rc == 0 && bench->nfailed == 0 && bench->tally.n == 0 ? 0 : 1;
}


int
bench_main(int argc, char **argv)
{
    int           rc, rest;
    bench_t      *bench;
    const char   *error;
    options_rc_t  parsed;

    bench = calloc(1, sizeof(bench_t));     /* too large for the stack, because
                                               of its histograms */

    if (bench == NULL) {
        fprintf(stderr, "llmgw-client: out of memory\n");
        return 1;
    }

    parsed = options_parse(&bench_spec, &bench->options, argc, argv, 0, &rest);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        error = client_tls_check(&bench->options.tls, bench->error) != 0
                || client_key_read(&bench->options.key, bench->error) != 0
                ? bench->error : bench_options_error(&bench->options);

        if (error != NULL) {
            fprintf(stderr, "llmgw-client bench: %s\n", error);
            rc = 2;

        } else {
            rc = bench_measure(bench);
        }
    }

    tls_endpoint_close(&bench->options.tls.endpoint);
    options_done(&bench_spec, &bench->options);
    free(bench);

    return rc;
}
