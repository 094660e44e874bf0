
/*
 * Two gRPC sessions joined by a buffer.  Each session's callbacks are written
 * to a log, one after the other, so that a test can compare whole sequences.
 * A raw peer (only nghttp2) sends what our own sessions never send.
 */

#ifndef GRPC_PAIR_H
#define GRPC_PAIR_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <nghttp2/nghttp2.h>

#include "proto/grpc/session.h"


#define PAIR_BUFFER  (64 * 1024)

typedef struct peer_s  peer_t;
typedef void (*peer_hook_pt)(peer_t *peer, llmgw_grpc_stream_t *stream);

struct peer_s {
    llmgw_grpc_session_t  *session;
    llmgw_grpc_stream_t   *stream;      /* of the newest request */
    peer_hook_pt           on_field;
    peer_hook_pt           on_request;
    peer_hook_pt           on_message;
    peer_hook_pt           on_end;
    peer_hook_pt           on_drained;
    peer_hook_pt           on_close;
    peer_hook_pt           on_goaway;   /* stream is NULL */
    size_t                 write_bytes; /* at a time; 0: PAIR_BUFFER */
    size_t                 read_bytes;
    int                    is_holding;  /* messages are not consumed */
    int                    is_quiet;    /* counts callbacks, but logs none */
    size_t                 held;
    size_t                 requests, messages, ends, closes, drains, goaways;
    size_t                 message_bytes;
    int                    status;
    uint32_t               error;
    int                    is_refused;
    const uint8_t         *data;        /* of the current message */
    size_t                 len;
    char                   log[8192];
};


static inline void
peer_note(peer_t *peer, const char *format, ...)
{
    size_t   n;
    va_list  args;

    if (peer->is_quiet) {
        return;
    }

    n = strlen(peer->log);

    va_start(args, format);
    (void) vsnprintf(peer->log + n, sizeof(peer->log) - n, format, args);
    va_end(args);
}


static inline peer_t *
peer_of(llmgw_grpc_stream_t *stream)
{
    return llmgw_grpc_session_data(llmgw_grpc_stream_session(stream));
}


static inline void
peer_hook(peer_hook_pt hook, peer_t *peer, llmgw_grpc_stream_t *stream)
{
    if (hook != NULL) {
        hook(peer, stream);
    }
}


static inline void
peer_on_request(llmgw_grpc_stream_t *stream)
{
    peer_t  *peer = peer_of(stream);

    peer->requests++;
    peer->stream = stream;
    peer_note(peer, "request %s %llu\n", llmgw_grpc_stream_path(stream),
              (unsigned long long) llmgw_grpc_stream_timeout_ms(stream));
    peer_hook(peer->on_request, peer, stream);
}


static inline void
peer_on_field(llmgw_grpc_stream_t *stream, const char *name, size_t name_len,
    const char *value, size_t value_len, int is_trailer)
{
    peer_t  *peer = peer_of(stream);

    /* Only the tests' own fields: the others are the same in every test. */
    if (name_len > 2 && memcmp(name, "x-", 2) == 0) {
        peer_note(peer, "%s %.*s=%.*s\n", is_trailer ? "trailer" : "header",
                  (int) name_len, name, (int) value_len, value);
    }

    peer_hook(peer->on_field, peer, stream);
}


static inline void
peer_on_message(llmgw_grpc_stream_t *stream, const uint8_t *data, size_t len,
    size_t wire_bytes)
{
    peer_t  *peer = peer_of(stream);

    assert_true(wire_bytes > 0);

    peer->messages++;
    peer->message_bytes += len;
    peer->data = data;
    peer->len = len;

    if (len < 64) {
        peer_note(peer, "message %.*s\n", (int) len, (const char *) data);

    } else {
        peer_note(peer, "message of %zu\n", len);
    }

    if (peer->is_holding) {
        peer->held += wire_bytes;

    } else {
        llmgw_grpc_stream_consume(stream, wire_bytes);
    }

    peer_hook(peer->on_message, peer, stream);
}


static inline void
peer_on_end(llmgw_grpc_stream_t *stream, int status, const char *message)
{
    peer_t  *peer = peer_of(stream);

    assert_non_null(message);

    peer->ends++;
    peer->status = status;
    peer_note(peer, "end %s %s\n", llmgw_grpc_status_name(status), message);
    peer_hook(peer->on_end, peer, stream);
}


static inline void
peer_on_drained(llmgw_grpc_stream_t *stream)
{
    peer_t  *peer = peer_of(stream);

    peer->drains++;
    peer_hook(peer->on_drained, peer, stream);
}


static inline void
peer_on_close(llmgw_grpc_stream_t *stream, uint32_t error, int is_refused)
{
    peer_t  *peer = peer_of(stream);

    peer->closes++;
    peer->error = error;
    peer->is_refused = is_refused;
    peer_note(peer, "close %u%s\n", error, is_refused ? " refused" : "");
    peer_hook(peer->on_close, peer, stream);
}


