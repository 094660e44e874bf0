
/* nginx: what its configuration lets through, and what runs. */

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "ctl/doctor/check_inner.h"
#include "ctl/doctor/conf.h"


/* Defaults of nginx. */
#define CHECK_WORKER_CONNECTIONS  512
#define CHECK_BODY_BYTES          (1 << 20)
#define CHECK_H2_STREAMS          128
#define CHECK_KEEPALIVE_REQUESTS  1000

/* Values of README's configuration; half of them is not worth a warning. */
#define CHECK_FEW_STREAMS   1000
#define CHECK_FEW_REQUESTS  10000
#define CHECK_SMALL_BODY    (8 << 20)

/* For listening sockets, logs, the segment, eventfds, temporary files. */
#define CHECK_SPARE_DESCRIPTORS  64

#define CHECK_HTTP_UNAUTHORIZED  401
#define CHECK_HTTP_FORBIDDEN     403

typedef struct {
    doctor_report_t  *report;
    const json_t     *said;             /* the last server reported */
} check_fronts_t;


void
doctor_check_gateway(const json_t *facts, doctor_report_t *report)
{
    json_int_t     status;
    const char    *error;
    const json_t  *gateway;

    gateway = json_object_get(facts, "gateway");
    error = ctl_text(gateway, "error");
    status = ctl_number(gateway, "status");

    if (status == CHECK_HTTP_UNAUTHORIZED || status == CHECK_HTTP_FORBIDDEN) {
        doctor_say(report, DOCTOR_UNCHECKED, NULL,
                   "the page at %s is for others (%" JSON_INTEGER_FORMAT
                   "): ask from an address that it allows, or give --gateway "
                   "another one", ctl_text(gateway, "url"), status);

    } else if (error[0] != '\0') {
        doctor_say(report, DOCTOR_WRONG,
                   "start nginx, or give --gateway the URL of its status page",
                   "the status page at %s: %s", ctl_text(gateway, "url"),
                   error);
    }
}


void
doctor_check_module(const json_t *facts, doctor_report_t *report)
{
    int          ndifferent;
    size_t       i;
    json_t      *worker;
    const char  *why, *path;

    ndifferent = 0;
    path = "";
    why = NULL;

    json_array_foreach(json_object_get(facts, "workers"), i, worker) {
        if (json_is_true(json_object_get(worker, "is_other_module"))) {
            ndifferent++;
            path = ctl_text(worker, "module");
        }

        why = json_object_get(worker, "module_why") != NULL
              ? ctl_text(worker, "module_why") : why;
    }

    if (ndifferent > 0) {
        doctor_say(report, DOCTOR_WRONG,
                   "replace nginx's processes: USR2 to its master, then QUIT "
                   "to the old one (Debian: service nginx upgrade); a reload "
                   "keeps the old module",
                   "%s is another file than the one that %d processes run",
                   path, ndifferent);

    } else if (why != NULL) {
        doctor_say(report, DOCTOR_UNCHECKED, NULL, "%s", why);
    }
}


static int64_t
check_worker_connections(const json_t *facts)
{
    const json_t  *conf, *events;

    conf = json_object_get(facts, "conf");
    events = json_object_get(conf_child(conf, "events"), "block");

    return conf_size(conf_word(conf_child(events, "worker_connections"), 0),
                     CHECK_WORKER_CONNECTIONS);
}


void
doctor_check_descriptors(const json_t *facts, doctor_report_t *report)
{
    size_t       i;
    int64_t      need, limit;
    json_t      *worker;

    need = check_worker_connections(facts) + CHECK_SPARE_DESCRIPTORS;

    json_array_foreach(json_object_get(facts, "workers"), i, worker) {
        limit = ctl_number(worker, "nofile");

        if (limit > 0 && limit < need) {
            doctor_say(report, DOCTOR_WARNING,
                       "set worker_rlimit_nofile, or LimitNOFILE= of its unit",
                       "a worker may have %" PRId64 " descriptors, and needs %"
                       PRId64 " for its worker_connections", limit, need);
            return;
        }
    }
}


/* A request takes its client's connection.  To each replica a worker has one
   connection, which all of its streams share. */
