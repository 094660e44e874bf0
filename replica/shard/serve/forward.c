
/*
 * Shard.Forward: a gRPC stream is a session's client.
 */

#include <stdlib.h>

#include "common/grpc/conn.h"
#include "replica/shard/serve/kind_inner.h"


/*
 * Streams of a connection: as many as there may be sessions, and as many that
 * are being refused or have just ended.
 */
#define FORWARD_STREAMS  (2 * SHARD_SESSIONS_MAX)

/* Limit of incomplete messages of all streams without a session: an Open has
   some hundred bytes, and there are at most SERVE_STREAMS_MAX of them. */
#define FORWARD_UNFINISHED_BYTES  (4 * 1024 * 1024)

typedef struct {
    kind_t               *kind;
    llmgw_grpc_stream_t  *stream;
    session_t            *session;
} forward_t;


/* --- a session's calls */

static void
forward_wake(const forward_t *f)
{
    grpc_conn_wake(llmgw_grpc_session_data(
                       llmgw_grpc_stream_session(f->stream)));
}


static int
forward_send(void *data, const Llmgateway__Shard__Reply *reply)
{
    uint8_t    *out;
    forward_t  *f;

    f = data;
    out = llmgw_grpc_send_reserve(f->stream,
              llmgateway__shard__reply__get_packed_size(reply));

    if (out == NULL) {
        return -1;
    }

    (void) llmgateway__shard__reply__pack(reply, out);
    forward_wake(f);

    return 0;
}


static size_t
forward_queued(void *data)
{
    return llmgw_grpc_stream_queued(((forward_t *) data)->stream);
}


static void
forward_finish(void *data, llmgw_grpc_status_t status, const char *reason,
    const char *text)
{
    forward_t           *f;
    llmgw_grpc_field_t   trailer = { "llmgw-reason", reason };

    f = data;
    (void) llmgw_grpc_finish(f->stream, status, text, &trailer,
                             *reason != '\0');
    forward_wake(f);
}


static void
forward_reset(void *data)
{
    forward_t  *f;

    f = data;
    llmgw_grpc_stream_reset(f->stream, 8);      /* CANCEL */
    forward_wake(f);
}


static const session_calls_t  forward_calls = {
    forward_send, forward_queued, forward_finish, forward_reset
};


/* --- the stream's events */

static const grpc_conn_options_t *
forward_conn(engine_t *engine)
{
    return &((kind_t *) engine->data)->tls.conn;
}



static void *
forward_open(engine_t *engine, llmgw_grpc_stream_t *stream)
{
    kind_t     *kind;
    forward_t  *f;

    kind = engine->data;
    f = calloc(1, sizeof(forward_t));

    if (f != NULL) {
        kind_enter(kind);
        f->kind = kind;
        f->stream = stream;
        f->session = session_create(kind->serve, &forward_calls, f);
    }

    if (f == NULL || f->session == NULL) {
        (void) llmgw_grpc_finish(stream, LLMGW_GRPC_RESOURCE_EXHAUSTED,
                                 "too many streams, or no memory", NULL, 0);
        free(f);
        return NULL;
    }

    return f;
}


static void
forward_message(void *call, const uint8_t *data, size_t len)
{
    forward_t  *f;

    f = call;
    kind_enter(f->kind);
    session_message(f->session, data, len);

    if (session_is_open(f->session)) {
        llmgw_grpc_stream_trust(f->stream, SHARD_MESSAGE_BYTES);
    }

    kind_leave(f->kind);
}


static void
forward_end(void *call, llmgw_grpc_status_t status, const char *text)
{
    forward_t  *f;

    f = call;
    kind_enter(f->kind);
    session_closing(f->session, status, text);
    kind_leave(f->kind);
}


static void
forward_drained(void *call)
{
    forward_t  *f;

    f = call;
    kind_enter(f->kind);
    session_drained(f->session);
    kind_leave(f->kind);
}


static void
forward_close(void *call)
{
    kind_t     *kind;
    forward_t  *f;

    f = call;
    kind = f->kind;
    kind_enter(kind);
    session_destroy(f->session);
    kind_leave(kind);
    free(f);
}


const engine_stream_t  forward_stream = {
    .path = SHARD_FORWARD,
    .message_bytes = SHARD_HEADER_BYTES,
    .unfinished_bytes = FORWARD_UNFINISHED_BYTES,
    .window_bytes = SHARD_WINDOW_BYTES,
    .streams = FORWARD_STREAMS,
    .conn = forward_conn,
    .open = forward_open,
    .message = forward_message,
    .end = forward_end,
    .drained = forward_drained,
    .close = forward_close
};
