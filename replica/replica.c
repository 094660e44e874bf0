
/*
 * A replica's process, from its options to its end; an engine is behind gRPC.
 *
 *   cmdline.c     options
 *   engine/       what generates, and how it is run
 *   service.c     gRPC methods
 *   agent_link.c  reports to the agent beside the replica
 *   retire.c      SIGTERM
 *   standby/      an engine that serves when another one of its group is gone
 *   launch/       an engine that is started here; its keepers are this program
 *
 * Two programs are such a process: llmgw-replica (main.c, kinds.c), and
 * llmgw-simreplica (simulated/).
 */

#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "common/os/descriptors.h"
#include "replica/replica.h"


/* Far more connections than a gateway opens (one for each worker), and fewer
   than the descriptors. */
#define REPLICA_CONNS_MAX  10000

/*
 * From this size on a block is mapped by itself, and given back when it is
 * freed.  By default glibc raises this limit to the largest block that was
 * freed: after one long body the pieces of the next one would stay in the heap.
 */
#define REPLICA_MAPPED_BYTES  (256 * 1024)


static void
replica_init_engine(replica_t *r)
{
    engine_t  *e;

    e = &r->engine;
    snprintf(e->facts.model_version, sizeof(e->facts.model_version), "%s",
             r->options->engine.model_version);
    e->facts.running = -1;
    e->facts.waiting = -1;
    e->facts.kv_permille = -1;
    e->facts.kv_free_blocks = -1;
    e->facts.hit_permille = -1;

    e->loop = r->loop;
    e->log = &r->log;
}


/*
 * A replica that other hosts reach needs TLS or --insecure: without TLS prompts
 * and tokens cross the network in clear text, and each host there can use the
 * engine.  A shard has a rule of its own.
 */
static int
replica_check_address(const replica_t *r, char error[SHARDS_ERROR_BYTES])
{
    char              text[ADDRESS_TEXT_BYTES];
    const cmdline_t  *o;

    o = r->options;

    if (o->shards.slice != NULL) {
        return shards_options_check_address(&o->shards, &r->address, error);
    }

    if (o->tls.cert != NULL || o->is_insecure
        || address_is_loopback(&r->address))
    {
        return 0;
    }

    address_format(&r->address, text);
    snprintf(error, SHARDS_ERROR_BYTES, "--listen: \"%s\" is not loopback, so "
             "a replica needs --tls-cert, --tls-key and --tls-client-ca "
             "(llmgwctl certs makes such files), or --insecure where everybody "
             "on the network may use it", text);

    return -1;
}


/*
 * Resolves --listen, only once, so that the address that was checked is the one
 * that is bound.  0; 1: it cannot be resolved now; 2: it must not be served
 * without TLS.
 */
static int
replica_resolve(replica_t *r)
{
    char  error[SHARDS_ERROR_BYTES];

    if (address_resolve(r->options->listen, &r->address, error) != 0) {
        log_write(&r->log, LOG_ERROR, "cannot listen: %s", error);
        return 1;
    }

    if (replica_check_address(r, error) != 0) {
        log_write(&r->log, LOG_ERROR, "%s", error);
        return 2;
    }

    return 0;
}


static int
replica_open_door(replica_t *r)
{
    char  error[TLS_ERROR_BYTES];

    if (tls_endpoint_open(&r->endpoint, &r->options->tls, &r->log, error)
        != 0)
    {
        log_write(&r->log, LOG_ERROR, "%s", error);
        return -1;
    }

    r->endpoint.conn.names = r->options->tls_clients;

    return 0;
}


static int
replica_bind(replica_t *r)
{
    char                    error[256];
    llmgw_grpc_config_t     config;
    const engine_stream_t  *own;

    r->service.engine = &r->engine;
    r->service.methods = r->methods;
    r->service.is_remote_drain = r->options->is_remote_drain;

    config = service_config(&r->service);
    r->server = grpc_server_bind(r->loop, &r->address, &config,
                                 REPLICA_CONNS_MAX, error);

    if (r->server == NULL) {
        log_write(&r->log, LOG_ERROR, "%s", error);
        return -1;
    }

    own = r->engine.kind->stream;
    grpc_server_set_options(r->server, own != NULL ? own->conn(&r->engine)
                                                   : &r->endpoint.conn);

    return 0;
}


static int
replica_listen(replica_t *r)
{
    char  error[256];

    if (replica_bind(r) != 0) {
        return -1;
    }

    if (grpc_server_listen(r->server, error) != 0) {
        log_write(&r->log, LOG_ERROR, "%s", error);
        grpc_server_destroy(r->server);
        return -1;
    }

    return 0;
}


/* A description of the model, for people. */
static const char *
replica_model(const cmdline_t *o)
{
    return o->engine.model != NULL ? o->engine.model
           : o->shards.head != NULL ? o->shards.head
           : o->shards.slice != NULL ? o->shards.slice : o->engine.kind;
}


static void
replica_log_start(const replica_t *r)
{
    const cmdline_t  *o;

    o = r->options;

    if (o->engine.command != NULL) {
        log_write(&r->log, LOG_INFO, "serving engine \"%s\", to be started "
                  "here, on %s", o->engine.kind, o->listen);
        return;
    }

    if (o->engine.url != NULL) {
        log_write(&r->log, LOG_INFO, "serving engine \"%s\" at %s on %s",
                  o->engine.kind, o->engine.url, o->listen);
        return;
    }

    if (o->shards.slice != NULL) {
        log_write(&r->log, LOG_INFO, "serving slice \"%s\" on %s, sessions "
                  "%d", o->shards.slice, o->listen,
                  r->engine.facts.max_capacity);
        return;
    }

    if (o->shards.head != NULL) {
        log_write(&r->log, LOG_INFO, "serving head \"%s\" on %s, capacity %d",
                  o->shards.head, o->listen, r->engine.facts.max_capacity);
        return;
    }

    log_write(&r->log, LOG_INFO, "serving model \"%s\" version \"%s\" on %s, "
              "capacity %d (0: no limit)",
              replica_model(o), o->engine.model_version, o->listen,
              r->engine.facts.max_capacity);
}


