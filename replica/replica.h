
/* A replica's process, as llmgw-replica and llmgw-simreplica have it. */

#ifndef REPLICA_H
#define REPLICA_H

#include "common/tls/endpoint.h"
#include "replica/agent_link.h"
#include "replica/cmdline.h"
#include "replica/launch/launch.h"
#include "replica/retire.h"
#include "replica/service.h"
#include "replica/standby/standby.h"


typedef struct {
    /* the program's: options as cmdline_read() filled them, and engine.kind */
    cmdline_t               *options;
    const service_method_t  *methods;   /* NULL: none */
    const standby_body_t    *body;      /* NULL: nothing but the process */
    engine_t                 engine;

    /* its own */
    log_t                    log;
    struct ev_loop          *loop;
    address_t                address;           /* of --listen */
    service_t                service;
    tls_endpoint_t           endpoint;
    grpc_server_t           *server;
    agent_link_t             link;
    retire_t                 retire;
    standby_t                standby;
    launch_t                 launch;
} replica_t;


/* Serves until the end, and returns the exit status. */
int replica_run(replica_t *replica);

#endif /* REPLICA_H */
