
/*
 * llmgw-replica: an LLM engine, or a simulated one, behind gRPC.
 *
 *   cmdline.c     options
 *   kinds.c       which engine they ask for
 *   engine/       what generates, and how it is run
 *   service.c     gRPC methods
 *   agent_link.c  reports to the agent beside the replica
 *   retire.c      SIGTERM
 *   standby/      an engine that serves when another one of its group is gone
 *   launch/       an engine that is started here; its keepers are this program
 */

#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "common/os/descriptors.h"
#include "common/tls/door.h"
#include "replica/agent_link.h"
#include "replica/cmdline.h"
#include "replica/launch/keeper.h"
#include "replica/launch/launch.h"
#include "replica/retire.h"
#include "replica/service.h"
#include "replica/standby/standby.h"


/* Far above what a gateway opens (one a worker), below the descriptors. */
#define MAIN_CONNS_MAX  10000

/*
 * From here on a block is mapped by itself, and given back when it is freed.
 * Left to itself, glibc raises this to the largest block that was freed: after
 * one long body the pieces of the next one stay in the heap.
 */
#define MAIN_MAPPED_BYTES  (256 * 1024)

typedef struct {
    cmdline_t        options;
    log_t            log;
    struct ev_loop  *loop;
    address_t        address;           /* of --listen */
    engine_t         engine;
    service_t        service;
    tls_door_t       door;
    grpc_server_t   *server;
    agent_link_t     link;
    retire_t         retire;
    standby_t        standby;
    launch_t         launch;
} main_t;


static int
main_take_memory(const main_t *m)
{
    const standby_options_t  *o;

    o = &m->options.standby;

    if (workers_take_memory(o->memory_bytes, o->is_memory_shared) != 0) {
        log_write(&m->log, LOG_ERROR, "no memory for the model");
        return -1;
    }

    return 0;
}


static void
main_init_engine(main_t *m)
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
}


/* Tests' logs; path NULL: none. */
static int
main_open_log(main_t *m, const char *option, const char *path, int *fd)
{
    if (path == NULL) {
        return 0;
    }

    *fd = open(path, O_WRONLY|O_APPEND|O_CREAT|O_CLOEXEC, 0660);

    if (*fd == -1) {
        log_write(&m->log, LOG_ERROR, "%s: \"%s\": %s", option, path,
                  strerror(errno));
        return -1;
    }

    return 0;
}


static int
main_open_logs(main_t *m)
{
    return main_open_log(m, "--token-log", m->options.token_log,
                         &m->engine.token_log) != 0
           || main_open_log(m, "--hash-log", m->options.hash_log,
                            &m->engine.hash_log) != 0 ? -1 : 0;
}


/*
 * A replica that other hosts reach needs TLS or --insecure: without TLS prompts
 * and tokens cross the network in clear text, and each host there can use the
 * engine.  A shard has a rule of its own.
 */
static int
main_check_address(const main_t *m, char error[SHARDS_ERROR_BYTES])
{
    char              text[ADDRESS_TEXT_BYTES];
    const cmdline_t  *o;

    o = &m->options;

    if (o->shards.slice != NULL) {
        return shards_options_check_address(&o->shards, &m->address, error);
    }

    if (o->tls.cert != NULL || o->is_insecure
        || address_is_loopback(&m->address))
    {
        return 0;
    }

    address_format(&m->address, text);
    snprintf(error, SHARDS_ERROR_BYTES, "--listen: \"%s\" is not loopback, so "
             "a replica needs --tls-cert, --tls-key and --tls-client-ca "
             "(llmgwctl certs makes such files), or --insecure where everybody "
             "on the network may use it", text);

    return -1;
}


/*
 * Once: the address that was judged is the one that is bound.  0; 1: it cannot
 * be found now; 2: it must not be served so.
 */
