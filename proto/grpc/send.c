
/*
 * A stream's outgoing side.
 *
 * Messages wait, prefix and all, in one byte queue a stream; frames are cut
 * from it as the windows and the caller's buffer allow, so a frame may hold
 * many messages and a message many frames.  Payload goes from the queue
 * straight into the buffer that is written (nghttp2's NO_COPY); only where a
 * frame does not fit the buffer's rest nghttp2 keeps a copy and its place.
 *
 * nghttp2 asks for data until it is told that there is none now (DEFERRED);
 * then it asks no more until resumed, which a new message does.
 *
 *     no HEADERS --first message--> open --finish, half-close--> draining
 *         |                                                         |
 *         | finish: trailers-only                         queue empty:
 *         v                                          END_STREAM, or trailers
 *       ended <-----------------------------------------------------+
 */

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


#define FRAME_HEADER_BYTES  9
#define RESPONSE_FIELDS     3
#define CALL_FIELDS         8
#define STATUS_FIELDS       2

#define nv_literal(name, value)                                               \
    { (uint8_t *) name, (uint8_t *) value, sizeof(name) - 1,                  \
      sizeof(value) - 1,                                                      \
      NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE }


static const nghttp2_nv  response_fields[RESPONSE_FIELDS] = {
    nv_literal(":status", "200"),
    nv_literal("content-type", "application/grpc"),
    nv_literal("grpc-accept-encoding", "identity"),
};


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


/* A name that outlives the frame; the value is copied. */
static void
nv_text(nghttp2_nv *nv, const char *name, const char *value)
{
    llmgw_grpc_nv(nv, name, strlen(name), value, strlen(value));
    nv->flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
}


static llmgw_grpc_rc_t
rc_of_nghttp2(int rc)
{
    switch (rc) {

    case 0:
        return LLMGW_GRPC_DONE;

    case NGHTTP2_ERR_NOMEM:
        return LLMGW_GRPC_ENOMEM;

    default:
        return LLMGW_GRPC_ESTATE;
    }
}


static void
stream_resume(llmgw_grpc_stream_t *stream)
{
    if (stream->is_deferred) {
        stream->is_deferred = 0;
        (void) nghttp2_session_resume_data(stream->session->h2, stream->id);
    }
}


/* The queue's last byte is gone. */
static int
source_end(llmgw_grpc_stream_t *stream, uint32_t *flags)
{
    int         rc;
    size_t      n, offset;
    nghttp2_nv  nv[LLMGW_GRPC_MAX_FIELDS + STATUS_FIELDS];

    *flags |= NGHTTP2_DATA_FLAG_EOF;

    if (!stream->session->is_server) {
        return 0;
    }

    *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;

    n = 0;
    offset = 0;

    while (llmgw_grpc_unpack(&stream->trailers, &offset, &nv[n])) {
        n++;
    }

    rc = nghttp2_submit_trailer(stream->session->h2, stream->id, nv, n);
    llmgw_grpc_buf_done(&stream->trailers);

    return rc;
}


/*
 * n bytes of some are gone.  Behind a call's only message it will never need
 * the memory again.
 */
static void
source_drop(llmgw_grpc_stream_t *stream, size_t n)
{
    llmgw_grpc_buf_drop(&stream->out, n);

    if (llmgw_grpc_buf_len(&stream->out) != 0) {
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

    queued = llmgw_grpc_buf_len(&stream->out);
    n = queued < length ? queued : length;

    if (n == 0 && !stream->is_out_ended) {
        stream->is_deferred = 1;
        return NGHTTP2_ERR_DEFERRED;
    }

    if (n == queued) {
        if (!stream->is_out_ended) {
            session->drained = stream;

        } else if (source_end(stream, flags) != 0) {
            return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
        }
    }

    if (n == 0) {
        return 0;
    }

    if (FRAME_HEADER_BYTES + n <= session->out_capacity - session->out_bytes) {
        *flags |= NGHTTP2_DATA_FLAG_NO_COPY;

    } else {
        memcpy(buf, stream->out.data + stream->out.start, n);
        source_drop(stream, n);
    }

    return (ssize_t) n;
}


/* nghttp2 calls this at once after the read that said NO_COPY. */
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
    memcpy(p + FRAME_HEADER_BYTES, stream->out.data + stream->out.start,
           length);

    session->out_bytes += FRAME_HEADER_BYTES + length;
    source_drop(stream, length);

    return 0;
}


