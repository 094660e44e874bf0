
/*
 * The replica's gRPC services, over common/grpc/conn.h.
 */

#ifndef SERVICE_H
#define SERVICE_H

#include "common/grpc/conn.h"
#include "replica/engine/engine.h"


/* A prompt: a body of 64 MB, as a gateway may let through, and the rest. */
#define SERVICE_MESSAGE_BYTES  (80 * 1024 * 1024)

/*
 * A message is put together here whatever the window; a gateway that may send
 * half a megabyte at once need not wait for us after each 64 kB.
 */
#define SERVICE_WINDOW_BYTES   (512 * 1024)

/*
 * What all clients together may have sent of messages that are not whole: six
 * of the longest prompts, or thousands of usual ones.
 */
#define SERVICE_UNFINISHED_BYTES  (512 * 1024 * 1024)

/* Streams one connection may have open, running and refused together. */
#define SERVICE_STREAMS        50000

typedef struct {
    engine_t  *engine;
    int        is_remote_drain;         /* Drain from any peer, not loopback */
    llmgw_grpc_unfinished_t  unfinished;
} service_t;

/* The configuration of a server for these services, which outlive it. */
llmgw_grpc_config_t service_config(service_t *service);

#endif /* SERVICE_H */
