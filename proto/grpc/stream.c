
/*
 * A stream from its creation to on_close, and its incoming side.
 *
 *             on_request / llmgw_grpc_call
 *                        |
 *                        v        END_STREAM, or an invalid message
 *                     reading ------------------------------> on_end
 *                        |                                        |
 *   reset (ours):        |  the peer's RST_STREAM, GOAWAY,        | both
 *   silent until its     |  the session's end                     | sides
 *   RST_STREAM is out    v                                        v ended
 *                     on_close, once, then the stream is no more
 *
 * nghttp2 reports every stream that it closes, but not the streams it still has
 * when it is freed, nor calls that it could not begin.  Hence the session's own
 * list, and llmgw_grpc_stream_abandon().
 */

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


llmgw_grpc_stream_t *
llmgw_grpc_stream_create(llmgw_grpc_session_t *session)
{
    llmgw_grpc_stream_t  *stream;

    stream = session->spare;

    if (stream != NULL) {
        session->spare = stream->next;
        session->nspare--;

    } else {
        stream = aligned_alloc(LLMGW_GRPC_CACHE_LINE,
                               sizeof(llmgw_grpc_stream_t));
        if (stream == NULL) {
            return NULL;
        }

        memset(stream, 0, sizeof(llmgw_grpc_stream_t));
    }

    stream->session = session;
    stream->status = LLMGW_GRPC_NO_STATUS;
    stream->max_message_bytes = session->max_message_bytes;
    stream->next = session->streams;

    if (stream->next != NULL) {
        stream->next->prev = stream;
    }

    session->streams = stream;
    session->nstreams++;

    return stream;
}


static void
stream_unlink(llmgw_grpc_stream_t *stream)
{
    llmgw_grpc_session_t  *session;

    session = stream->session;

    if (stream->prev != NULL) {
        stream->prev->next = stream->next;

    } else {
        session->streams = stream->next;
    }

    if (stream->next != NULL) {
        stream->next->prev = stream->prev;
    }

    session->nstreams--;
}


/*
 * Sets the number of bytes that are counted for the stream's unfinished
 * message.  -1: with them the sessions are over their common limit.
 */
static int
stream_count(llmgw_grpc_stream_t *stream, size_t bytes)
{
    llmgw_grpc_unfinished_t  *unfinished;

    unfinished = stream->session->unfinished;

    if (unfinished == NULL || bytes == stream->unfinished_bytes) {
        return 0;
    }

    unfinished->bytes += bytes - stream->unfinished_bytes;
    stream->unfinished_bytes = bytes;

    return unfinished->bytes > unfinished->max_bytes ? -1 : 0;
}


/* Drops queued bytes, which will never be sent. */
static void
stream_unqueue(llmgw_grpc_stream_t *stream)
{
    stream->session->nunsent -= llmgw_grpc_stream_queued(stream) != 0;
    llmgw_grpc_buf_clear(&stream->out);
    stream->tail_len = 0;
}


/* Zeroes all but the buffers' memory, which the next stream may use. */
static void
stream_recycle(llmgw_grpc_stream_t *stream)
{
    llmgw_grpc_buf_t  out, text, trailers, body;

    out = stream->out;
    text = stream->text;
    trailers = stream->trailers;
    body = stream->in.body;

    memset(stream, 0, sizeof(llmgw_grpc_stream_t));

    stream->out = out;
    stream->text = text;
    stream->trailers = trailers;
    stream->in.body = body;

    llmgw_grpc_buf_clear(&stream->out);
    llmgw_grpc_buf_clear(&stream->text);
    llmgw_grpc_buf_clear(&stream->trailers);
    llmgw_grpc_buf_clear(&stream->in.body);
}


void
llmgw_grpc_stream_free(llmgw_grpc_stream_t *stream)
{
    llmgw_grpc_session_t  *session;

    session = stream->session;

    (void) stream_count(stream, 0);
    stream_unqueue(stream);
    stream_unlink(stream);

    if (session->nspare < LLMGW_GRPC_SPARE_STREAMS) {
        stream_recycle(stream);
        stream->next = session->spare;
        session->spare = stream;
        session->nspare++;
        return;
    }

    llmgw_grpc_buf_done(&stream->out);
    llmgw_grpc_buf_done(&stream->text);
    llmgw_grpc_buf_done(&stream->trailers);
    llmgw_grpc_buf_done(&stream->in.body);
    free(stream);
}