static size_t
call_fields(nghttp2_nv *nv, const llmgw_grpc_call_t *call, char *timeout)
{
    static const nghttp2_nv  fixed[] = {
        nv_literal(":method", "POST"),
        nv_literal(":scheme", "http"),
        nv_literal("te", "trailers"),
        nv_literal("content-type", "application/grpc"),
        nv_literal("grpc-accept-encoding", "identity"),
    };
    size_t                   i, n;

    n = 0;

    nv[n++] = fixed[0];
    nv[n++] = fixed[1];
    nv_text(&nv[n++], ":path", call->path);

    if (call->authority != NULL) {
        nv_text(&nv[n++], ":authority", call->authority);
    }

    for (i = 2; i < sizeof(fixed) / sizeof(fixed[0]); i++) {
        nv[n++] = fixed[i];
    }

    if (call->timeout_ms != 0) {
        llmgw_grpc_timeout_encode(timeout, call->timeout_ms);
        nv_text(&nv[n++], "grpc-timeout", timeout);
    }

    for (i = 0; i < call->nfields; i++) {
        nv_text(&nv[n], call->fields[i].name, call->fields[i].value);
        nv[n++].flags = NGHTTP2_NV_FLAG_NONE;
    }

    return n;
}


llmgw_grpc_rc_t
llmgw_grpc_call(llmgw_grpc_session_t *session, const llmgw_grpc_call_t *call,
    llmgw_grpc_stream_t **stream)
{
    char                    timeout[16];
    size_t                  n;
    int32_t                 id;
    nghttp2_nv              nv[CALL_FIELDS + LLMGW_GRPC_MAX_FIELDS];
    llmgw_grpc_stream_t    *made;
    nghttp2_data_provider   provider;

    if (call->nfields > LLMGW_GRPC_MAX_FIELDS
        || !llmgw_grpc_session_can_call(session))
    {
        return LLMGW_GRPC_ELIMIT;
    }

    made = llmgw_grpc_stream_create(session);
    if (made == NULL) {
        return LLMGW_GRPC_ENOMEM;
    }

    n = call_fields(nv, call, timeout);
    provider.source.ptr = made;
    provider.read_callback = llmgw_grpc_source_read;

    id = nghttp2_submit_request(session->h2, NULL, nv, n, &provider, made);

    if (id < 0) {
        llmgw_grpc_stream_free(made);
        return id == NGHTTP2_ERR_NOMEM ? LLMGW_GRPC_ENOMEM
                                       : LLMGW_GRPC_ELIMIT;
    }

    made->id = id;
    made->data = call->data;
    *stream = made;

    return LLMGW_GRPC_DONE;
}


/* The response's HEADERS, before its first message. */
static llmgw_grpc_rc_t
stream_answer(llmgw_grpc_stream_t *stream)
{
    int                    rc;
    nghttp2_data_provider  provider;

    if (!stream->session->is_server || stream->is_answered) {
        return LLMGW_GRPC_DONE;
    }

    provider.source.ptr = stream;
    provider.read_callback = llmgw_grpc_source_read;

    rc = nghttp2_submit_response(stream->session->h2, stream->id,
                                 response_fields, RESPONSE_FIELDS, &provider);
    if (rc == 0) {
        stream->is_answered = 1;
    }

    return rc_of_nghttp2(rc);
}


