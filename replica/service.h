
/*
 * The replica's gRPC services, over common/grpc/conn.h.
 */

#ifndef SERVICE_H
#define SERVICE_H

#include "common/grpc/conn.h"
#include "replica/engine/sim/sim.h"


/* A prompt: twice what the documented gateway lets through. */
#define SERVICE_MESSAGE_BYTES  (16 * 1024 * 1024)

/* Streams one connection may have open, running and refused together. */
#define SERVICE_STREAMS        50000

typedef struct {
    engine_t        *engine;
    generate_t      *generate;
    int              is_remote_drain;   /* Drain from any peer, not loopback */
    unsigned short   random[3];         /* of erand48() */
} service_t;

/* The configuration of a server for these services. */
llmgw_grpc_config_t service_config(service_t *service);

#endif /* SERVICE_H */
