
/*
 * llmgw-replica: an LLM engine, or a simulated one, behind gRPC.
 *
 *   cmdline.c     options
 *   kinds.c       which engine they ask for
 *   engine/       what generates, and how it is run
 *   service.c     gRPC methods
 *   agent_link.c  reports to the agent beside the replica
 *   retire.c      SIGTERM
 */

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include "replica/agent_link.h"
#include "replica/cmdline.h"
#include "replica/retire.h"
#include "replica/service.h"


/* Far above what a gateway opens (one a worker), below the descriptors. */
#define MAIN_CONNS_MAX  10000

typedef struct {
    cmdline_t        options;
    log_t            log;
    struct ev_loop  *loop;
    engine_t         engine;
    service_t        service;
    grpc_server_t   *server;
    agent_link_t     link;
    retire_t         retire;
} main_t;


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
    const cmdline_t  *o;

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
    int           rc;
    main_t        m;
    options_rc_t  parsed;

    memset(&m, 0, sizeof(m));
    signal(SIGPIPE, SIG_IGN);

    parsed = cmdline_read(&m.options, argc, argv, &m.engine.kind);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        rc = main_run(&m);
    }

    cmdline_done(&m.options);

    return rc;
}