uint8_t *
llmgw_grpc_send_reserve(llmgw_grpc_stream_t *stream, size_t len)
{
    int        was_empty;
    uint8_t   *p;
    uint32_t   length;

    if (stream->is_reset || stream->is_out_ended || len > UINT32_MAX
        || stream_answer(stream) != LLMGW_GRPC_DONE)
    {
        return NULL;
    }

    was_empty = llmgw_grpc_buf_len(&stream->out) == 0;

    p = llmgw_grpc_buf_reserve(&stream->out, LLMGW_GRPC_PREFIX_BYTES + len);
    if (p == NULL) {
        return NULL;
    }

    stream->session->nunsent += was_empty;

    length = htonl((uint32_t) len);
    *p = 0;
    memcpy(p + 1, &length, sizeof(length));

    stream_resume(stream);

    return p + LLMGW_GRPC_PREFIX_BYTES;
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
    stream_resume(stream);

    return LLMGW_GRPC_DONE;
}


static int
pack_status(llmgw_grpc_buf_t *buf, llmgw_grpc_status_t status,
    const char *message)
{
    char    text[LLMGW_GRPC_MAX_MESSAGE_CHARS + 1];
    size_t  n;

    n = (size_t) snprintf(text, sizeof(text), "%d", (int) status);

    if (llmgw_grpc_pack(buf, "grpc-status", 11, text, n) != 0) {
        return -1;
    }

    if (message == NULL || message[0] == '\0') {
        return 0;
    }

    (void) llmgw_grpc_message_encode(text, sizeof(text), message,
                                     strlen(message));

    return llmgw_grpc_pack(buf, "grpc-message", 12, text, strlen(text));
}


static int
pack_trailers(llmgw_grpc_buf_t *buf, const llmgw_grpc_field_t *trailers,
    size_t n)
{
    size_t  i;

    for (i = 0; i < n; i++) {
        if (llmgw_grpc_pack(buf, trailers[i].name, strlen(trailers[i].name),
                            trailers[i].value, strlen(trailers[i].value))
            != 0)
        {
            return -1;
        }
    }

    return 0;
}


static llmgw_grpc_rc_t
finish_at_once(llmgw_grpc_stream_t *stream)
{
    int         rc;
    size_t      n, offset;
    nghttp2_nv  nv[RESPONSE_FIELDS + STATUS_FIELDS + LLMGW_GRPC_MAX_FIELDS];

    memcpy(nv, response_fields, sizeof(response_fields));
    n = RESPONSE_FIELDS;
    offset = 0;

    while (llmgw_grpc_unpack(&stream->trailers, &offset, &nv[n])) {
        n++;
    }

    rc = nghttp2_submit_response(stream->session->h2, stream->id, nv, n, NULL);
    llmgw_grpc_buf_done(&stream->trailers);

    if (rc == 0) {
        stream->is_answered = 1;
        stream->is_out_ended = 1;
    }

    return rc_of_nghttp2(rc);
}


llmgw_grpc_rc_t
llmgw_grpc_finish(llmgw_grpc_stream_t *stream, llmgw_grpc_status_t status,
    const char *message, const llmgw_grpc_field_t *trailers, size_t ntrailers)
{
    if (stream->is_reset || stream->is_out_ended
        || !stream->session->is_server)
    {
        return LLMGW_GRPC_ESTATE;
    }

    if (ntrailers > LLMGW_GRPC_MAX_FIELDS) {
        return LLMGW_GRPC_ELIMIT;
    }

    if (pack_status(&stream->trailers, status, message) != 0
        || pack_trailers(&stream->trailers, trailers, ntrailers) != 0)
    {
        llmgw_grpc_buf_done(&stream->trailers);
        return LLMGW_GRPC_ENOMEM;
    }

    if (!stream->is_answered) {
        return finish_at_once(stream);
    }

    stream->is_out_ended = 1;
    stream_resume(stream);

    return LLMGW_GRPC_DONE;
}


size_t
llmgw_grpc_stream_queued(const llmgw_grpc_stream_t *stream)
{
    return llmgw_grpc_buf_len(&stream->out);
}
