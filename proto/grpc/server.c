
/*
 * The server's half: requests and their answers.  A program that only calls
 * need not link it.
 *
 * A request becomes a stream only when its whole header block has come and
 * is that of a gRPC request; until then its fields wait, packed, in the
 * session's one block.  So a request that is not gRPC is never reported: it
 * is answered here, with only an HTTP status (PROTOCOL-HTTP2.md: 415).
 */

#include <stdio.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


#define DEFAULT_MAX_STREAMS  100000
#define RESPONSE_FIELDS      3
#define STATUS_FIELDS        2


static const nghttp2_nv  response_fields[RESPONSE_FIELDS] = {
    llmgw_grpc_nv_literal(":status", "200"),
    llmgw_grpc_nv_literal("content-type", "application/grpc"),
    llmgw_grpc_nv_literal("grpc-accept-encoding", "identity"),
};


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
request_keep_field(llmgw_grpc_session_t *session, const char *name,
    size_t name_len, const char *value, size_t value_len)
{
    int                  rc;
    llmgw_grpc_block_t  *block;

    block = &session->block;
    rc = 0;

    if (!llmgw_grpc_block_add(block, name_len, value_len)) {
        return;
    }

    if (llmgw_grpc_is_field(":path")) {
        rc = llmgw_grpc_buf_append(&block->path, value, value_len);

    } else if (llmgw_grpc_is_field(":method")) {
        block->is_post = value_len == 4 && memcmp(value, "POST", 4) == 0;

    } else if (llmgw_grpc_is_field("content-type")) {
        block->is_grpc = llmgw_grpc_is_grpc_type(value, value_len);

    } else if (llmgw_grpc_is_field("grpc-timeout")) {
        block->timeout_ms = llmgw_grpc_timeout_decode(value, value_len);
    }

    if (rc == 0 && name[0] != ':' && session->callbacks->on_field != NULL) {
        rc = llmgw_grpc_pack(&block->fields, name, name_len, value, value_len);
    }

    if (rc != 0) {
        session->failed = LLMGW_GRPC_ENOMEM;
    }
}


/* The HTTP status that answers a request which is not gRPC; 0: it is gRPC. */
static int
request_http_status(const llmgw_grpc_block_t *block)
{
    if (block->bytes > LLMGW_GRPC_MAX_BLOCK_BYTES) {
        return 431;
    }

    if (llmgw_grpc_buf_len(&block->path) > LLMGW_GRPC_MAX_PATH_BYTES) {
        return 414;
    }

    if (!block->is_post) {
        return 405;
    }

    return block->is_grpc ? 0 : 415;
}


static void
request_refuse(llmgw_grpc_session_t *session, int32_t id, int http_status)
{
    char        status[16];
    size_t      n;
    nghttp2_nv  nv[2];

    n = (size_t) snprintf(status, sizeof(status), "%d", http_status);
    llmgw_grpc_nv(&nv[0], ":status", 7, status, n);
    llmgw_grpc_nv(&nv[1], "allow", 5, "POST", 4);

    if (nghttp2_submit_response(session->h2, id, nv,
                                http_status == 405 ? 2 : 1, NULL) != 0)
    {
        session->failed = LLMGW_GRPC_ENOMEM;
    }
}


static llmgw_grpc_stream_t *
request_stream(llmgw_grpc_session_t *session, int32_t id)
{
    nghttp2_extpri        fair;
    llmgw_grpc_buf_t      path;
    llmgw_grpc_stream_t  *stream;

    stream = llmgw_grpc_stream_create(session);

    if (stream == NULL
        || llmgw_grpc_buf_append(&session->block.path, "", 1) != 0)
    {
        session->failed = LLMGW_GRPC_ENOMEM;

        if (stream != NULL) {
            llmgw_grpc_stream_free(stream);
        }

        return NULL;
    }

    path = stream->text;
    stream->text = session->block.path;
    session->block.path = path;

    stream->id = id;
    stream->timeout_ms = session->block.timeout_ms;

    /*
     * streams alternate frame by frame, whatever priority the client asks for
     */
    fair.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY;
    fair.inc = 1;
    (void) nghttp2_session_change_extpri_stream_priority(session->h2, id,
                                                         &fair, 1);
    (void) nghttp2_session_set_stream_user_data(session->h2, id, stream);

    return stream;
}


