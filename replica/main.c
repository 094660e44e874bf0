
/*
 * llmgw-replica: an LLM engine, or a simulated one, behind gRPC.
 *
 *   kinds.c       which engine the options ask for
 *   engine/       what generates, and how it is run
 *   service.c     gRPC methods
 *   agent_link.c  reports to the agent beside the replica
 *   retire.c      SIGTERM
 */

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "replica/agent_link.h"
#include "common/options.h"
#include "replica/kinds.h"
#include "replica/retire.h"
#include "replica/service.h"


/* Far above what a gateway opens (one a worker), below the descriptors. */
#define MAIN_CONNS_MAX  10000

typedef struct {
    const char        *id;
    const char        *listen;
    const char        *agent;
    engine_options_t   engine;
    uint64_t           drain_timeout_ms;
    const char        *max_capacity;
    const char        *exact;
    int64_t            model_memory_mb;
    int                is_remote_drain;
} main_options_t;

typedef struct {
    main_options_t   options;
    log_t            log;
    struct ev_loop  *loop;
    engine_t         engine;
    service_t        service;
    grpc_server_t   *server;
    agent_link_t     link;
    retire_t         retire;
} main_t;


#define FIELD(name)  offsetof(main_options_t, name)

static const option_t  main_table[] = {

    { "id", OPTION_NAME, FIELD(id), NULL, "ID",
      "name of the replica", 0, 0, 1 },

    { "listen", OPTION_ADDRESS, FIELD(listen), NULL, NULL,
      "where gRPC is served", 0, 0, 1 },

    { "agent", OPTION_STRING, FIELD(agent), NULL, "PATH",
      "control socket of the agent to report to", 0, 0, 0 },

    { "engine", OPTION_STRING, FIELD(engine.kind), "sim", KINDS_NAMES,
      "what generates", 0, 0, 0 },

    { "engine-url", OPTION_STRING, FIELD(engine.url), NULL, "URL",
      "of an engine behind HTTP: http://HOST:PORT", 0, 0, 0 },

    { "engine-key-file", OPTION_STRING, FIELD(engine.key_file), NULL, "FILE",
      "holds the key that it asks for", 0, 0, 0 },

    { "engine-ca-file", OPTION_STRING, FIELD(engine.ca_file), NULL, "FILE",
      "who may sign its certificate; else the system's", 0, 0, 0 },

    { "max-capacity", OPTION_STRING, FIELD(max_capacity), "auto", "auto|N",
      "concurrent streams; 0: no limit", 0, 0, 0 },

    { "stall-timeout", OPTION_DURATION, FIELD(engine.stall_timeout_ms),
      "2500ms", NULL, "an engine that works has progress in it", 1000,
      ENGINE_DELAY_MAX_MS, 0 },

    { "model", OPTION_STRING, FIELD(engine.model), NULL, "NAME|FILE",
      "model: as qwen3-14b; llama: a GGUF file", 0, 0, 0 },

    { "model-version", OPTION_NAME, FIELD(engine.model_version), "v1",
      "VERSION", "version of the model, as reported", 0, 0, 0 },

    { "exact", OPTION_STRING, FIELD(exact), "on", "on|off",
      "llama: the same text whoever is in the batch", 0, 0, 0 },

    { "model-name", OPTION_STRING, FIELD(engine.model_name), NULL, "NAME",
      "llama: as clients ask for it; else the file's", 0, 0, 0 },

    { "context-tokens", OPTION_INT, FIELD(engine.context_tokens), "0", NULL,
      "llama: of a stream; 0: the model's, at most 4096", 0, 1 << 20, 0 },

    { "threads", OPTION_INT, FIELD(engine.threads), "0", NULL,
      "llama: that compute; 0: one for each processor", 0, 512, 0 },

    { "cpu", OPTION_NAME, FIELD(engine.cpu), NULL, "NAME",
      "llama: variant of libllama's code, as haswell", 0, 0, 0 },

    { "latency-model", OPTION_STRING, FIELD(engine.model_latency), NULL,
      "NAME", "model: trained-physics, roofline or linear", 0, 0, 0 },

    { "alpha-coeffs", OPTION_STRING, FIELD(engine.model_alpha), NULL,
      "A0,A1,A2", "model: what a request costs besides steps", 0, 0, 0 },

    { "beta-coeffs", OPTION_STRING, FIELD(engine.model_beta), NULL,
      "B0,B1,...", "model: what a step costs", 0, 0, 0 },

    { "hardware", OPTION_STRING, FIELD(engine.model_hardware), NULL, "GPU",
      "model: H100, A100-SXM, L40S, or one of a file", 0, 0, 0 },

    { "hardware-config", OPTION_STRING, FIELD(engine.model_hardware_file),
      NULL, "FILE", "model: JSON with other GPUs", 0, 0, 0 },

    { "model-config-folder", OPTION_STRING, FIELD(engine.model_folder), NULL,
      "DIR", "model: whose config.json has the shape", 0, 0, 0 },

    { "tp", OPTION_INT, FIELD(engine.model_tp), NULL, NULL,
      "model: GPUs that share each layer", 1, 1024, 0 },

    { "block-size-in-tokens", OPTION_INT, FIELD(engine.model_block_tokens),
      NULL, NULL, "model: of a KV block", 1, 1 << 20, 0 },

    { "total-kv-blocks", OPTION_INT, FIELD(engine.model_blocks), NULL, NULL,
      "model: KV blocks", 1, 1 << 30, 0 },

    { "max-model-len", OPTION_INT, FIELD(engine.model_max_len), NULL, NULL,
      "model: tokens of a prompt and its answer", 1, 1 << 30, 0 },

    { "max-num-seqs", OPTION_INT, FIELD(engine.model_max_seqs), NULL, NULL,
      "model: streams of a batch", 1, ENGINE_CAPACITY_MAX, 0 },

    { "max-num-batched-tokens", OPTION_INT, FIELD(engine.model_batched_tokens),
      NULL, NULL, "model: tokens of a step", 1, 1 << 30, 0 },

    { "long-prefill-token-threshold", OPTION_INT,
      FIELD(engine.model_chunk_tokens), NULL, NULL,
      "model: of a prompt in one step", 1, 1 << 30, 0 },

    { "scheduler", OPTION_STRING, FIELD(engine.model_scheduler), NULL, "NAME",
      "model: fcfs, priority-fcfs, sjf, reverse-priority", 0, 0, 0 },

    { "preemption-policy", OPTION_STRING, FIELD(engine.model_preemption), NULL,
      "NAME", "model: who makes room: fcfs, priority", 0, 0, 0 },

    { "token-delay", OPTION_DURATION, FIELD(engine.token_delay_ms), "50ms",
      NULL, "simulated: time between tokens", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "first-token-delay", OPTION_DURATION, FIELD(engine.first_token_delay_ms),
      "0ms", NULL, "simulated: time to the first one; 0: as others", 0,
      ENGINE_DELAY_MAX_MS, 0 },

    { "error-rate", OPTION_DOUBLE, FIELD(engine.error_rate), "0", NULL,
      "simulated: fraction of requests answered UNAVAILABLE", 0, 1, 0 },

    { "reject-all", OPTION_FLAG, FIELD(engine.is_reject_all), NULL, NULL,
      "simulated: answer every request UNAVAILABLE", 0, 0, 0 },

    { "drain-timeout", OPTION_DURATION, FIELD(drain_timeout_ms), "25s", NULL,
      "time for running streams after SIGTERM", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "remote-drain", OPTION_FLAG, FIELD(is_remote_drain), NULL, NULL,
      "accept Drain and Undrain from other hosts too", 0, 0, 0 },

    /* For tests of what the death of a large process looks like. */
    { "model-memory", OPTION_INT, FIELD(model_memory_mb), "0", "MB",
      NULL, 0, 1 << 20, 0 },

    { .name = NULL }
};

