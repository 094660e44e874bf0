
/*
 * A session: nghttp2 set up with our limits, fed and emptied.  For the other
 * files see session_inner.h.
 */

#include <stdlib.h>
#include <string.h>

#include "proto/grpc/session_inner.h"


#define DEFAULT_MESSAGE_BYTES     (4 * 1024 * 1024)
#define DEFAULT_STREAM_WINDOW     (64 * 1024 - 1)
#define DEFAULT_CONNECTION_WINDOW (1024 * 1024)

/* The largest window that HTTP/2 allows. */
#define MAX_WINDOW_BYTES          0x7fffffff


static uint32_t
window_or(uint32_t window_bytes, uint32_t otherwise)
{
    if (window_bytes == 0) {
        return otherwise;
    }

    return window_bytes < MAX_WINDOW_BYTES ? window_bytes : MAX_WINDOW_BYTES;
}


static int
session_create_h2(llmgw_grpc_session_t *session, nghttp2_option *option,
    nghttp2_session_callbacks *callbacks)
{
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_stream_reset_rate_limit(option, LLMGW_GRPC_RESET_BURST,
                                               LLMGW_GRPC_RESETS_PER_S);
    llmgw_grpc_events_set(callbacks);

    return session->role->open(&session->h2, callbacks, session, option);
}


static int
session_open_h2(llmgw_grpc_session_t *session)
{
    int                         rc;
    nghttp2_option             *option;
    nghttp2_session_callbacks  *callbacks;

    if (nghttp2_option_new(&option) != 0) {
        return -1;
    }

    if (nghttp2_session_callbacks_new(&callbacks) != 0) {
        nghttp2_option_del(option);
        return -1;
    }

    rc = session_create_h2(session, option, callbacks);

    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);

    return rc;
}


static int
session_submit_settings(llmgw_grpc_session_t *session,
    const llmgw_grpc_config_t *config)
{
    uint32_t                connection_window_bytes, keep_back;
    nghttp2_settings_entry  iv[4];

    iv[0].settings_id = NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE;
    iv[0].value = window_or(config->stream_window_bytes,
                            DEFAULT_STREAM_WINDOW);

    keep_back = iv[0].value / LLMGW_GRPC_KEEP_BACK_SHARE;
    session->keep_back = keep_back < LLMGW_GRPC_KEEP_BACK_BYTES
                         ? keep_back : LLMGW_GRPC_KEEP_BACK_BYTES;

    iv[1].settings_id = NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE;
    iv[1].value = LLMGW_GRPC_MAX_BLOCK_BYTES;

    /* Without the old priority tree a frame costs a heap step, not a walk. */
    iv[2].settings_id = NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES;
    iv[2].value = 1;

    session->role->setting(config, &iv[3]);

    if (nghttp2_submit_settings(session->h2, NGHTTP2_FLAG_NONE, iv, 4) != 0) {
        return -1;
    }

    connection_window_bytes = window_or(config->connection_window_bytes,
                                        DEFAULT_CONNECTION_WINDOW);

    return nghttp2_session_set_local_window_size(session->h2,
                                  NGHTTP2_FLAG_NONE, 0,
                                  (int32_t) connection_window_bytes);
}


llmgw_grpc_session_t *
llmgw_grpc_session_create(const llmgw_grpc_config_t *config,
    const llmgw_grpc_role_t *role)
{
    llmgw_grpc_session_t  *session;

    session = calloc(1, sizeof(llmgw_grpc_session_t));
    if (session == NULL) {
        return NULL;
    }

    session->callbacks = config->callbacks;
    session->data = config->data;
    session->role = role;
    session->is_server = role->request != NULL;
    session->max_calls = LLMGW_GRPC_ASSUMED_STREAMS;
    session->max_message_bytes = config->max_message_bytes
                                 ? config->max_message_bytes
                                 : DEFAULT_MESSAGE_BYTES;
    session->unfinished = config->unfinished;

    if (session_open_h2(session) != 0
        || session_submit_settings(session, config) != 0)
    {
        llmgw_grpc_session_destroy(session);
        return NULL;
    }

    return session;
}


static void
session_free_spare(llmgw_grpc_session_t *session)
{
    llmgw_grpc_stream_t  *stream, *next;

    for (stream = session->spare; stream != NULL; stream = next) {
        next = stream->next;

        llmgw_grpc_buf_done(&stream->out);
        llmgw_grpc_buf_done(&stream->text);
        llmgw_grpc_buf_done(&stream->trailers);
        llmgw_grpc_buf_done(&stream->in.body);
        free(stream);
    }
}