static llmgw_grpc_stream_t *
server_request(llmgw_grpc_session_t *session, int32_t id)
{
    int                            http_status;
    size_t                         offset;
    nghttp2_nv                     nv;
    llmgw_grpc_stream_t           *stream;
    const llmgw_grpc_callbacks_t  *cb;

    http_status = request_http_status(&session->block);
    if (http_status != 0) {
        request_refuse(session, id, http_status);
        return NULL;
    }

    stream = request_stream(session, id);
    if (stream == NULL) {
        return NULL;
    }

    cb = session->callbacks;
    offset = 0;

    while (!stream->is_reset
           && llmgw_grpc_unpack(&session->block.fields, &offset, &nv))
    {
        cb->on_field(stream, (char *) nv.name, nv.namelen,
                     (char *) nv.value, nv.valuelen, 0);
    }

    if (!stream->is_reset && cb->on_request != NULL) {
        cb->on_request(stream);
    }

    return stream;
}


static void
server_field(llmgw_grpc_session_t *session, const nghttp2_frame *frame,
    const char *name, size_t name_len, const char *value, size_t value_len)
{
    if (frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
        request_keep_field(session, name, name_len, value, value_len);
    }
}


/* The response's HEADERS, before its first message. */
static llmgw_grpc_rc_t
server_answer(llmgw_grpc_stream_t *stream)
{
    int                    rc;
    nghttp2_data_provider  provider;

    if (stream->is_answered) {
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


/* The queue's last byte was taken: the trailers follow it. */
static int
server_end(llmgw_grpc_stream_t *stream, uint32_t *flags)
{
    int         rc;
    size_t      n, offset;
    nghttp2_nv  nv[LLMGW_GRPC_MAX_FIELDS + STATUS_FIELDS];

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


/* RFC 9113 8.1: the response is complete, stop the rest of the request. */
static void
server_sent(llmgw_grpc_session_t *session, const nghttp2_frame *frame)
{
    int32_t  id;

    id = frame->hd.stream_id;

    if ((frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
        && nghttp2_session_get_stream_remote_close(session->h2, id) == 0)
    {
        (void) nghttp2_submit_rst_stream(session->h2, NGHTTP2_FLAG_NONE, id,
                                         NGHTTP2_NO_ERROR);
    }
}


static void
server_setting(const llmgw_grpc_config_t *config,
    nghttp2_settings_entry *entry)
{
    entry->settings_id = NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS;
    entry->value = config->max_streams ? config->max_streams
                                       : DEFAULT_MAX_STREAMS;
}


llmgw_grpc_session_t *
llmgw_grpc_server_create(const llmgw_grpc_config_t *config)
{
    static const llmgw_grpc_role_t  server = {
        .open = nghttp2_session_server_new2,
        .setting = server_setting,
        .field = server_field,
        .request = server_request,
        .answer = server_answer,
        .end = server_end,
        .sent = server_sent,
    };

    return llmgw_grpc_session_create(config, &server);
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
    llmgw_grpc_stream_resume(stream);

    return LLMGW_GRPC_DONE;
}


const char *
llmgw_grpc_stream_path(const llmgw_grpc_stream_t *stream)
{
    if (!stream->session->is_server || stream->text.data == NULL) {
        return "";
    }

    return (char *) stream->text.data;
}


uint64_t
llmgw_grpc_stream_timeout_ms(const llmgw_grpc_stream_t *stream)
{
    return stream->timeout_ms;
}