static const options_spec_t  main_spec = {
    "llmgw-replica",
    "--id ID --listen HOST:PORT [options]",
    "An LLM engine, or a simulated one: streams the tokens of a prompt over\n"
    "gRPC.",
    NULL,
    main_table
};


/* One descriptor a connection: as many as the system grants. */
static void
main_raise_descriptors(void)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(RLIMIT_NOFILE, &limit);
    }
}


/* Touched, so that the kernel has to free each page at the end. */
static int
main_load_model(const main_t *m)
{
    void    *model;
    size_t   bytes;

    bytes = (size_t) m->options.model_memory_mb << 20;

    if (bytes == 0) {
        return 0;
    }

    model = mmap(NULL, bytes, PROT_READ|PROT_WRITE,
                 MAP_PRIVATE|MAP_ANONYMOUS|MAP_NORESERVE, -1, 0);

    if (model == MAP_FAILED) {
        log_write(&m->log, LOG_ERROR, "no memory for the model");
        return -1;
    }

    memset(model, 1, bytes);

    return 0;
}


static int
main_usage(const char *error)
{
    fprintf(stderr, "llmgw-replica: %s\n", error);

    return -1;
}


static int
main_capacity(const char *text, int32_t *max_capacity)
{
    long   n;
    char  *end;

    if (strcmp(text, "auto") == 0) {
        *max_capacity = ENGINE_CAPACITY_AUTO;
        return 0;
    }

    errno = 0;
    n = strtol(text, &end, 10);

    if (errno != 0 || end == text || *end != '\0' || n < 0
        || n > ENGINE_CAPACITY_MAX)
    {
        return -1;
    }

    *max_capacity = (int32_t) n;

    return 0;
}