void
llmgw_grpc_stream_close(llmgw_grpc_stream_t *stream, uint32_t error,
    int is_refused)
{
    int                    is_orderly;
    llmgw_grpc_session_t  *session;

    session = stream->session;

    is_orderly = session->is_server ? stream->is_out_ended
                                    : stream->is_in_ended;

    if (error == NGHTTP2_NO_ERROR && !is_orderly) {
        error = NGHTTP2_INTERNAL_ERROR;
    }

    if (session->drained == stream) {
        session->drained = NULL;
    }

    stream->is_reset = 1;

    if (session->callbacks->on_close != NULL) {
        session->callbacks->on_close(stream, error, is_refused);
    }

    llmgw_grpc_stream_free(stream);
}


void
llmgw_grpc_stream_abandon(llmgw_grpc_stream_t *stream, uint32_t error)
{
    llmgw_grpc_session_t  *session;

    session = stream->session;

    (void) nghttp2_session_set_stream_user_data(session->h2, stream->id, NULL);

    if (!stream->is_reset) {
        (void) nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE,
                                         stream->id, error);
    }

    llmgw_grpc_stream_close(stream, error, 1);
}


void
llmgw_grpc_stream_reset(llmgw_grpc_stream_t *stream, uint32_t http2_error)
{
    if (stream->is_reset) {
        return;
    }

    stream->is_reset = 1;
    stream_unqueue(stream);

    if (nghttp2_submit_rst_stream(stream->session->h2, NGHTTP2_FLAG_NONE,
                                  stream->id, http2_error)
        != 0)
    {
        stream->session->failed = LLMGW_GRPC_ENOMEM;
    }
}


static void
stream_tell_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    const llmgw_grpc_callbacks_t  *cb;

    stream->is_in_ended = 1;
    cb = stream->session->callbacks;

    if (cb->on_end != NULL) {
        cb->on_end(stream, status, message);
    }
}


/* This message cannot be read, and so nothing after it can be read. */
static void
stream_refuse(llmgw_grpc_stream_t *stream, llmgw_grpc_read_t why)
{
    int          status;
    const char  *message;

    /* to a client it means that the peer's response cannot be read */
    status = stream->session->is_server ? LLMGW_GRPC_RESOURCE_EXHAUSTED
                                        : LLMGW_GRPC_INTERNAL;

    switch (why) {

    case LLMGW_GRPC_READ_COMPRESSED:
        status = stream->session->is_server ? LLMGW_GRPC_UNIMPLEMENTED
                                            : LLMGW_GRPC_INTERNAL;
        message = "compressed messages are not supported";
        break;

    case LLMGW_GRPC_READ_TOO_LARGE:
        message = "message is larger than the limit";
        break;

    case LLMGW_GRPC_READ_FULL:
        message = "too much is held of unfinished messages";
        break;

    default:
        message = "out of memory";
    }

    llmgw_grpc_buf_done(&stream->in.body);
    (void) stream_count(stream, 0);
    stream_tell_end(stream, status, message);

    if (!stream->session->is_server) {
        llmgw_grpc_stream_reset(stream, NGHTTP2_CANCEL);
    }
}


/* 1: nghttp2 was notified, and may have something to send. */
static int
stream_give_back(llmgw_grpc_stream_t *stream, size_t wire_bytes)
{
    if (wire_bytes == 0 || stream->is_reset) {
        return 0;
    }

    stream->kept_back += (uint32_t) wire_bytes;

    if (stream->kept_back <= stream->session->keep_back) {
        return 0;
    }

    if (nghttp2_session_consume_stream(stream->session->h2, stream->id,
                                       stream->kept_back)
        != 0)
    {
        stream->session->failed = LLMGW_GRPC_ENOMEM;
    }

    stream->kept_back = 0;

    return 1;
}


int
llmgw_grpc_stream_consume(llmgw_grpc_stream_t *stream, size_t wire_bytes)
{
    return stream_give_back(stream, llmgw_grpc_reader_release(&stream->in,
                                                              wire_bytes));
}


