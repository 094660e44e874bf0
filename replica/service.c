
/*
 * The replica's gRPC services: from a path to a handler.
 *
 * Our own methods take one message.  A call is looked up at its headers, its
 * message is decoded when it comes, and the handler runs when the client has
 * finished sending: until then a second message can still make the call
 * invalid.  An error is answered at once, and `is_answered` has the rest of the
 * request ignored.
 *
 * A method of the kind's own (engine_stream_t) gets each message as it comes,
 * and may answer at any time.
 *
 *   path -> service_find() -> on_message: decode -> on_end: method->handle()
 *                                                      |
 *                                 unary: service_reply()   Generate:
 *                                                          run_begin()
 *
 *   the kind's path -> open() -> message() ... -> end() -> close()
 */

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "health.pb-c.h"
#include "llmgateway.pb-c.h"
#include "replica/engine/run.h"
#include "replica/service.h"
#include "replica/shard/limits.h"


struct service_call_s {
    run_t                   *run;           /* of Generate; NULL: none yet */
    service_t               *service;
    llmgw_grpc_stream_t     *stream;
    const service_method_t  *method;
    ProtobufCMessage        *request;       /* decoded; NULL: none yet */
    void                    *own;           /* the call's object, of the kind's
                                               method */
    int                      is_answered;
};


/* --- answers */

static void
service_finish(service_call_t *call, llmgw_grpc_status_t status,
    const char *message)
{
    call->is_answered = 1;
    (void) llmgw_grpc_finish(call->stream, status, message, NULL, 0);
}


void
service_call_refuse(service_call_t *call, llmgw_grpc_status_t status,
    const char *format, ...)
{
    char     message[256];
    va_list  args;

    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);

    service_finish(call, status, message);
}


void
service_reply(service_call_t *call, const ProtobufCMessage *response)
{
    uint8_t  *out;

    out = llmgw_grpc_send_reserve(call->stream,
              protobuf_c_message_get_packed_size(response));

    if (out == NULL) {
        service_finish(call, LLMGW_GRPC_RESOURCE_EXHAUSTED, "out of memory");
        return;
    }

    (void) protobuf_c_message_pack(response, out);
    service_finish(call, LLMGW_GRPC_OK, NULL);
}


/* --- llmgateway.LLMReplica */

static void
service_generate(service_call_t *call)
{
    if (call->service->engine->kind->start == NULL) {
        service_call_refuse(call, LLMGW_GRPC_UNIMPLEMENTED,
                            "a %s generates nothing",
                            call->service->engine->kind->name);
        return;
    }

    call->is_answered = 1;
    call->run = run_begin(call->service->engine, call->stream,
                          (Llmgateway__GenerateRequest *) call->request);

    if (call->run != NULL) {
        call->request = NULL;       /* the run's */
    }
}


/* Drain is for operators of the replica, on this host. */
static int
service_may_drain(service_call_t *call)
{
    address_t  peer;

    grpc_conn_peer(llmgw_grpc_session_data(
                       llmgw_grpc_stream_session(call->stream)), &peer);

    if (call->service->is_remote_drain || address_is_loopback(&peer)) {
        return 1;
    }

    service_finish(call, LLMGW_GRPC_PERMISSION_DENIED,
                   "only from this host, see --remote-drain");
    return 0;
}


static void
service_drain(service_call_t *call)
{
    Llmgateway__DrainResponse  response = LLMGATEWAY__DRAIN_RESPONSE__INIT;

    if (service_may_drain(call)) {
        call->service->engine->is_draining = 1;
        response.success = 1;
        service_reply(call, &response.base);
    }
}


static void
service_undrain(service_call_t *call)
{
    Llmgateway__UndrainResponse  response = LLMGATEWAY__UNDRAIN_RESPONSE__INIT;

    if (!service_may_drain(call)) {
        return;
    }

    if (call->service->engine->is_stopping) {
        service_finish(call, LLMGW_GRPC_FAILED_PRECONDITION,
                       "replica is stopping");
        return;
    }

    call->service->engine->is_draining = 0;
    response.success = 1;
    service_reply(call, &response.base);
}


/* --- functions for methods of a program */

engine_t *
service_engine(const service_call_t *call)
{
    return call->service->engine;
}


const ProtobufCMessage *
service_request(const service_call_t *call)
{
    return call->request;
}


/* --- grpc.health.v1.Health */

/*
 * Whether the engine has this service: generating kinds serve Generate, and a
 * kind with a method of its own that one.
 */
static int
service_has(const engine_t *engine, const char *name)
{
    size_t       len;
    const char  *path;

    if (engine->kind->start != NULL) {
        return strcmp(name, "llmgateway.LLMReplica") == 0;
    }

    path = engine->kind->stream->path + 1;
    len = strcspn(path, "/");

    return strlen(name) == len && strncmp(name, path, len) == 0;
}


static void
service_check(service_call_t *call)
{
    const char  *name;
    engine_t    *engine;

    Grpc__Health__V1__HealthCheckResponse  response =
        GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;

    engine = call->service->engine;
    name = ((Grpc__Health__V1__HealthCheckRequest *) call->request)->service;

    if (*name != '\0' && !service_has(engine, name)) {
        service_finish(call, LLMGW_GRPC_NOT_FOUND, "unknown service");
        return;
    }

    response.status = engine_is_draining(engine)
                      || engine->facts.state != ENGINE_READY
        ? GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
        : GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING;

    service_reply(call, &response.base);
}


/* --- dispatch */