void
llmgw_grpc_session_destroy(llmgw_grpc_session_t *session)
{
    llmgw_grpc_stream_t  *stream;

    session->is_destroyed = 1;

    while (session->streams != NULL) {
        stream = session->streams;
        llmgw_grpc_stream_close(stream, NGHTTP2_INTERNAL_ERROR,
                                !session->is_server && !stream->is_sent);
    }

    nghttp2_session_del(session->h2);
    session_free_spare(session);
    llmgw_grpc_block_done(&session->block);
    free(session);
}


void *
llmgw_grpc_session_data(llmgw_grpc_session_t *session)
{
    return session->data;
}


llmgw_grpc_rc_t
llmgw_grpc_session_recv(llmgw_grpc_session_t *session, const uint8_t *data,
    size_t len)
{
    ssize_t  n;

    if (session->failed != LLMGW_GRPC_DONE) {
        return session->failed;
    }

    if (!session->is_server) {
        llmgw_grpc_scout(session, data, len);
    }

    n = nghttp2_session_mem_recv(session->h2, data, len);

    if (session->received > 0) {
        if (nghttp2_session_consume_connection(session->h2, session->received)
            != 0)
        {
            session->failed = LLMGW_GRPC_ENOMEM;
        }

        session->received = 0;
    }

    if (n < 0 && session->failed == LLMGW_GRPC_DONE) {
        session->failed = n == NGHTTP2_ERR_NOMEM ? LLMGW_GRPC_ENOMEM
                                                 : LLMGW_GRPC_EPROTO;
    }

    /* the peer makes us answer, and never reads the answers */
    if (nghttp2_session_get_outbound_queue_size(session->h2)
        > LLMGW_GRPC_MAX_OUTBOUND_FRAMES + 2 * session->nstreams
        && session->failed == LLMGW_GRPC_DONE)
    {
        session->failed = LLMGW_GRPC_EPROTO;
    }

    return session->failed;
}


ssize_t
llmgw_grpc_session_write(llmgw_grpc_session_t *session, uint8_t *buf,
    size_t capacity)
{
    int  rc;

    session->out = buf;
    session->out_bytes = 0;
    session->out_capacity = capacity;

    rc = nghttp2_session_send(session->h2);

    if (rc != 0 && session->failed == LLMGW_GRPC_DONE) {
        session->failed = rc == NGHTTP2_ERR_NOMEM ? LLMGW_GRPC_ENOMEM
                                                  : LLMGW_GRPC_EPROTO;
    }

    if (session->out_bytes == 0 && session->failed != LLMGW_GRPC_DONE) {
        return session->failed;
    }

    return (ssize_t) session->out_bytes;
}


int
llmgw_grpc_session_wants_write(llmgw_grpc_session_t *session)
{
    return nghttp2_session_want_write(session->h2);
}


llmgw_grpc_rc_t
llmgw_grpc_session_ping(llmgw_grpc_session_t *session)
{
    return nghttp2_submit_ping(session->h2, NGHTTP2_FLAG_NONE, NULL) == 0
           ? LLMGW_GRPC_DONE : LLMGW_GRPC_ENOMEM;
}


int
llmgw_grpc_session_has_begun(const llmgw_grpc_session_t *session)
{
    return session->has_settings;
}


int
llmgw_grpc_session_is_over(llmgw_grpc_session_t *session)
{
    return !nghttp2_session_want_read(session->h2)
           && !nghttp2_session_want_write(session->h2);
}


void
llmgw_grpc_session_goaway(llmgw_grpc_session_t *session)
{
    int32_t  last_id;

    if (session->is_goaway_sent) {
        return;
    }

    session->is_goaway_sent = 1;
    last_id = nghttp2_session_get_last_proc_stream_id(session->h2);

    if (nghttp2_submit_goaway(session->h2, NGHTTP2_FLAG_NONE, last_id,
                              NGHTTP2_NO_ERROR, NULL, 0)
        != 0)
    {
        session->failed = LLMGW_GRPC_ENOMEM;
    }
}


size_t
llmgw_grpc_session_streams(const llmgw_grpc_session_t *session)
{
    return session->nstreams;
}


size_t
llmgw_grpc_session_unsent(const llmgw_grpc_session_t *session)
{
    return session->nunsent;
}


int
llmgw_grpc_session_can_call(llmgw_grpc_session_t *session)
{
    return !llmgw_grpc_session_is_closing(session)
           && session->nstreams < session->max_calls;
}


int
llmgw_grpc_session_is_closing(llmgw_grpc_session_t *session)
{
    return session->is_destroyed || session->is_goaway_sent
           || session->failed != LLMGW_GRPC_DONE
           || !nghttp2_session_check_request_allowed(session->h2);
}