/*
 * 1: the body is a proxy's error page, not gRPC: its HTTP status gives the
 * status at the end.
 */
static int
stream_is_foreign(llmgw_grpc_stream_t *stream)
{
    if (!stream->session->is_server
        && (!stream->is_grpc || stream->http_status != 200))
    {
        stream->is_foreign = 1;
    }

    return stream->is_foreign;
}


void
llmgw_grpc_stream_receive(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len)
{
    llmgw_grpc_read_t              rc;
    llmgw_grpc_message_t           message;
    const llmgw_grpc_callbacks_t  *cb;

    if (stream->is_reset || stream->is_in_ended) {
        return;
    }

    if (stream_is_foreign(stream)) {
        (void) stream_give_back(stream, len);
        return;
    }

    cb = stream->session->callbacks;

    for ( ;; ) {
        rc = llmgw_grpc_reader_next(&stream->in,
                                    stream->max_message_bytes,
                                    &data, &len, &message);

        if (rc != LLMGW_GRPC_READ_MESSAGE) {
            break;
        }

        if (cb->on_message != NULL) {
            cb->on_message(stream, message.data, message.len,
                           message.wire_bytes);

        } else {
            (void) llmgw_grpc_stream_consume(stream, message.wire_bytes);
        }

        if (stream->is_reset) {
            return;
        }
    }

    if (rc == LLMGW_GRPC_READ_MORE && !stream->is_trusted
        && stream_count(stream, llmgw_grpc_buf_len(&stream->in.body)) != 0)
    {
        rc = LLMGW_GRPC_READ_FULL;
    }

    if (rc != LLMGW_GRPC_READ_MORE) {
        stream_refuse(stream, rc);
        return;
    }

    (void) llmgw_grpc_stream_consume(stream, 0);
}


/* The status that a client gets at the end: see PROTOCOL-HTTP2.md. */
static int
stream_status(llmgw_grpc_stream_t *stream, const char **message)
{
    *message = "";

    if (stream->status == LLMGW_GRPC_NO_STATUS) {
        *message = "response has no grpc-status";
        return llmgw_grpc_status_of_http(stream->http_status);
    }

    if (stream->status == LLMGW_GRPC_OK && stream->is_foreign) {
        *message = "response is not gRPC";
        return llmgw_grpc_status_of_http(stream->http_status);
    }

    if (stream->status == LLMGW_GRPC_OK
        && llmgw_grpc_reader_is_within(&stream->in))
    {
        *message = "response ended within a message";
        return LLMGW_GRPC_INTERNAL;
    }

    if (llmgw_grpc_buf_len(&stream->text) > 0) {
        *message = (char *) stream->text.data;
    }

    return stream->status;
}


void
llmgw_grpc_stream_end(llmgw_grpc_stream_t *stream)
{
    int          status;
    const char  *message;

    if (stream->is_reset || stream->is_in_ended) {
        return;
    }

    if (!stream->session->is_server) {
        status = stream_status(stream, &message);
        stream_tell_end(stream, status, message);

        /* The server's response is complete: it will not read our rest. */
        if (nghttp2_session_get_stream_local_close(stream->session->h2,
                                                   stream->id) == 0)
        {
            llmgw_grpc_stream_reset(stream, NGHTTP2_NO_ERROR);
        }

        return;
    }

    if (llmgw_grpc_reader_is_within(&stream->in)) {
        stream_tell_end(stream, LLMGW_GRPC_INVALID_ARGUMENT,
                        "request ended within a message");
        return;
    }

    stream_tell_end(stream, LLMGW_GRPC_OK, "");
}


llmgw_grpc_session_t *
llmgw_grpc_stream_session(llmgw_grpc_stream_t *stream)
{
    return stream->session;
}


void *
llmgw_grpc_stream_data(const llmgw_grpc_stream_t *stream)
{
    return stream->data;
}


void
llmgw_grpc_stream_set_data(llmgw_grpc_stream_t *stream, void *data)
{
    stream->data = data;
}


void
llmgw_grpc_stream_trust(llmgw_grpc_stream_t *stream, size_t max_message_bytes)
{
    stream->is_trusted = 1;
    stream->max_message_bytes = max_message_bytes;
    (void) stream_count(stream, 0);
}
