
/*
 * The replica's gRPC services, over common/grpc/conn.h.
 */

#ifndef SERVICE_H
#define SERVICE_H

#include <protobuf-c/protobuf-c.h>

#include "common/grpc/conn.h"
#include "replica/engine/engine.h"


/* A prompt: a body of 64 MB, as a gateway may let through, and the rest. */
#define SERVICE_MESSAGE_BYTES  (80 * 1024 * 1024)

/*
 * Messages are assembled here whatever the window is; with half a megabyte of
 * it a gateway need not wait for us after each 64 kB.
 */
#define SERVICE_WINDOW_BYTES   (512 * 1024)

/*
 * Limit on incomplete messages of all clients together: six of the longest
 * prompts, or thousands of usual ones.
 */
#define SERVICE_UNFINISHED_BYTES  (512 * 1024 * 1024)

/* Streams one connection may have open, running and refused together. */
#define SERVICE_STREAMS        50000

typedef struct service_call_s  service_call_t;

/* A method that takes one message and answers with one. */
typedef struct {
    const char                        *path;        /* NULL ends a table */
    const ProtobufCMessageDescriptor  *request;
    void                             (*handle)(service_call_t *call);
} service_method_t;

typedef struct {
    engine_t                *engine;
    const service_method_t  *methods;           /* of the program; NULL: none */
    int                      is_remote_drain;   /* Drain from any peer, not
                                                   loopback */
    llmgw_grpc_unfinished_t  unfinished;
} service_t;

/* The configuration of a server for these services, which outlive it. */
llmgw_grpc_config_t service_config(service_t *service);


/* --- for the methods of a program: each call is answered once, by
   service_reply() or service_call_refuse() */

engine_t *service_engine(const service_call_t *call);

/* The decoded request; the call frees it. */
const ProtobufCMessage *service_request(const service_call_t *call);

void service_reply(service_call_t *call, const ProtobufCMessage *response);
void service_call_refuse(service_call_t *call, llmgw_grpc_status_t status,
    const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif /* SERVICE_H */