static inline void
peer_on_goaway(llmgw_grpc_session_t *session)
{
    peer_t  *peer = llmgw_grpc_session_data(session);

    peer->goaways++;
    peer_note(peer, "goaway\n");
    peer_hook(peer->on_goaway, peer, NULL);
}


static const llmgw_grpc_callbacks_t  peer_callbacks = {
    .on_request = peer_on_request,
    .on_field = peer_on_field,
    .on_message = peer_on_message,
    .on_end = peer_on_end,
    .on_drained = peer_on_drained,
    .on_close = peer_on_close,
    .on_goaway = peer_on_goaway,
};


static inline void
peer_config(peer_t *peer, llmgw_grpc_config_t *config)
{
    config->callbacks = &peer_callbacks;
    config->data = peer;
}


/* Feeds input in pieces of read_bytes, each in a block of its own
   size (asan). */
static inline void
peer_feed(peer_t *peer, const uint8_t *data, size_t len)
{
    size_t    n, piece;
    uint8_t  *copy;

    piece = peer->read_bytes ? peer->read_bytes : len;

    while (len > 0) {
        n = len < piece ? len : piece;

        copy = malloc(n);
        assert_non_null(copy);
        memcpy(copy, data, n);
        assert_int_equal(llmgw_grpc_session_recv(peer->session, copy, n),
                         LLMGW_GRPC_DONE);
        free(copy);

        data += n;
        len -= n;
    }
}


/*
 * Passes all that one session writes to the other; returns the bytes.  Checks
 * that no write exceeds the buffer.
 */
static inline size_t
peer_flush(peer_t *from, peer_t *to)
{
    static uint8_t  buf[PAIR_BUFFER + 1];
    size_t          total, capacity;
    ssize_t         n;

    total = 0;
    capacity = from->write_bytes ? from->write_bytes : PAIR_BUFFER;

    for ( ;; ) {
        buf[capacity] = 0xa5;
        n = llmgw_grpc_session_write(from->session, buf, capacity);
        assert_in_range(n, 0, capacity);
        assert_int_equal(buf[capacity], 0xa5);

        if (n == 0) {
            assert_false(llmgw_grpc_session_wants_write(from->session));
            return total;
        }

        total += (size_t) n;

        if (to != NULL) {
            peer_feed(to, buf, (size_t) n);
        }
    }
}


static inline void
pair_run(peer_t *client, peer_t *server)
{
    size_t  n;

    do {
        n = peer_flush(client, server);
        n += peer_flush(server, client);
    } while (n > 0);
}


static inline void
pair_open(peer_t *client, peer_t *server, llmgw_grpc_config_t *config)
{
    peer_config(client, config);
    client->session = llmgw_grpc_client_create(config);
    assert_non_null(client->session);

    peer_config(server, config);
    server->session = llmgw_grpc_server_create(config);
    assert_non_null(server->session);
}


static inline void
pair_close(peer_t *client, peer_t *server)
{
    llmgw_grpc_session_destroy(client->session);
    llmgw_grpc_session_destroy(server->session);
}


static inline llmgw_grpc_stream_t *
peer_call(peer_t *client, const char *path)
{
    llmgw_grpc_call_t     call = { .path = path, .authority = "test" };
    llmgw_grpc_stream_t  *stream;

    if (llmgw_grpc_call(client->session, &call, &stream) != LLMGW_GRPC_DONE) {
        return NULL;
    }

    return stream;
}


static inline void
peer_say(llmgw_grpc_stream_t *stream, const char *text)
{
    assert_int_equal(llmgw_grpc_send_message(stream, (const uint8_t *) text,
                                             strlen(text)), LLMGW_GRPC_DONE);
}


static inline void
peer_say_bytes(llmgw_grpc_stream_t *stream, size_t len)
{
    uint8_t  *p;

    p = llmgw_grpc_send_reserve(stream, len);
    assert_non_null(p);
    memset(p, 'x', len);
}


/* Hooks that many tests use. */

static inline void
hook_echo(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    assert_int_equal(llmgw_grpc_send_message(stream, peer->data, peer->len),
                     LLMGW_GRPC_DONE);
}


/* Answers with the status that on_end reported. */
static inline void
hook_finish(peer_t *peer, llmgw_grpc_stream_t *stream)
{
    assert_int_equal(llmgw_grpc_finish(stream,
                                       (llmgw_grpc_status_t) peer->status,
                                       NULL, NULL, 0), LLMGW_GRPC_DONE);
}


/* A raw peer. */

