
/*
 * The client's half: calls, and the responses to them.
 *
 * A response's fields go to its stream as they come.  :status comes first
 * and tells the kind of block: a block with it is a response (or a 1xx, which
 * is skipped), a block without it is the trailers.
 */

#include <stdlib.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


#define CALL_FIELDS  8


static void
response_status(llmgw_grpc_stream_t *stream, const char *value)
{
    llmgw_grpc_block_t  *block;

    /* nghttp2 has checked that the value has three digits */
    stream->http_status = atoi(value);

    block = &stream->session->block;
    block->is_response = 1;
    block->is_interim = stream->http_status < 200;

    stream->is_answered |= !block->is_interim;
}


static void
response_message(llmgw_grpc_stream_t *stream, const char *value, size_t len)
{
    uint8_t  *p;

    llmgw_grpc_buf_clear(&stream->text);

    p = llmgw_grpc_buf_reserve(&stream->text, len + 1);
    if (p == NULL) {
        stream->session->failed = LLMGW_GRPC_ENOMEM;
        return;
    }

    memcpy(p, value, len);
    p[llmgw_grpc_message_decode((char *) p, len)] = '\0';
}


static void
response_field(llmgw_grpc_stream_t *stream, int is_last, const char *name,
    size_t name_len, const char *value, size_t value_len)
{
    llmgw_grpc_block_t    *block;
    llmgw_grpc_session_t  *session;

    session = stream->session;
    block = &session->block;

    if (!llmgw_grpc_block_add(block, name_len, value_len)) {
        llmgw_grpc_stream_reset(stream, NGHTTP2_ENHANCE_YOUR_CALM);
        return;
    }

    if (llmgw_grpc_is_field(":status")) {
        response_status(stream, value);
        return;
    }

    if (block->is_interim) {
        return;
    }

    if (llmgw_grpc_is_field("grpc-status")) {
        stream->status = llmgw_grpc_status_decode(value, value_len);
        return;
    }

    if (llmgw_grpc_is_field("grpc-message")) {
        response_message(stream, value, value_len);
        return;
    }

    if (block->is_response && llmgw_grpc_is_field("content-type")) {
        stream->is_grpc = llmgw_grpc_is_grpc_type(value, value_len);
    }

    if (session->callbacks->on_field != NULL) {
        session->callbacks->on_field(stream, name, name_len, value, value_len,
                                     is_last || !block->is_response);
    }
}


static void
client_field(llmgw_grpc_session_t *session, const nghttp2_frame *frame,
    const char *name, size_t name_len, const char *value, size_t value_len)
{
    llmgw_grpc_stream_t  *stream;

    stream = nghttp2_session_get_stream_user_data(session->h2,
                                                  frame->hd.stream_id);

    if (stream != NULL && !stream->is_reset) {
        response_field(stream, frame->hd.flags & NGHTTP2_FLAG_END_STREAM,
                       name, name_len, value, value_len);
    }
}


static void
client_sent(llmgw_grpc_session_t *session, const nghttp2_frame *frame)
{
    llmgw_grpc_stream_t  *stream;

    stream = nghttp2_session_get_stream_user_data(session->h2,
                                                  frame->hd.stream_id);
    if (stream != NULL) {
        stream->is_sent = 1;
    }
}


static void
client_setting(const llmgw_grpc_config_t *config,
    nghttp2_settings_entry *entry)
{
    entry->settings_id = NGHTTP2_SETTINGS_ENABLE_PUSH;
    entry->value = 0;
}


llmgw_grpc_session_t *
llmgw_grpc_client_create(const llmgw_grpc_config_t *config)
{
    static const llmgw_grpc_role_t  client = {
        .open = nghttp2_session_client_new2,
        .setting = client_setting,
        .field = client_field,
        .sent = client_sent,
    };

    return llmgw_grpc_session_create(config, &client);
}


/* The name must outlive the frame; the value is copied. */
static void
nv_text(nghttp2_nv *nv, const char *name, const char *value)
{
    llmgw_grpc_nv(nv, name, strlen(name), value, strlen(value));
    nv->flags = NGHTTP2_NV_FLAG_NO_COPY_NAME;
}


static size_t
call_fields(nghttp2_nv *nv, const llmgw_grpc_call_t *call, char *timeout)
{
    static const nghttp2_nv  fixed[] = {
        llmgw_grpc_nv_literal(":method", "POST"),
        llmgw_grpc_nv_literal(":scheme", "http"),
        llmgw_grpc_nv_literal("te", "trailers"),
        llmgw_grpc_nv_literal("content-type", "application/grpc"),
        llmgw_grpc_nv_literal("grpc-accept-encoding", "identity"),
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
