
/*
 * llmgw-replica: a simulated LLM engine behind the gRPC of a real one.
 *
 *   engine/       what generates: the simulation, and how it is run
 *   service.c     gRPC methods
 *   agent_link.c  reports to the agent beside the replica
 *   retire.c      SIGTERM
 */

#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "replica/agent_link.h"
#include "common/options.h"
#include "replica/engine/run.h"
#include "replica/engine/sim/sim.h"
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
    int64_t            max_capacity;
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

    { "token-delay", OPTION_DURATION, FIELD(engine.token_delay_ms), "50ms",
      NULL, "time between tokens", 0, ENGINE_DELAY_MAX_MS, 0 },

    { "first-token-delay", OPTION_DURATION, FIELD(engine.first_token_delay_ms),
      "0ms", NULL, "time to the first token; 0: as others", 0,
      ENGINE_DELAY_MAX_MS, 0 },

    { "max-capacity", OPTION_INT, FIELD(max_capacity), "0", NULL,
      "concurrent streams; 0: no limit", 0, ENGINE_CAPACITY_MAX, 0 },

    { "model", OPTION_NAME, FIELD(engine.model), "sim", "NAME",
      "name of the model, for the log", 0, 0, 0 },

    { "model-version", OPTION_NAME, FIELD(engine.model_version), "v1",
      "VERSION", "version of the model, as reported", 0, 0, 0 },

    { "error-rate", OPTION_DOUBLE, FIELD(engine.error_rate), "0", NULL,
      "fraction of requests answered UNAVAILABLE", 0, 1, 0 },

    { "reject-all", OPTION_FLAG, FIELD(engine.is_reject_all), NULL, NULL,
      "answer every request UNAVAILABLE", 0, 0, 0 },

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
    "A simulated LLM engine: streams the tokens of a prompt over gRPC.",
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
main_open_engine(main_t *m)
{
    engine_t          *e;
    engine_options_t  *o;

    e = &m->engine;
    o = &m->options.engine;

    o->max_capacity = (int32_t) m->options.max_capacity;
    snprintf(e->facts.model_version, sizeof(e->facts.model_version), "%s",
             o->model_version);
    e->facts.running = -1;
    e->facts.waiting = -1;
    e->facts.kv_permille = -1;

    e->loop = m->loop;
    e->log = &m->log;
    e->kind = &sim_kind;

    return e->kind->open(e, o);
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

    log_write(&m->log, LOG_INFO, "serving model \"%s\" version \"%s\" on %s, "
              "capacity %d (0: no limit)", m->options.engine.model,
              m->options.engine.model_version, m->options.listen,
              m->engine.facts.max_capacity);

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
        rc = main_run(&m);
    }

    options_done(&main_spec, &m.options);

    return rc;
}