static const service_method_t  service_methods[] = {

    { "/llmgateway.LLMReplica/Generate",
      &llmgateway__generate_request__descriptor, service_generate },

    { "/llmgateway.LLMReplica/Drain",
      &llmgateway__drain_request__descriptor, service_drain },

    { "/llmgateway.LLMReplica/Undrain",
      &llmgateway__undrain_request__descriptor, service_undrain },

    { "/grpc.health.v1.Health/Check",
      &grpc__health__v1__health_check_request__descriptor, service_check },

    { .path = NULL }
};


static const service_method_t *
service_find(const service_method_t *methods, const char *path)
{
    const service_method_t  *m;

    for (m = methods; m != NULL && m->path != NULL; m++) {
        if (strcmp(m->path, path) == 0) {
            return m;
        }
    }

    return NULL;
}


static const engine_stream_t *
service_stream(const service_call_t *call)
{
    return call->service->engine->kind->stream;
}


/* A method that is off by default answers with a hint. */
static void
service_refuse_method(service_call_t *call, const char *path)
{
    static const llmgw_grpc_field_t  disabled[] = {
        { "llmgw-reason", SHARD_DISABLED }
    };

    if (strcmp(path, SHARD_FORWARD) != 0) {
        service_call_refuse(call, LLMGW_GRPC_UNIMPLEMENTED,
                            "unknown method \"%s\"", path);
        return;
    }

    call->is_answered = 1;
    (void) llmgw_grpc_finish(call->stream, LLMGW_GRPC_UNIMPLEMENTED,
                             "this replica is no shard, see --shard",
                             disabled, 1);
}


static void
service_route(service_call_t *call, const char *path)
{
    const engine_stream_t  *own;

    own = service_stream(call);

    if (own != NULL && strcmp(own->path, path) == 0) {
        call->is_answered = 1;
        call->own = own->open(call->service->engine, call->stream);
        return;
    }

    call->method = service_find(service_methods, path);

    if (call->method == NULL) {
        call->method = service_find(call->service->methods, path);
    }

    if (call->method == NULL) {
        service_refuse_method(call, path);
    }
}


static void
service_on_request(llmgw_grpc_stream_t *stream)
{
    service_call_t  *call;

    call = calloc(1, sizeof(service_call_t));

    if (call == NULL) {
        (void) llmgw_grpc_finish(stream, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                                 "out of memory", NULL, 0);
        return;
    }

    llmgw_grpc_stream_set_data(stream, call);
    call->stream = stream;
    call->service = grpc_conn_data(llmgw_grpc_session_data(
                                       llmgw_grpc_stream_session(stream)));
    service_route(call, llmgw_grpc_stream_path(stream));
}


static void
service_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    service_call_t  *call;

    (void) llmgw_grpc_stream_consume(stream, wire_bytes);
    call = llmgw_grpc_stream_data(stream);

    if (call != NULL && call->own != NULL) {
        service_stream(call)->message(call->own, data, len);
        return;
    }

    if (call == NULL || call->is_answered) {
        return;
    }

    if (call->request != NULL) {
        service_finish(call, LLMGW_GRPC_INVALID_ARGUMENT,
                       "more than one message");
        return;
    }

    call->request = protobuf_c_message_unpack(call->method->request, NULL, len,
                                              data);

    if (call->request == NULL) {
        service_finish(call, LLMGW_GRPC_INVALID_ARGUMENT, "malformed message");
    }
}


static void
service_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    service_call_t  *call;

    call = llmgw_grpc_stream_data(stream);

    if (call != NULL && call->own != NULL) {
        service_stream(call)->end(call->own, (llmgw_grpc_status_t) status,
                                  message);
        return;
    }

    if (call == NULL || call->is_answered) {
        return;
    }

    if (status != LLMGW_GRPC_OK) {
        service_finish(call, (llmgw_grpc_status_t) status, message);
        return;
    }

    if (call->request == NULL) {
        service_finish(call, LLMGW_GRPC_INVALID_ARGUMENT, "no message");
        return;
    }

    call->method->handle(call);

    protobuf_c_message_free_unpacked(call->request, NULL);
    call->request = NULL;
}


static void
service_on_drained(llmgw_grpc_stream_t *stream)
{
    service_call_t  *call;

    call = llmgw_grpc_stream_data(stream);

    if (call == NULL) {
        return;
    }

    if (call->run != NULL) {
        run_drained(call->run);

    } else if (call->own != NULL) {
        service_stream(call)->drained(call->own);
    }
}


static void
service_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    service_call_t  *call;

    call = llmgw_grpc_stream_data(stream);

    if (call == NULL) {
        return;
    }

    if (call->run != NULL) {
        run_destroy(call->run);
    }

    if (call->own != NULL) {
        service_stream(call)->close(call->own);
    }

    protobuf_c_message_free_unpacked(call->request, NULL);
    free(call);
}


static const llmgw_grpc_callbacks_t  service_callbacks = {
    .on_request = service_on_request,
    .on_message = service_on_message,
    .on_end = service_on_end,
    .on_drained = service_on_drained,
    .on_close = service_on_close
};


llmgw_grpc_config_t
service_config(service_t *service)
{
    llmgw_grpc_config_t     config;
    const engine_stream_t  *own;

    memset(&config, 0, sizeof(config));
    config.callbacks = &service_callbacks;
    config.data = service;
    config.max_message_bytes = SERVICE_MESSAGE_BYTES;
    config.max_streams = SERVICE_STREAMS;
    config.stream_window_bytes = SERVICE_WINDOW_BYTES;
    config.unfinished = &service->unfinished;
    service->unfinished.max_bytes = SERVICE_UNFINISHED_BYTES;

    own = service->engine->kind->stream;

    if (own != NULL) {
        config.max_message_bytes = own->message_bytes;
        config.max_streams = own->streams;
        config.stream_window_bytes = own->window_bytes;
        service->unfinished.max_bytes = own->unfinished_bytes;
    }

    return config;
}
