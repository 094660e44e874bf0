
/*
 * Header blocks.
 *
 * A request becomes a stream only when its whole block has come and is that
 * of a gRPC request; until then its fields wait, packed, in the session's one
 * block.  So nobody ever hears of a request that is not gRPC: it is answered
 * here, with an HTTP status and nothing else (PROTOCOL-HTTP2.md: 415).
 *
 * A response's fields go to its stream as they come.  Which block they are
 * in is seen from :status, which comes first: a block with it is a response
 * (or 1xx, which is passed over), a block without it are trailers.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


#define FIELD_OVERHEAD  32

#define is_field(literal)                                                     \
    (name_len == sizeof(literal) - 1                                          \
     && memcmp(name, literal, sizeof(literal) - 1) == 0)


static void
block_clear(llmgw_grpc_block_t *block)
{
    llmgw_grpc_buf_clear(&block->path);
    llmgw_grpc_buf_clear(&block->fields);
}


void
llmgw_grpc_block_init(llmgw_grpc_block_t *block)
{
    block_clear(block);

    block->bytes = 0;
    block->timeout_ms = 0;
    block->is_post = 0;
    block->is_grpc = 0;
    block->is_response = 0;
    block->is_interim = 0;
}


void
llmgw_grpc_block_done(llmgw_grpc_block_t *block)
{
    llmgw_grpc_buf_done(&block->path);
    llmgw_grpc_buf_done(&block->fields);
}


/* "application/grpc", alone or with "+proto", ";charset" or the like. */
static int
is_grpc_type(const char *value, size_t len)
{
    static const char  type[] = "application/grpc";
    const size_t       type_len = sizeof(type) - 1;

    if (len < type_len || memcmp(value, type, type_len) != 0) {
        return 0;
    }

    return len == type_len || value[type_len] == '+' || value[type_len] == ';';
}


static int
block_is_over_limit(llmgw_grpc_block_t *block, size_t name_len,
    size_t value_len)
{
    block->bytes += name_len + value_len + FIELD_OVERHEAD;

    return block->bytes > LLMGW_GRPC_MAX_BLOCK_BYTES;
}


void
llmgw_grpc_request_field(llmgw_grpc_session_t *session, const char *name,
    size_t name_len, const char *value, size_t value_len)
{
    int                  rc;
    llmgw_grpc_block_t  *block;

    block = &session->block;
    rc = 0;

    if (block_is_over_limit(block, name_len, value_len)) {
        return;
    }

    if (is_field(":path")) {
        rc = llmgw_grpc_buf_append(&block->path, value, value_len);

    } else if (is_field(":method")) {
        block->is_post = value_len == 4 && memcmp(value, "POST", 4) == 0;

    } else if (is_field("content-type")) {
        block->is_grpc = is_grpc_type(value, value_len);

    } else if (is_field("grpc-timeout")) {
        block->timeout_ms = llmgw_grpc_timeout_decode(value, value_len);
    }

    if (rc == 0 && name[0] != ':' && session->callbacks->on_field != NULL) {
        rc = llmgw_grpc_pack(&block->fields, name, name_len, value, value_len);
    }

    if (rc != 0) {
        session->failed = LLMGW_GRPC_ENOMEM;
    }
}


/* What HTTP has to say to a request that is none of ours; 0: it is. */
static int
request_http_status(const llmgw_grpc_block_t *block)
{
    if (block->bytes > LLMGW_GRPC_MAX_BLOCK_BYTES) {
        return 431;
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

    /* Streams take turns frame by frame, whatever the client would like. */
    fair.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY;
    fair.inc = 1;
    (void) nghttp2_session_change_extpri_stream_priority(session->h2, id,
                                                         &fair, 1);
    (void) nghttp2_session_set_stream_user_data(session->h2, id, stream);

    return stream;
}


llmgw_grpc_stream_t *
llmgw_grpc_request(llmgw_grpc_session_t *session, int32_t id)
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
response_status(llmgw_grpc_stream_t *stream, const char *value)
{
    llmgw_grpc_block_t  *block;

    /* Three digits: nghttp2 has seen to that. */
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


void
llmgw_grpc_response_field(llmgw_grpc_stream_t *stream, int is_last,
    const char *name, size_t name_len, const char *value, size_t value_len)
{
    llmgw_grpc_block_t    *block;
    llmgw_grpc_session_t  *session;

    session = stream->session;
    block = &session->block;

    if (block_is_over_limit(block, name_len, value_len)) {
        llmgw_grpc_stream_reset(stream, NGHTTP2_ENHANCE_YOUR_CALM);
        return;
    }

    if (is_field(":status")) {
        response_status(stream, value);
        return;
    }

    if (block->is_interim) {
        return;
    }

    if (is_field("grpc-status")) {
        stream->status = llmgw_grpc_status_decode(value, value_len);
        return;
    }

    if (is_field("grpc-message")) {
        response_message(stream, value, value_len);
        return;
    }

    if (block->is_response && is_field("content-type")) {
        stream->is_grpc = is_grpc_type(value, value_len);
    }

    if (session->callbacks->on_field != NULL) {
        session->callbacks->on_field(stream, name, name_len, value, value_len,
                                     is_last || !block->is_response);
    }
}
