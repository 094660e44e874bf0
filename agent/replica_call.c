
#include <stdlib.h>
#include <string.h>

#include "common/grpc_conn.h"
#include "replica_call.h"


#define REPLICA_CALL_MAX_MESSAGE_BYTES  4096
#define REPLICA_CALL_REASON_BYTES       128

struct replica_call_s {
    struct ev_loop        *loop;
    ev_timer               timer;       /* of an answer, or between tries */
    address_t              address;
    address_t              source;      /* loopback */
    grpc_conn_t           *conn;        /* NULL: none */
    replica_call_verb_t    verb;
    unsigned               tries;       /* left; 0: nothing is being said */
    char                   reason[REPLICA_CALL_REASON_BYTES];
    replica_call_done_pt   on_done;
    void                  *data;
};

static const char *const  replica_call_paths[] = {
    "/llmgateway.LLMReplica/Drain",
    "/llmgateway.LLMReplica/Undrain"
};


/* Streams tell of the end of a connection, too: it is nobody's by then. */
static void
replica_call_disconnect(replica_call_t *call)
{
    grpc_conn_t  *conn;

    conn = call->conn;
    call->conn = NULL;

    if (conn != NULL) {
        grpc_conn_destroy(conn);
    }
}


static void
replica_call_end(replica_call_t *call, int status, const char *message)
{
    call->tries = 0;
    ev_timer_stop(call->loop, &call->timer);
    replica_call_disconnect(call);
    call->on_done(call->data, call->verb, status, message);
}


static void
replica_call_arm(replica_call_t *call, double after_s)
{
    ev_timer_stop(call->loop, &call->timer);
    ev_timer_set(&call->timer, after_s, 0.);
    ev_timer_start(call->loop, &call->timer);
}


/* The try is over without an answer; the next, if any, after a pause. */
static void
replica_call_failed(replica_call_t *call, const char *reason)
{
    replica_call_disconnect(call);
    strncpy(call->reason, reason, sizeof(call->reason) - 1);

    if (--call->tries == 0) {
        replica_call_end(call, -1, call->reason);
        return;
    }

    replica_call_arm(call, REPLICA_CALL_PAUSE_S);
}


static void
replica_call_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len, size_t wire_bytes)
{
    llmgw_grpc_stream_consume(stream, wire_bytes);
}


static void
replica_call_answered(llmgw_grpc_stream_t *stream, int status,
    const char *message)
{
    replica_call_t  *call;

    call = llmgw_grpc_stream_data(stream);

    if (call->conn != NULL
        && grpc_conn_session(call->conn) == llmgw_grpc_stream_session(stream))
    {
        replica_call_end(call, status, message);
    }
}


static const llmgw_grpc_callbacks_t  replica_call_callbacks = {
    .on_message = replica_call_message,
    .on_end = replica_call_answered
};


static void
replica_call_closed(grpc_conn_t *conn, const char *reason)
{
    replica_call_t  *call;

    call = grpc_conn_data(conn);

    if (call->conn == conn) {
        call->conn = NULL;
        replica_call_failed(call, reason ? reason : "it closed the connection");
    }
}


/* NULL: as the kernel likes. */
static const address_t *
replica_call_source(const replica_call_t *call)
{
    return (REPLICA_CALL_TRIES - call->tries) % 2 == 0 ? &call->source : NULL;
}


static int
replica_call_connect(replica_call_t *call)
{
    llmgw_grpc_config_t  config;

    memset(&config, 0, sizeof(config));
    config.callbacks = &replica_call_callbacks;
    config.data = call;
    config.max_message_bytes = REPLICA_CALL_MAX_MESSAGE_BYTES;

    call->conn = grpc_conn_connect_from(call->loop, &call->address,
                                        replica_call_source(call), &config,
                                        REPLICA_CALL_TIMEOUT_S * 1000,
                                        replica_call_closed);

    return call->conn ? 0 : -1;
}


/* DrainRequest and UndrainRequest are empty. */
static void
replica_call_try(replica_call_t *call)
{
    llmgw_grpc_call_t     what;
    llmgw_grpc_stream_t  *stream;

    replica_call_arm(call, REPLICA_CALL_TIMEOUT_S);

    if (replica_call_connect(call) != 0) {
        replica_call_failed(call, "no socket");
        return;
    }

    memset(&what, 0, sizeof(what));
    what.path = replica_call_paths[call->verb];
    what.authority = "localhost";
    what.data = call;

    if (llmgw_grpc_call(grpc_conn_session(call->conn), &what, &stream)
        != LLMGW_GRPC_DONE)
    {
        replica_call_failed(call, "no stream");
        return;
    }

    llmgw_grpc_send_message(stream, (const uint8_t *) "", 0);
    llmgw_grpc_half_close(stream);
    grpc_conn_wake(call->conn);
}


static void
replica_call_due(struct ev_loop *loop, ev_timer *timer, int events)
{
    replica_call_t  *call = timer->data;

    if (call->conn != NULL) {
        replica_call_failed(call, "it does not answer");

    } else {
        replica_call_try(call);
    }
}


void
replica_call_say(replica_call_t *call, replica_call_verb_t verb)
{
    replica_call_drop(call);
    call->verb = verb;
    call->tries = REPLICA_CALL_TRIES;
    replica_call_try(call);
}


void
replica_call_drop(replica_call_t *call)
{
    call->tries = 0;
    ev_timer_stop(call->loop, &call->timer);
    replica_call_disconnect(call);
}


replica_call_t *
replica_call_create(struct ev_loop *loop, const address_t *address,
    replica_call_done_pt on_done, void *data)
{
    replica_call_t  *call;

    call = calloc(1, sizeof(replica_call_t));
    if (call == NULL) {
        return NULL;
    }

    call->loop = loop;
    call->address = *address;
    address_parse(address->ss.ss_family == AF_INET6 ? "[::1]:1"
                                                    : "127.0.0.1:1",
                  &call->source);
    address_set_port(&call->source, 0);
    call->on_done = on_done;
    call->data = data;

    ev_init(&call->timer, replica_call_due);
    call->timer.data = call;

    return call;
}


void
replica_call_destroy(replica_call_t *call)
{
    replica_call_drop(call);
    free(call);
}