static int
main_resolve(main_t *m)
{
    char  error[SHARDS_ERROR_BYTES];

    if (address_resolve(m->options.listen, &m->address, error) != 0) {
        log_write(&m->log, LOG_ERROR, "cannot listen: %s", error);
        return 1;
    }

    if (main_check_address(m, error) != 0) {
        log_write(&m->log, LOG_ERROR, "%s", error);
        return 2;
    }

    return 0;
}


static int
main_open_door(main_t *m)
{
    char  error[TLS_ERROR_BYTES];

    if (tls_door_open(&m->door, &m->options.tls, &m->log, error) != 0) {
        log_write(&m->log, LOG_ERROR, "%s", error);
        return -1;
    }

    m->door.conn.names = m->options.tls_clients;

    return 0;
}


static int
main_bind(main_t *m)
{
    char                    error[256];
    llmgw_grpc_config_t     config;
    const engine_stream_t  *own;

    m->service.engine = &m->engine;
    m->service.is_remote_drain = m->options.is_remote_drain;

    config = service_config(&m->service);
    m->server = grpc_server_bind(m->loop, &m->address, &config, MAIN_CONNS_MAX,
                                 error);

    if (m->server == NULL) {
        log_write(&m->log, LOG_ERROR, "%s", error);
        return -1;
    }

    own = m->engine.kind->stream;
    grpc_server_set_options(m->server, own != NULL ? own->conn(&m->engine)
                                                   : &m->door.conn);

    return 0;
}


static int
main_listen(main_t *m)
{
    char  error[256];

    if (main_bind(m) != 0) {
        return -1;
    }

    if (grpc_server_listen(m->server, error) != 0) {
        log_write(&m->log, LOG_ERROR, "%s", error);
        grpc_server_destroy(m->server);
        return -1;
    }

    return 0;
}


/* What is served, for people. */
static const char *
main_model(const cmdline_t *o)
{
    return o->engine.model != NULL ? o->engine.model
           : o->shards.head != NULL ? o->shards.head
           : o->shards.slice != NULL ? o->shards.slice : o->engine.kind;
}