static void
replica_serve(replica_t *r)
{
    agent_link_init(&r->link, r->loop, &r->log, &r->engine, r->options->agent);

    r->retire.log = &r->log;
    r->retire.engine = &r->engine;
    r->retire.server = r->server;
    r->retire.link = &r->link;
    r->retire.drain_timeout_ms = r->options->drain_timeout_ms;

    ev_run(r->loop, 0);

    agent_link_done(&r->link);
    grpc_server_destroy(r->server);
}


static void
replica_stop_engine(void *data, int is_hurried)
{
    replica_t  *r;

    r = data;
    launch_stop(&r->launch, is_hurried);
}


static void
replica_on_engine_over(void *data)
{
    replica_t  *r;

    r = data;
    retire_stopped(&r->retire);
}


/* Prepares the engine's start; its address is known before it runs. */
static int
replica_open_launch(replica_t *r)
{
    launch_t          *l;
    engine_options_t  *o;

    l = &r->launch;
    o = &r->options->engine;

    if (o->command == NULL) {
        return 0;
    }

    l->loop = r->loop;
    l->log = &r->log;
    l->engine = &r->engine;
    l->id = r->options->id;
    l->command = o->command;
    l->stop_timeout_ms = o->stop_timeout_ms;
    l->on_over = replica_on_engine_over;
    l->data = r;

    if (launch_open(l) != 0) {
        return -1;
    }

    o->url = l->place.url;
    o->socket = l->place.socket[0] != '\0' ? l->place.socket : NULL;
    r->retire.stop_engine = replica_stop_engine;
    r->retire.data = r;

    return 0;
}


static void
replica_close_launch(replica_t *r)
{
    if (r->options->engine.command != NULL) {
        launch_close(&r->launch);
        r->options->engine.url = NULL;       /* it was the launch's */
    }
}


/* An engine that serves from its start on. */
static int
replica_run_alone(replica_t *r)
{
    int  rc;

    if (replica_open_launch(r) != 0) {
        return -1;
    }

    if (r->engine.kind->open(&r->engine, &r->options->engine) != 0) {
        replica_close_launch(r);
        return -1;
    }

    rc = replica_listen(r);

    if (rc == 0) {
        replica_log_start(r);

        if (r->options->engine.command != NULL) {
            launch_begin(&r->launch);
        }

        replica_serve(r);
    }

    replica_close_launch(r);
    r->engine.kind->close(&r->engine);

    return rc != 0 || r->launch.is_left ? -1 : 0;
}


static void
replica_on_active(void *data)
{
    replica_log_start(data);
}


static void
replica_on_drain(void *data)
{
    standby_seek(data);
}


static void
replica_on_successor(void *data)
{
    replica_t  *r;

    r = data;
    retire_hand_over(&r->retire);
}


/* Creates a standby. */
static int
replica_stand_by(replica_t *r)
{
    standby_t  *s;

    if (replica_bind(r) != 0) {
        return -1;
    }

    s = &r->standby;
    s->loop = r->loop;
    s->log = &r->log;
    s->engine = &r->engine;
    s->engine_options = &r->options->engine;
    s->server = r->server;
    s->options = &r->options->standby;
    s->body = r->body;
    s->id = r->options->id;
    s->on_active = replica_on_active;
    s->on_successor = replica_on_successor;
    s->data = r;

    if (standby_init(s) != 0) {
        grpc_server_destroy(r->server);
        return -1;
    }

    r->retire.on_drain = replica_on_drain;
    r->retire.data = s;
    replica_serve(r);
    standby_done(s);

    return 0;
}


/*
 * Forbids core files: a core file would hold prompts, and a dump of much memory
 * delays every notice of a death by minutes.  1 is no dump at all, while 0
 * allows one into a pipe (core(5)).  The hard limit stays, so that an operator
 * can have a dump.
 */
static void
replica_forbid_core(void)
{
    struct rlimit  limit;

    if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max > 0) {
        limit.rlim_cur = 1;
        (void) setrlimit(RLIMIT_CORE, &limit);
    }
}


int
replica_run(replica_t *r)
{
    int  rc;

    signal(SIGPIPE, SIG_IGN);
    (void) mallopt(M_MMAP_THRESHOLD, REPLICA_MAPPED_BYTES);

    r->log.program = r->options->spec.program;
    r->log.id = r->options->id;
    r->log.level = LOG_INFO;

    rc = replica_resolve(r);

    if (rc != 0) {
        return rc;
    }

    descriptors_raise();
    replica_forbid_core();

    r->loop = ev_default_loop(EVFLAG_AUTO);

    if (r->loop == NULL) {
        log_write(&r->log, LOG_ERROR, "no event loop");
        return 1;
    }

    r->retire.loop = r->loop;
    retire_init(&r->retire);
    replica_init_engine(r);
    rc = replica_open_door(r);

    if (rc == 0) {
        rc = r->options->standby.group != NULL ? replica_stand_by(r)
                                              : replica_run_alone(r);
    }

    tls_endpoint_close(&r->endpoint);
    ev_loop_destroy(r->loop);

    return rc == 0 && !r->engine.is_broken ? 0 : 1;
}