typedef struct {
    nghttp2_session  *h2;
    int               status;        /* of the last response */
    uint32_t          reset;         /* of the last RST_STREAM, else ~0 */
    uint32_t          goaway;        /* of the last GOAWAY, else ~0 */
    const uint8_t    *body;
    size_t            body_bytes;
    int               is_open;       /* the body does not end the stream */
} raw_t;


static inline ssize_t
raw_read(nghttp2_session *h2, int32_t id, uint8_t *buf, size_t length,
    uint32_t *flags, nghttp2_data_source *source, void *data)
{
    size_t  n;
    raw_t  *raw = data;

    n = raw->body_bytes < length ? raw->body_bytes : length;

    if (n > 0) {
        memcpy(buf, raw->body, n);
    }

    raw->body += n;
    raw->body_bytes -= n;

    if (raw->body_bytes == 0) {
        *flags |= NGHTTP2_DATA_FLAG_EOF;

        if (raw->is_open) {
            *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        }
    }

    return (ssize_t) n;
}


static inline int
raw_header(nghttp2_session *h2, const nghttp2_frame *frame,
    const uint8_t *name, size_t name_len, const uint8_t *value,
    size_t value_len, uint8_t flags, void *data)
{
    raw_t  *raw = data;

    if (name_len == 7 && memcmp(name, ":status", 7) == 0) {
        raw->status = atoi((const char *) value);
    }

    return 0;
}


static inline int
raw_frame(nghttp2_session *h2, const nghttp2_frame *frame, void *data)
{
    raw_t  *raw = data;

    if (frame->hd.type == NGHTTP2_RST_STREAM) {
        raw->reset = frame->rst_stream.error_code;

    } else if (frame->hd.type == NGHTTP2_GOAWAY) {
        raw->goaway = frame->goaway.error_code;
    }

    return 0;
}


static inline void
raw_open(raw_t *raw, int is_server, const nghttp2_settings_entry *iv,
    size_t niv)
{
    int                         rc;
    nghttp2_session_callbacks  *callbacks;

    memset(raw, 0, sizeof(raw_t));
    raw->reset = UINT32_MAX;
    raw->goaway = UINT32_MAX;

    assert_int_equal(nghttp2_session_callbacks_new(&callbacks), 0);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, raw_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks,
                                                         raw_frame);

    rc = is_server ? nghttp2_session_server_new(&raw->h2, callbacks, raw)
                   : nghttp2_session_client_new(&raw->h2, callbacks, raw);
    assert_int_equal(rc, 0);
    nghttp2_session_callbacks_del(callbacks);

    assert_int_equal(nghttp2_submit_settings(raw->h2, NGHTTP2_FLAG_NONE, iv,
                                             niv), 0);
}


static inline void
raw_run(raw_t *raw, peer_t *peer)
{
    size_t          total;
    ssize_t         n;
    const uint8_t  *data;
    static uint8_t  buf[PAIR_BUFFER];

    do {
        total = 0;

        while ((n = nghttp2_session_mem_send(raw->h2, &data)) > 0) {
            peer_feed(peer, data, (size_t) n);
            total += (size_t) n;
        }

        while ((n = llmgw_grpc_session_write(peer->session, buf,
                                             sizeof(buf))) > 0)
        {
            assert_int_equal(nghttp2_session_mem_recv(raw->h2, buf,
                                                      (size_t) n), n);
            total += (size_t) n;
        }
    } while (total > 0);
}


static inline void
raw_nv(nghttp2_nv *nv, const char *name, const char *value)
{
    nv->name = (uint8_t *) name;
    nv->namelen = strlen(name);
    nv->value = (uint8_t *) value;
    nv->valuelen = strlen(value);
    nv->flags = NGHTTP2_NV_FLAG_NONE;
}


/* Sends a request, or (method NULL) the response on stream 1,
   with raw->body. */
static inline void
raw_say(raw_t *raw, const char *method, const char *status_or_path,
    const char *type, const void *body, size_t body_bytes)
{
    size_t                 n;
    nghttp2_nv             nv[5];
    nghttp2_data_provider  provider;

    n = 0;
    raw->body = body;
    raw->body_bytes = body_bytes;
    provider.source.ptr = NULL;
    provider.read_callback = raw_read;

    if (method == NULL) {
        raw_nv(&nv[n++], ":status", status_or_path);
        raw_nv(&nv[n++], "content-type", type);
        assert_int_equal(nghttp2_submit_response(raw->h2, 1, nv, n,
                                                 &provider), 0);
        return;
    }

    raw_nv(&nv[n++], ":method", method);
    raw_nv(&nv[n++], ":scheme", "http");
    raw_nv(&nv[n++], ":path", status_or_path);
    raw_nv(&nv[n++], ":authority", "test");
    raw_nv(&nv[n++], "content-type", type);
    assert_true(nghttp2_submit_request(raw->h2, NULL, nv, n, &provider, NULL)
                > 0);
}

#endif /* GRPC_PAIR_H */
