
/*
 * A stream's outgoing side.
 *
 * Messages and their prefixes wait in one byte queue per stream.  Frames are
 * cut from it as the windows and the caller's buffer allow, so a frame may
 * carry many messages and a message may take many frames.  Payload goes from
 * the queue straight into the caller's buffer (nghttp2's NO_COPY); only where
 * a frame does not fit the rest of that buffer, nghttp2 keeps a copy of it.
 * The end of a large message may stay where its caller has it (`tail`).
 *
 * nghttp2 asks for data until it is told that there is none now (DEFERRED);
 * it asks again once a new message resumes the stream.
 *
 *     no HEADERS --first message--> open --finish, half-close--> draining
 *         |                                                         |
 *         | finish: trailers-only                         queue empty:
 *         v                                          END_STREAM, or trailers
 *       ended <-----------------------------------------------------+
 */

#include <string.h>

#include "proto/grpc/session_inner.h"


#define FRAME_HEADER_BYTES  9


void
llmgw_grpc_nv(nghttp2_nv *nv, const char *name, size_t name_len,
    const char *value, size_t value_len)
{
    nv->name = (uint8_t *) name;
    nv->namelen = name_len;
    nv->value = (uint8_t *) value;
    nv->valuelen = value_len;
    nv->flags = NGHTTP2_NV_FLAG_NONE;
}


void
llmgw_grpc_stream_resume(llmgw_grpc_stream_t *stream)
{
    if (stream->is_deferred) {
        stream->is_deferred = 0;
        (void) nghttp2_session_resume_data(stream->session->h2, stream->id);
    }
}


/*
 * Moves the first n bytes of the queue to p.  Once a call's request is all
 * gone, the call never needs the memory again.
 */
static void
source_take(llmgw_grpc_stream_t *stream, uint8_t *p, size_t n)
{
    size_t  first;

    first = llmgw_grpc_buf_len(&stream->out);
    first = n < first ? n : first;

    if (first > 0) {
        memcpy(p, stream->out.data + stream->out.start, first);
        llmgw_grpc_buf_drop(&stream->out, first);
    }

    if (n > first) {
        memcpy(p + first, stream->tail, n - first);
        stream->tail += n - first;
        stream->tail_len -= n - first;
    }

    if (llmgw_grpc_stream_queued(stream) != 0) {
        return;
    }

    stream->session->nunsent--;

    if (stream->is_out_ended && !stream->session->is_server) {
        llmgw_grpc_buf_done(&stream->out);
    }
}


ssize_t
llmgw_grpc_source_read(nghttp2_session *h2, int32_t id, uint8_t *buf,
    size_t length, uint32_t *flags, nghttp2_data_source *source, void *data)
{
    size_t                 n, queued;
    llmgw_grpc_stream_t   *stream;
    llmgw_grpc_session_t  *session;

    stream = source->ptr;
    session = stream->session;

    queued = llmgw_grpc_stream_queued(stream);
    n = queued < length ? queued : length;

    if (n == 0 && !stream->is_out_ended) {
        stream->is_deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }

    if (n == queued) {
        if (!stream->is_out_ended) {
            session->drained = stream;

        } else {
            *flags |= NGHTTP2_DATA_FLAG_EOF;

            if (session->role->end != NULL
                && session->role->end(stream, flags) != 0)
            {
                return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
            }
        }
    }

    if (n == 0) {
        return 0;
    }

    if (FRAME_HEADER_BYTES + n <= session->out_capacity - session->out_bytes) {
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;

    } else {
        source_take(stream, buf, n);
    }

    return (ssize_t) n;
}


/* nghttp2 calls this right after the read that returned NO_COPY. */
int
llmgw_grpc_source_send(nghttp2_session *h2, nghttp2_frame *frame,
    const uint8_t *frame_header, size_t length, nghttp2_data_source *source,
    void *data)
{
    uint8_t               *p;
    llmgw_grpc_stream_t   *stream;
    llmgw_grpc_session_t  *session;

    stream = source->ptr;
    session = stream->session;
    p = session->out + session->out_bytes;

    memcpy(p, frame_header, FRAME_HEADER_BYTES);
    source_take(stream, p + FRAME_HEADER_BYTES, length);
    session->out_bytes += FRAME_HEADER_BYTES + length;

    return 0;
}


uint8_t *
llmgw_grpc_send_reserve(llmgw_grpc_stream_t *stream, size_t len)
{
    return llmgw_grpc_send_before(stream, len, NULL, 0);
}


uint8_t *
llmgw_grpc_send_before(llmgw_grpc_stream_t *stream, size_t len,
    const uint8_t *tail, size_t tail_len)
{
    int                       was_empty;
    uint8_t                  *p;
    const llmgw_grpc_role_t  *role;

    role = stream->session->role;

    if (stream->is_reset || stream->is_out_ended || stream->tail_len > 0
        || len > UINT32_MAX || tail_len > UINT32_MAX - len
        || (role->answer != NULL && role->answer(stream) != LLMGW_GRPC_DONE))
    {
        return NULL;
    }

    was_empty = llmgw_grpc_buf_len(&stream->out) == 0;

    p = llmgw_grpc_buf_reserve(&stream->out, LLMGW_GRPC_PREFIX_BYTES + len);
    if (p == NULL) {
        return NULL;
    }

    stream->tail = tail;
    stream->tail_len = tail_len;
    stream->session->nunsent += was_empty;

    llmgw_grpc_stream_resume(stream);

    return llmgw_grpc_prefix_write(p, len + tail_len);
}


llmgw_grpc_rc_t
llmgw_grpc_send_message(llmgw_grpc_stream_t *stream, const uint8_t *data,
    size_t len)
{
    uint8_t  *p;

    if (stream->is_reset || stream->is_out_ended) {
        return LLMGW_GRPC_ESTATE;
    }

    p = llmgw_grpc_send_reserve(stream, len);
    if (p == NULL) {
        return LLMGW_GRPC_ENOMEM;
    }

    if (len > 0) {
        memcpy(p, data, len);
    }

    return LLMGW_GRPC_DONE;
}


llmgw_grpc_rc_t
llmgw_grpc_half_close(llmgw_grpc_stream_t *stream)
{
    if (stream->is_reset || stream->is_out_ended) {
        return LLMGW_GRPC_ESTATE;
    }

    stream->is_out_ended = 1;
    llmgw_grpc_stream_resume(stream);

    return LLMGW_GRPC_DONE;
}


size_t
llmgw_grpc_stream_queued(const llmgw_grpc_stream_t *stream)
{
    return llmgw_grpc_buf_len(&stream->out) + stream->tail_len;
}