static void
main_log_start(const main_t *m)
{
    const cmdline_t  *o;

    o = &m->options;

    if (o->engine.command != NULL) {
        log_write(&m->log, LOG_INFO, "serving engine \"%s\", to be started "
                  "here, on %s", o->engine.kind, o->listen);
        return;
    }

    if (o->engine.url != NULL) {
        log_write(&m->log, LOG_INFO, "serving engine \"%s\" at %s on %s",
                  o->engine.kind, o->engine.url, o->listen);
        return;
    }

    if (o->shards.slice != NULL) {
        log_write(&m->log, LOG_INFO, "serving slice \"%s\" on %s, sessions "
                  "%d", o->shards.slice, o->listen,
                  m->engine.facts.max_capacity);
        return;
    }

    if (o->shards.head != NULL) {
        log_write(&m->log, LOG_INFO, "serving head \"%s\" on %s, capacity %d",
                  o->shards.head, o->listen, m->engine.facts.max_capacity);
        return;
    }

    log_write(&m->log, LOG_INFO, "serving model \"%s\" version \"%s\" on %s, "
              "capacity %d (0: no limit)",
              main_model(o), o->engine.model_version, o->listen,
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

    ev_run(m->loop, 0);

    agent_link_done(&m->link);
    grpc_server_destroy(m->server);
}


static void
main_stop_engine(void *data, int is_hurried)
{
    main_t  *m;

    m = data;
    launch_stop(&m->launch, is_hurried);
}


static void
main_on_engine_over(void *data)
{
    main_t  *m;

    m = data;
    retire_stopped(&m->retire);
}


/* Where the engine will be is known before it runs. */
static int
main_open_launch(main_t *m)
{
    launch_t          *l;
    engine_options_t  *o;

    l = &m->launch;
    o = &m->options.engine;

    if (o->command == NULL) {
        return 0;
    }

    l->loop = m->loop;
    l->log = &m->log;
    l->engine = &m->engine;
    l->id = m->options.id;
    l->command = o->command;
    l->stop_timeout_ms = o->stop_timeout_ms;
    l->on_over = main_on_engine_over;
    l->data = m;

    if (launch_open(l) != 0) {
        return -1;
    }

    o->url = l->place.url;
    o->socket = l->place.socket[0] != '\0' ? l->place.socket : NULL;
    m->retire.stop_engine = main_stop_engine;
    m->retire.data = m;

    return 0;
}


static void
main_close_launch(main_t *m)
{
    if (m->options.engine.command != NULL) {
        launch_close(&m->launch);
        m->options.engine.url = NULL;       /* it was the launch's */
    }
}


/* An engine that serves from its start on. */
static int
main_run_alone(main_t *m)
{
    int  rc;

    if (main_take_memory(m) != 0 || main_open_launch(m) != 0) {
        return -1;
    }

    if (m->engine.kind->open(&m->engine, &m->options.engine) != 0) {
        main_close_launch(m);
        return -1;
    }

    rc = main_listen(m);

    if (rc == 0) {
        main_log_start(m);

        if (m->options.engine.command != NULL) {
            launch_begin(&m->launch);
        }

        main_serve(m);
    }

    main_close_launch(m);
    m->engine.kind->close(&m->engine);

    return rc != 0 || m->launch.is_left ? -1 : 0;
}


static void
main_on_active(void *data)
{
    main_log_start(data);
}


static void
main_on_drain(void *data)
{
    standby_seek(data);
}


static void
main_on_successor(void *data)
{
    main_t  *m;

    m = data;
    retire_hand_over(&m->retire);
}


/* One that serves when its group has no other. */
static int
main_stand_by(main_t *m)
{
    standby_t  *s;

    if (main_bind(m) != 0) {
        return -1;
    }

    s = &m->standby;
    s->loop = m->loop;
    s->log = &m->log;
    s->engine = &m->engine;
    s->engine_options = &m->options.engine;
    s->server = m->server;
    s->options = &m->options.standby;
    s->id = m->options.id;
    s->on_active = main_on_active;
    s->on_successor = main_on_successor;
    s->data = m;

    if (standby_init(s) != 0) {
        grpc_server_destroy(m->server);
        return -1;
    }

    m->retire.on_drain = main_on_drain;
    m->retire.data = s;
    main_serve(m);
    standby_done(s);

    return 0;
}


static int
main_run(main_t *m)
{
    int  rc;

    m->log.program = "llmgw-replica";
    m->log.id = m->options.id;
    m->log.level = LOG_INFO;

    rc = main_resolve(m);

    if (rc != 0) {
        return rc;
    }

    descriptors_raise();

    m->loop = ev_default_loop(EVFLAG_AUTO);

    if (m->loop == NULL) {
        log_write(&m->log, LOG_ERROR, "no event loop");
        return 1;
    }

    main_init_engine(m);
    rc = main_open_logs(m);

    if (rc == 0) {
        rc = main_open_door(m);
    }

    if (rc == 0) {
        rc = m->options.standby.group != NULL ? main_stand_by(m)
                                              : main_run_alone(m);
    }

    tls_door_close(&m->door);
    ev_loop_destroy(m->loop);

    return rc == 0 && !m->engine.is_broken ? 0 : 1;
}


int
main(int argc, char **argv)
{
    int           rc;
    main_t        m;
    options_rc_t  parsed;

    if (keeper_is_asked_for(argc, argv)) {
        return keeper_main(argc, argv);
    }

    memset(&m, 0, sizeof(m));
    signal(SIGPIPE, SIG_IGN);
    (void) mallopt(M_MMAP_THRESHOLD, MAIN_MAPPED_BYTES);

    parsed = cmdline_read(&m.options, argc, argv, &m.engine.kind);
    rc = parsed == OPTIONS_EUSAGE ? 2 : 0;

    if (parsed == OPTIONS_DONE) {
        rc = main_run(&m);
    }

    cmdline_done(&m.options);

    return rc;
}