void
doctor_check_connections(const json_t *facts, doctor_report_t *report)
{
    size_t         i, k, nreplicas;
    json_t        *pool, *replica;
    int64_t        need, have, nworkers;
    const json_t  *conf, *workers;

    conf = json_object_get(facts, "conf");
    workers = json_object_get(facts, "workers");
    need = 0;
    nreplicas = 0;

    json_array_foreach(json_object_get(json_object_get(facts, "page"),
                                       "pools"), i, pool)
    {
        need += ctl_number(json_object_get(pool, "queue"), "size");

        json_array_foreach(json_object_get(pool, "replicas"), k, replica) {
            need += ctl_number(replica, "max_capacity");
            nreplicas++;
        }
    }

    nworkers = json_is_array(workers) ? (int64_t) json_array_size(workers)
               : conf_size(conf_word(conf_child(conf, "worker_processes"), 0),
                           1);
    nworkers = nworkers > 0 ? nworkers : 1;
    have = nworkers * (check_worker_connections(facts) - (int64_t) nreplicas);

    if (have < need) {
        doctor_say(report, DOCTOR_WARNING,
                   "set worker_connections in events{}, or a smaller size= of "
                   "llmgw_queue",
                   "%" PRId64 " workers take %" PRId64 " clients, and %"
                   PRId64 " may run or wait", nworkers, have, need);
    }
}


/*
 * The number of the directive in force: nginx inherits from outer blocks, and
 * has a default.
 */
static int64_t
check_number(const conf_scope_t *scope, const char *name, int64_t fallback)
{
    return conf_size(conf_word(conf_in_force(scope, name), 0), fallback);
}


/* The server{} of a location; its scope goes to *of.  NULL: there is none. */
static const json_t *
check_server(const conf_scope_t *scope, const conf_scope_t **of)
{
    for ( /* void */ ; scope != NULL; scope = scope->up) {
        if (scope->owner != NULL
            && strcmp(ctl_text(scope->owner, "name"), "server") == 0)
        {
            *of = scope;
            return scope->owner;
        }
    }

    return NULL;
}


static void
check_server_number(const json_t *directive, const conf_scope_t *scope,
    check_fronts_t *fronts, const char *name, int64_t fallback, int64_t few,
    const char *remedy)
{
    int64_t              n;
    const json_t        *server;
    const conf_scope_t  *of;

    (void) directive;

    server = check_server(scope, &of);

    if (server == NULL || server == fronts->said) {
        return;
    }

    fronts->said = server;
    n = check_number(of, name, fallback);

    if (n < few) {
        doctor_say(fronts->report, DOCTOR_WARNING, remedy,
                   "%s is %" PRId64 " in the server at %s", name, n,
                   ctl_text(server, "at"));
    }
}


static void
check_streams_of(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    check_server_number(directive, scope, data, "http2_max_concurrent_streams",
                        CHECK_H2_STREAMS, CHECK_FEW_STREAMS,
                        "set http2_max_concurrent_streams 10000: a gRPC client "
                        "has one connection, and further calls wait in it");
}


void
doctor_check_streams(const json_t *facts, doctor_report_t *report)
{
    check_fronts_t  fronts = { report, NULL };

    conf_walk(json_object_get(facts, "conf"), "llmgw_pass", check_streams_of,
              &fronts);
}


static void
check_keepalive_of(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    check_server_number(directive, scope, data, "keepalive_requests",
                        CHECK_KEEPALIVE_REQUESTS, CHECK_FEW_REQUESTS,
                        "set keepalive_requests 1000000: after so many calls "
                        "a gRPC client's connection is ended");
}


void
doctor_check_keepalive(const json_t *facts, doctor_report_t *report)
{
    check_fronts_t  fronts = { report, NULL };

    conf_walk(json_object_get(facts, "conf"), "llmgw_pass",
              check_keepalive_of, &fronts);
}


static void
check_body_of(const json_t *directive, const conf_scope_t *scope, void *data)
{
    int64_t          bytes;
    doctor_report_t  *report = data;

    bytes = check_number(scope, "client_max_body_size", CHECK_BODY_BYTES);

    if (bytes != 0 && bytes < CHECK_SMALL_BODY) {
        doctor_say(report, DOCTOR_WARNING,
                   "set client_max_body_size 8m there, and 64m for images: "
                   "longer prompts are refused with 413",
                   "a request may have %" PRId64 " KiB in the location at %s",
                   bytes >> 10, ctl_text(directive, "at"));
    }
}