/* What the table of options cannot check. */
static int
main_check(main_t *m)
{
    char               error[KINDS_ERROR_BYTES];
    main_options_t    *o;

    o = &m->options;

    if (main_capacity(o->max_capacity, &o->engine.max_capacity) != 0) {
        snprintf(error, sizeof(error), "--max-capacity: \"%.80s\" is not "
                 "auto or an integer from 0 to %d", o->max_capacity,
                 ENGINE_CAPACITY_MAX);
        return main_usage(error);
    }

    o->engine.is_exact = strcmp(o->exact, "on") == 0;

    if (!o->engine.is_exact && strcmp(o->exact, "off") != 0) {
        snprintf(error, sizeof(error), "--exact: \"%.80s\" is not on or off",
                 o->exact);
        return main_usage(error);
    }

    m->engine.kind = kinds_choose(&o->engine, error);

    return m->engine.kind != NULL ? 0 : main_usage(error);
}


static int
main_open_engine(main_t *m)
{
    engine_t  *e;

    e = &m->engine;
    snprintf(e->facts.model_version, sizeof(e->facts.model_version), "%s",
             m->options.engine.model_version);
    e->facts.running = -1;
    e->facts.waiting = -1;
    e->facts.kv_permille = -1;
    e->facts.kv_free_blocks = -1;
    e->facts.hit_permille = -1;

    e->loop = m->loop;
    e->log = &m->log;

    return e->kind->open(e, &m->options.engine);
}


static int
main_listen(main_t *m)
{
    char                  error[256];
    address_t             address;
    llmgw_grpc_config_t   config;

    if (address_resolve(m->options.listen, &address, error) != 0) {
        log_write(&m->log, LOG_ERROR, "cannot listen: %s", error);
        return -1;
    }

    m->service.engine = &m->engine;
    m->service.is_remote_drain = m->options.is_remote_drain;

    config = service_config(&m->service);
    m->server = grpc_server_create(m->loop, &address, &config, MAIN_CONNS_MAX,
                                   error);

    if (m->server == NULL) {
        log_write(&m->log, LOG_ERROR, "%s", error);
        return -1;
    }

    return 0;
}


static void
main_log_start(const main_t *m)
{
    const main_options_t  *o;

    o = &m->options;

    if (o->engine.url != NULL) {
        log_write(&m->log, LOG_INFO, "serving engine \"%s\" at %s on %s",
                  o->engine.kind, o->engine.url, o->listen);
        return;
    }

    log_write(&m->log, LOG_INFO, "serving model \"%s\" version \"%s\" on %s, "
              "capacity %d (0: no limit)",
              o->engine.model != NULL ? o->engine.model : o->engine.kind,
              o->engine.model_version, o->listen,
              m->engine.facts.max_capacity);
}


static void
main_serve(main_t *m)
{
    agent_link_init(&m->link, m->loop, &m->log, &m->engine, m->options.agent);

    m->retire.loop = m->loop;
    m->retire.log = &m->log;
    m->retire.engine = &m->engine;
    m->retire.server = m->server;
    m->retire.link = &m->link;
    m->retire.drain_timeout_ms = m->options.drain_timeout_ms;
    retire_init(&m->retire);

    main_log_start(m);
    ev_run(m->loop, 0);

    grpc_server_destroy(m->server);
}


static int
main_run(main_t *m)
{
    int  rc;

    m->log.program = "llmgw-replica";
    m->log.id = m->options.id;
    m->log.level = LOG_INFO;

    main_raise_descriptors();

    m->loop = ev_default_loop(EVFLAG_AUTO);

    if (m->loop == NULL) {
        log_write(&m->log, LOG_ERROR, "no event loop");
        return 1;
    }

    rc = main_load_model(m) == 0 ? main_open_engine(m) : -1;

    if (rc == 0) {
        rc = main_listen(m);

        if (rc == 0) {
            main_serve(m);
            rc = m->engine.is_broken ? -1 : 0;
        }

        m->engine.kind->close(&m->engine);
    }

    ev_loop_destroy(m->loop);

    return rc == 0 ? 0 : 1;
}


int
main(int argc, char **argv)
{
    int           rc, rest;
    main_t        m;
    options_rc_t  parsed;

    memset(&m, 0, sizeof(m));
    signal(SIGPIPE, SIG_IGN);

    parsed = options_parse(&main_spec, &m.options, argc, argv, 0, &rest);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        rc = main_check(&m) == 0 ? main_run(&m) : 2;
    }

    options_done(&main_spec, &m.options);

    return rc;
}
