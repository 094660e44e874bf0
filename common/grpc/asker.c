
#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/grpc/asker.h"


#define ASKER_HTTP2_CANCEL  8       /* CANCEL of RFC 9113 */


/*
 * Ends a question; the only place that does.  The stream is detached from the
 * asker first: its on_close may come when the asker is gone.
 */
static void
asker_end(asker_t *asker, asker_end_t end, int status, const char *text)
{
    ev_timer_stop(asker->loop, &asker->limit);

    if (asker->stream != NULL) {
        llmgw_grpc_stream_set_data(asker->stream, NULL);
        asker->stream = NULL;
    }

    asker->use->on_end(asker->data, end, status, text);
}


static void
asker_on_message(llmgw_grpc_stream_t *stream, const uint8_t *message,
    size_t len, size_t wire_bytes)
{
    asker_t  *asker;

    asker = llmgw_grpc_stream_data(stream);
    (void) llmgw_grpc_stream_consume(stream, wire_bytes);

    if (asker != NULL && asker->use->on_message != NULL) {
        asker->use->on_message(asker->data, message, len);
    }
}


static void
asker_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    asker_t  *asker;

    asker = llmgw_grpc_stream_data(stream);

    if (asker != NULL) {
        asker_end(asker, ASKER_ANSWERED, status, message);
    }
}


/*
 * If the connection ends, it closes its streams first, and then reports a
 * better reason itself.
 */
static void
asker_on_close(llmgw_grpc_stream_t *stream, uint32_t http2_error,
    int is_refused)
{
    asker_t  *asker;

    asker = llmgw_grpc_stream_data(stream);

    if (asker == NULL) {
        return;
    }

    if (grpc_conn_session(asker->conn) == NULL) {
        asker->stream = NULL;
        return;
    }

    asker_end(asker, ASKER_RESET, 0, "the stream was reset");
}


static const llmgw_grpc_callbacks_t  asker_callbacks = {
    .on_message = asker_on_message,
    .on_end = asker_on_end,
    .on_close = asker_on_close
};


static void
asker_on_closed(grpc_conn_t *conn, const char *reason)
{
    asker_t  *asker;

    asker = grpc_conn_data(conn);
    asker->conn = NULL;
    asker_end(asker, ASKER_BROKEN, 0,
              reason ? reason : "it closed the connection");
}


static void
asker_on_limit(struct ev_loop *loop, ev_timer *limit, int events)
{
    char      text[64];
    asker_t  *asker = limit->data;

    snprintf(text, sizeof(text), "no answer after %.3g s",
             asker->limit_ms / 1e3);
    asker_drop(asker);
    asker_end(asker, ASKER_SILENT, 0, text);
}


int
asker_connect(asker_t *asker, const grpc_conn_options_t *options,
    uint64_t timeout_ms)
{
    llmgw_grpc_config_t  config;

    if (asker->conn != NULL) {
        return 0;
    }

    memset(&config, 0, sizeof(config));
    config.callbacks = &asker_callbacks;
    config.data = asker;
    config.max_message_bytes = asker->use->max_message_bytes;

    asker->conn = grpc_conn_connect_with(asker->loop, &asker->address,
                                         options, &config, timeout_ms,
                                         asker_on_closed);

    return asker->conn ? 0 : -1;
}


int
asker_send(llmgw_grpc_stream_t *stream, const ProtobufCMessage *message)
{
    size_t    len;
    uint8_t  *out;

    len = message ? protobuf_c_message_get_packed_size(message) : 0;
    out = llmgw_grpc_send_reserve(stream, len);

    if (out == NULL) {
        return -1;
    }

    if (message != NULL) {
        (void) protobuf_c_message_pack(message, out);
    }

    return llmgw_grpc_half_close(stream) == LLMGW_GRPC_DONE ? 0 : -1;
}


static void
asker_arm(asker_t *asker, uint64_t limit_ms)
{
    asker->limit_ms = limit_ms;

    if (limit_ms != 0) {
        ev_timer_set(&asker->limit, (double) limit_ms / 1000, 0.);
        ev_timer_start(asker->loop, &asker->limit);
    }
}


int
asker_ask(asker_t *asker, const asker_question_t *question)
{
    llmgw_grpc_call_t     call;
    llmgw_grpc_stream_t  *stream;

    assert(asker->conn != NULL && !asker_is_asked(asker));

    memset(&call, 0, sizeof(call));
    call.path = question->path;
    call.authority = question->authority;
    call.timeout_ms = question->deadline_ms;
    errno = ENOMEM;

    if (llmgw_grpc_call(grpc_conn_session(asker->conn), &call, &stream)
        != LLMGW_GRPC_DONE)
    {
        return -1;
    }

    if (asker_send(stream, question->message) != 0) {
        llmgw_grpc_stream_reset(stream, ASKER_HTTP2_CANCEL);
        errno = ENOMEM;
        return -1;
    }

    llmgw_grpc_stream_set_data(stream, asker);
    asker->stream = stream;
    asker_arm(asker, question->limit_ms);
    grpc_conn_wake(asker->conn);

    return 0;
}


int
asker_is_asked(const asker_t *asker)
{
    return asker->stream != NULL;
}


void
asker_drop(asker_t *asker)
{
    grpc_conn_t  *conn;

    ev_timer_stop(asker->loop, &asker->limit);

    if (asker->stream != NULL) {
        llmgw_grpc_stream_set_data(asker->stream, NULL);
        asker->stream = NULL;
    }

    conn = asker->conn;
    asker->conn = NULL;

    if (conn != NULL) {
        grpc_conn_destroy(conn);
    }
}


void
asker_init(asker_t *asker, struct ev_loop *loop, const address_t *address,
    const asker_use_t *use, void *data)
{
    memset(asker, 0, sizeof(asker_t));
    asker->loop = loop;
    asker->address = *address;
    asker->use = use;
    asker->data = data;

    ev_init(&asker->limit, asker_on_limit);
    ev_set_priority(&asker->limit, EV_MINPRI);  /* after answers that came in
                                                   time */
    asker->limit.data = asker;
}