/* For this location, the module takes nginx's default as 63m. */
static void
check_body_openai(const json_t *directive, const conf_scope_t *scope,
    void *data)
{
    if (check_number(scope, "client_max_body_size", CHECK_BODY_BYTES)
        != CHECK_BODY_BYTES)
    {
        check_body_of(directive, scope, data);
    }
}


void
doctor_check_body(const json_t *facts, doctor_report_t *report)
{
    const json_t  *conf;

    conf = json_object_get(facts, "conf");
    conf_walk(conf, "llmgw_pass", check_body_of, report);
    conf_walk(conf, "llmgw_openai", check_body_openai, report);
}


void
doctor_check_zone(const json_t *facts, doctor_report_t *report)
{
    size_t       i, n;
    json_t      *pool, *zone;
    json_int_t   slots;

    json_array_foreach(json_object_get(json_object_get(facts, "page"),
                                       "pools"), i, pool)
    {
        zone = json_object_get(pool, "zone");
        slots = ctl_number(zone, "slots");
        n = json_array_size(json_object_get(pool, "replicas"));

        if (zone == NULL || slots == 0) {
            continue;
        }

        if ((json_int_t) n > slots) {
            doctor_say(report, DOCTOR_WRONG,
                       "give the upstream llmgw_zone NAME:SIZE with more",
                       "the zone of upstream \"%s\" has room for %"
                       JSON_INTEGER_FORMAT " of %zu replicas: the others get "
                       "no requests", ctl_text(pool, "name"), slots, n);

        } else if ((json_int_t) n * 2 > slots) {
            doctor_say(report, DOCTOR_WARNING,
                       "give the upstream llmgw_zone NAME:SIZE with more, "
                       "before replicas are added",
                       "the zone of upstream \"%s\" has room for %"
                       JSON_INTEGER_FORMAT " replicas, and there are %zu",
                       ctl_text(pool, "name"), slots, n);
        }
    }
}


static void
check_replica_model(const json_t *pool, const json_t *replica,
    doctor_report_t *report)
{
    const char  *model, *of_pool;

    of_pool = ctl_text(pool, "model");
    model = json_string_value(json_array_get(json_object_get(replica,
                                                             "models"), 0));

    if (of_pool[0] != '\0' && model != NULL && strcmp(model, of_pool) != 0
        && strcmp(ctl_text(replica, "state"), "ALIVE") == 0
        && !json_is_true(json_object_get(replica, "routable")))
    {
        doctor_say(report, DOCTOR_WRONG,
                   "give its engine its neighbours' model, or the model an "
                   "upstream of its own (llmgw_members PATH model=NAME)",
                   "replica \"%s\" serves \"%s\", and its pool \"%s\": it "
                   "gets no requests", ctl_text(replica, "id"), model, of_pool);
    }
}


/* Pools of one upstream come one after the other, and have the same value. */
static void
check_unrouted_models(const json_t *pool, const json_t *before,
    doctor_report_t *report)
{
    json_int_t  n;

    n = ctl_number(pool, "models_unrouted");

    if (n > 0 && strcmp(ctl_text(pool, "name"), ctl_text(before, "name")) != 0)
    {
        doctor_say(report, DOCTOR_WRONG,
                   "give llmgw_members models=NUMBER with more",
                   "upstream \"%s\" has fewer pools than models, by %"
                   JSON_INTEGER_FORMAT ": requests for the rest are refused",
                   ctl_text(pool, "name"), n);
    }
}


void
doctor_check_models(const json_t *facts, doctor_report_t *report)
{
    size_t   i, k;
    json_t  *pool, *pools, *replica;

    pools = json_object_get(json_object_get(facts, "page"), "pools");

    json_array_foreach(pools, i, pool) {
        check_unrouted_models(pool, i > 0 ? json_array_get(pools, i - 1)
                                          : NULL, report);

        json_array_foreach(json_object_get(pool, "replicas"), k, replica) {
            check_replica_model(pool, replica, report);
        }
    }
}
