
/*
 * The callbacks that nghttp2 calls: each finds the stream and passes the event
 * on.  They always return 0.  An error that ends the session is stored in
 * session->failed, which recv and write return: if a callback returned an
 * error, nghttp2 would report only that one failed.
 */

#include <string.h>

#include "proto/grpc/session_inner.h"


static llmgw_grpc_stream_t *
stream_of(nghttp2_session *h2, int32_t id)
{
    return nghttp2_session_get_stream_user_data(h2, id);
}


static int
on_begin_headers(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    llmgw_grpc_session_t  *session;

    session = data;
    llmgw_grpc_block_init(&session->block);

    return 0;
}


static int
on_header(nghttp2_session *h2, const nghttp2_frame *frame,
    const uint8_t *name, size_t name_len, const uint8_t *value,
    size_t value_len, uint8_t flags, void *data)
{
    llmgw_grpc_session_t  *session;

    session = data;

    if (frame->hd.type != NGHTTP2_HEADERS) {
        return 0;
    }

    session->role->field(session, frame, (char *) name, name_len,
                         (char *) value, value_len);

    return 0;
}


static int
on_data_chunk(nghttp2_session *h2, uint8_t flags, int32_t id,
    const uint8_t *bytes, size_t len, void *data)
{
    llmgw_grpc_stream_t   *stream;
    llmgw_grpc_session_t  *session;

    session = data;
    session->nempty_frames = 0;
    session->received += len;

    stream = stream_of(h2, id);
    if (stream != NULL) {
        llmgw_grpc_stream_receive(stream, bytes, len);
    }

    return 0;
}


static void
tell_goaway(llmgw_grpc_session_t *session)
{
    if (session->is_goaway_told) {
        return;
    }

    session->is_goaway_told = 1;

    if (session->callbacks->on_goaway != NULL) {
        session->callbacks->on_goaway(session);
    }
}


/*
 * Refuses the calls over the peer's limit, since nghttp2 would keep their
 * HEADERS until other calls have ended, or for ever.  The newest calls are
 * first in the list, so these are refused.
 */
static void
refuse_unsent(llmgw_grpc_session_t *session, size_t max_calls)
{
    llmgw_grpc_stream_t  *stream, *next;

    for (stream = session->streams; stream != NULL; stream = next) {
        next = stream->next;

        if (session->nstreams <= max_calls) {
            return;
        }

        if (!stream->is_sent) {
            llmgw_grpc_stream_abandon(stream, NGHTTP2_REFUSED_STREAM);
        }
    }
}


static void
on_settings(llmgw_grpc_session_t *session, const nghttp2_frame *frame)
{
    if (frame->hd.flags & NGHTTP2_FLAG_ACK) {
        return;
    }

    if (session->is_server) {
        session->has_settings = 1;
        return;
    }

    session->max_calls = nghttp2_session_get_remote_settings(session->h2,
                                      NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);

    if (session->max_calls == 0) {
        tell_goaway(session);
    }

    if (!session->has_settings) {
        session->has_settings = 1;

        if (session->callbacks->on_settings != NULL) {
            session->callbacks->on_settings(session);
        }
    }

    refuse_unsent(session, session->max_calls);
}


static void
on_data_end(llmgw_grpc_session_t *session, const nghttp2_frame *frame)
{
    if (frame->hd.length == 0
        && ++session->nempty_frames > LLMGW_GRPC_MAX_EMPTY_FRAMES)
    {
        (void) nghttp2_session_terminate_session(session->h2,
                                                 NGHTTP2_ENHANCE_YOUR_CALM);
    }
}


static void
on_stream_frame(llmgw_grpc_session_t *session, const nghttp2_frame *frame)
{
    llmgw_grpc_stream_t  *stream;

    if (frame->hd.type == NGHTTP2_HEADERS
        && frame->headers.cat == NGHTTP2_HCAT_REQUEST
        && session->role->request != NULL)
    {
        stream = session->role->request(session, frame->hd.stream_id);

    } else if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
        stream = stream_of(session->h2, frame->hd.stream_id);

    } else {
        if (frame->hd.type == NGHTTP2_DATA) {
            on_data_end(session, frame);
        }

        return;
    }

    if (stream != NULL && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
        llmgw_grpc_stream_end(stream);
    }
}


static int
on_frame_recv(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    llmgw_grpc_session_t  *session;

    session = data;

    switch (frame->hd.type) {

    case NGHTTP2_DATA:
    case NGHTTP2_HEADERS:
        on_stream_frame(session, frame);
        break;

    case NGHTTP2_SETTINGS:
        on_settings(session, frame);
        break;

    case NGHTTP2_GOAWAY:
        tell_goaway(session);

        if (!session->is_server) {
            refuse_unsent(session, 0);
        }

        break;

    default:
        break;
    }

    return 0;
}


static int
on_stream_close(nghttp2_session *h2, int32_t id, uint32_t error, void *data)
{
    int                    is_refused;
    llmgw_grpc_stream_t   *stream;
    llmgw_grpc_session_t  *session;

    session = data;

    stream = stream_of(h2, id);
    if (stream == NULL) {
        return 0;
    }

    is_refused = 0;

    if (!session->is_server) {
        is_refused = !stream->is_sent
                     || (error == NGHTTP2_REFUSED_STREAM
                         && !stream->is_answered && !stream->is_reset);
    }

    (void) nghttp2_session_set_stream_user_data(h2, id, NULL);
    llmgw_grpc_stream_close(stream, error, is_refused);

    return 0;
}


static void
on_data_sent(llmgw_grpc_session_t *session)
{
    llmgw_grpc_stream_t  *stream;

    stream = session->drained;
    session->drained = NULL;

    if (stream == NULL || stream->is_reset || stream->is_out_ended
        || session->callbacks->on_drained == NULL
        || llmgw_grpc_stream_queued(stream) > 0)
    {
        return;
    }

    session->callbacks->on_drained(stream);
}


static int
on_frame_send(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    llmgw_grpc_session_t  *session;

    session = data;

    switch (frame->hd.type) {

    case NGHTTP2_DATA:
        on_data_sent(session);
        break;

    case NGHTTP2_HEADERS:
        session->role->sent(session, frame);
        break;

    case NGHTTP2_GOAWAY:
        if (frame->goaway.error_code != NGHTTP2_NO_ERROR) {
            session->failed = LLMGW_GRPC_EPROTO;
        }

        break;

    default:
        break;
    }

    return 0;
}


static ssize_t
on_send(nghttp2_session *h2, const uint8_t *bytes, size_t len, int flags,
    void *data)
{
    size_t                 room;
    llmgw_grpc_session_t  *session;

    session = data;

    room = session->out_capacity - session->out_bytes;
    if (room == 0) {
        return NGHTTP2_ERR_WOULDBLOCK;
    }

    if (len > room) {
        len = room;
    }

    memcpy(session->out + session->out_bytes, bytes, len);
    session->out_bytes += len;

    return (ssize_t) len;
}


void
llmgw_grpc_events_set(nghttp2_session_callbacks *callbacks)
{
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks,
                                                            on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks,
                                                              on_data_chunk);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                         on_frame_recv);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks,
                                                           on_stream_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks,
                                                         on_frame_send);
    nghttp2_session_callbacks_set_send_callback(callbacks, on_send);
    nghttp2_session_callbacks_set_send_data_callback(callbacks,
                                                     llmgw_grpc_source_send);
}
