
/*
 * A gRPC session over HTTP/2, without a socket.
 *
 * Bytes go in (llmgw_grpc_session_recv), bytes come out
 * (llmgw_grpc_session_write), and in between callbacks report requests,
 * headers, messages and ends.  The owner of the socket owns the session: the
 * nginx module drives it from nginx's events, the daemons from libev, the
 * unit tests from two buffers.  nghttp2 does HTTP/2; this file's own part is
 * gRPC: the 5-byte message prefix, status and trailers, timeouts, and flow
 * control that the caller steers.
 *
 * Who owns what
 *
 *   A session owns its streams.  A stream is created by on_request (server)
 *   or llmgw_grpc_call() (client), and lives until on_close has returned;
 *   no code may use it after that.  Each stream gets on_close exactly once,
 *   also when the whole session is destroyed.
 *
 *   The arguments of callbacks (messages, strings) are valid until the
 *   callback returns.
 *
 * What callbacks may do
 *
 *   Everything except destroying the session or calling recv or write on it.
 *   llmgw_grpc_stream_reset() within a callback is carried out by the next
 *   write; messages of a stream that was reset are no longer delivered.
 *
 * Flow control
 *
 *   Incoming: the connection's window is given back at once.  A stream's
 *   window is given back only by llmgw_grpc_stream_consume(), in the sizes
 *   that on_message reported (wire_bytes).  A stream whose messages are not
 *   consumed stops its own sender and no other.  A message larger than the
 *   window still gets through: while the stream has no other unconsumed
 *   bytes, the bytes of an unfinished message are given back as they come,
 *   and its wire_bytes are only those not yet given back.  So a stream
 *   buffers at most its window and one message.
 *
 *   Outgoing: llmgw_grpc_send_message() queues without bound.
 *   llmgw_grpc_stream_queued() returns the bytes not yet given to write, and
 *   on_drained is called when they have fallen to zero.  A sender that obeys
 *   either one is bounded.
 *
 * Limits
 *
 *   A message over max_message_bytes, or one for which the sessions that share
 *   a limit of unfinished messages have no room, or header fields over 16 KiB a
 *   block, end their stream; a request with such fields is answered 431, one
 *   with a path over 1 KiB 414, and neither is reported.  Floods of PING,
 *   SETTINGS, resets or empty frames end the session, and so does a peer that
 *   makes us answer and does not read.  Nothing that a peer sends ends the
 *   process.
 *
 * References: gRPC over HTTP2 (grpc/doc/PROTOCOL-HTTP2.md), RFC 9113.
 */

#ifndef LLMGW_GRPC_SESSION_H
#define LLMGW_GRPC_SESSION_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/grpc/prefix.h"


typedef struct llmgw_grpc_session_s  llmgw_grpc_session_t;
typedef struct llmgw_grpc_stream_s   llmgw_grpc_stream_t;


/* gRPC's status codes, with gRPC's numbers. */
typedef enum {
    LLMGW_GRPC_OK = 0,
    LLMGW_GRPC_CANCELLED = 1,
    LLMGW_GRPC_UNKNOWN = 2,
    LLMGW_GRPC_INVALID_ARGUMENT = 3,
    LLMGW_GRPC_DEADLINE_EXCEEDED = 4,
    LLMGW_GRPC_NOT_FOUND = 5,
    LLMGW_GRPC_ALREADY_EXISTS = 6,
    LLMGW_GRPC_PERMISSION_DENIED = 7,
    LLMGW_GRPC_RESOURCE_EXHAUSTED = 8,
    LLMGW_GRPC_FAILED_PRECONDITION = 9,
    LLMGW_GRPC_ABORTED = 10,
    LLMGW_GRPC_OUT_OF_RANGE = 11,
    LLMGW_GRPC_UNIMPLEMENTED = 12,
    LLMGW_GRPC_INTERNAL = 13,
    LLMGW_GRPC_UNAVAILABLE = 14,
    LLMGW_GRPC_DATA_LOSS = 15,
    LLMGW_GRPC_UNAUTHENTICATED = 16
} llmgw_grpc_status_t;

/* A stream that ended without a grpc-status: a reset, a broken connection. */
#define LLMGW_GRPC_NO_STATUS     (-1)


typedef enum {
    LLMGW_GRPC_DONE = 0,
    LLMGW_GRPC_ENOMEM = -1,
    LLMGW_GRPC_EPROTO = -2,     /* the peer broke HTTP/2: close the socket */
    LLMGW_GRPC_ELIMIT = -3,     /* no stream available on this session now */
    LLMGW_GRPC_ESTATE = -4      /* the stream has ended or was reset */
} llmgw_grpc_rc_t;


typedef struct {
    const char  *name;          /* lower case */
    const char  *value;
} llmgw_grpc_field_t;


/*
 * The caller's functions; any may be NULL.  The first argument is the stream,
 * whose session and data the functions below return.
 */
typedef struct {
    /*
     * Server: the request's headers have come.  The path is
     * llmgw_grpc_stream_path(), the deadline llmgw_grpc_stream_timeout_ms().
     */
    void  (*on_request)(llmgw_grpc_stream_t *stream);

    /*
     * A field of a request's headers (server), or of a response's headers
     * or trailers (client), except pseudo fields, grpc-status and
     * grpc-message.  In a trailers-only response fields count as trailers.
     * In the server role these come before on_request.  A request that is not
     * gRPC (HTTP 405, 414, 415, 431) is answered here; no callback reports it.
     */
    void  (*on_field)(llmgw_grpc_stream_t *stream, const char *name,
                      size_t name_len, const char *value, size_t value_len,
                      int is_trailer);

    /*
     * One whole message without its prefix, in order.  wire_bytes is what
     * it took of the stream's window: give it back with
     * llmgw_grpc_stream_consume(), now or later.
     */
    void  (*on_message)(llmgw_grpc_stream_t *stream, const uint8_t *data,
                        size_t len, size_t wire_bytes);

    /*
     * The peer will send no more; message is never NULL.  Client: status is the
     * grpc-status, or, where there is none, what PROTOCOL-HTTP2.md derives from
     * the HTTP status (200 without grpc-status: UNKNOWN).  message is
     * percent-decoded.  A response that cannot be read (compressed, cut off, or
     * a message over the limit) ends here too, with INTERNAL, and is reset.
     * Server: status is OK if the request is complete, else it says why the
     * request is invalid (compressed message: UNIMPLEMENTED; message over the
     * limit, or no room for it: RESOURCE_EXHAUSTED; data that ends within a
     * message: INVALID_ARGUMENT); the caller answers it.  Not called for
     * streams that were reset or lost.
     */
    void  (*on_end)(llmgw_grpc_stream_t *stream, int status,
                    const char *message);

    /*
     * Everything queued was given to write, so more may be queued.  Called
     * within write, and never after half_close or finish.
     */
    void  (*on_drained)(llmgw_grpc_stream_t *stream);

    /*
     * The last callback of a stream.  http2_error is 0 for an orderly end,
     * else the code of the RST_STREAM (sent or received), or INTERNAL_ERROR
     * where the session was destroyed first, or where a RST_STREAM with
     * NO_ERROR came before the end.  is_refused: the peer has certainly not
     * begun to work on it (REFUSED_STREAM, above GOAWAY's last stream id, or
     * its HEADERS were never given to write), so any request can safely be
     * sent again elsewhere.
     */
    void  (*on_close)(llmgw_grpc_stream_t *stream, uint32_t http2_error,
                      int is_refused);

    /*
     * The peer sent GOAWAY: open no more streams here, running ones continue.
     * Called once per session, also for SETTINGS that allow no stream.
     */
    void  (*on_goaway)(llmgw_grpc_session_t *session);

    /*
     * Client: the peer's first SETTINGS have come, so that
     * llmgw_grpc_session_can_call() knows the peer's limit.
     */
    void  (*on_settings)(llmgw_grpc_session_t *session);
} llmgw_grpc_callbacks_t;


/*
 * A limit that several sessions share: the bytes of their incomplete messages,
 * whatever number of connections and streams a stranger opens.  Buffers may
 * take twice as much.
 */
typedef struct {
    size_t  bytes;              /* counted by the sessions */
    size_t  max_bytes;
} llmgw_grpc_unfinished_t;


typedef struct {
    const llmgw_grpc_callbacks_t  *callbacks;      /* outlive the session */
    void                          *data;           /* the caller's own */
    size_t                         max_message_bytes;   /* 0: 4 MiB */
    llmgw_grpc_unfinished_t       *unfinished;     /* outlives the session;
                                                      NULL: no bound */
    uint32_t                       stream_window_bytes; /* 0: 64 KiB - 1 */
    uint32_t                       connection_window_bytes; /* server: streams
                                                               that it allows;
                                                               0: 100000 */
    uint32_t                       max_streams;    /* server: what it allows;
                                                      0: 100000 */
} llmgw_grpc_config_t;


/* NULL: out of memory. */
llmgw_grpc_session_t *llmgw_grpc_client_create(
    const llmgw_grpc_config_t *config);
llmgw_grpc_session_t *llmgw_grpc_server_create(
    const llmgw_grpc_config_t *config);

/* Every open stream gets on_close (INTERNAL_ERROR) before this returns. */
void llmgw_grpc_session_destroy(llmgw_grpc_session_t *session);

void *llmgw_grpc_session_data(llmgw_grpc_session_t *session);


/*
 * Takes all bytes that were read from the socket.  DONE, ENOMEM or EPROTO;
 * after EPROTO send what write still returns (a GOAWAY) and destroy the
 * session.  Where nghttp2 answers an offence with a GOAWAY of its own, the
 * write that sends it and every later call return EPROTO, and
 * llmgw_grpc_session_is_over() says so.
 */
llmgw_grpc_rc_t llmgw_grpc_session_recv(llmgw_grpc_session_t *session,
    const uint8_t *data, size_t len);

/*
 * Fills buf with as many frames as fit, and keeps the rest of a frame for
 * the next call.  Returns the bytes written, 0 where there is nothing to
 * send now, or a negative llmgw_grpc_rc_t.  The caller sends all of them, in
 * order.
 */
ssize_t llmgw_grpc_session_write(llmgw_grpc_session_t *session, uint8_t *buf,
    size_t capacity);

int llmgw_grpc_session_wants_write(llmgw_grpc_session_t *session);

/*
 * Queues a PING (RFC 9113, 6.7), which the peer answers whatever its streams
 * do: a sign of life where nothing else is said.  DONE or ENOMEM.
 */
llmgw_grpc_rc_t llmgw_grpc_session_ping(llmgw_grpc_session_t *session);

/* The peer's first frame has come: it does speak HTTP/2. */
int llmgw_grpc_session_has_begun(const llmgw_grpc_session_t *session);

/* Neither side has anything left to send: close the socket. */
int llmgw_grpc_session_is_over(llmgw_grpc_session_t *session);

/*
 * Graceful end (server: GOAWAY with the last stream taken; client: GOAWAY).
 * Running streams continue, new ones are refused.
 */
void llmgw_grpc_session_goaway(llmgw_grpc_session_t *session);

/* The number of streams that have not got on_close yet. */
size_t llmgw_grpc_session_streams(const llmgw_grpc_session_t *session);

/*
 * How many of these streams have bytes that wait for write or for the peer's
 * window.
 */
size_t llmgw_grpc_session_unsent(const llmgw_grpc_session_t *session);

/*
 * Client: whether llmgw_grpc_call() would get a stream now: no GOAWAY, ids
 * left, fewer streams than the peer's SETTINGS_MAX_CONCURRENT_STREAMS
 * (100 are assumed until its SETTINGS have come).
 */
int llmgw_grpc_session_can_call(llmgw_grpc_session_t *session);

/* Client: this session will never open a stream again. */
int llmgw_grpc_session_is_closing(llmgw_grpc_session_t *session);


typedef struct {
    const char                *path;        /* "/package.Service/Method" */
    const char                *authority;
    uint64_t                   timeout_ms;  /* grpc-timeout; 0: none sent */
    const llmgw_grpc_field_t  *fields;      /* further fields, copied */
    size_t                     nfields;     /* at most 32, else ELIMIT */
    void                      *data;        /* the stream's */
} llmgw_grpc_call_t;

/*
 * Opens a stream.  Strings are copied.  DONE and *stream, or ELIMIT, ENOMEM.
 * The first message and the half-close may follow before any write, so a
 * whole unary request leaves in one write.
 */
llmgw_grpc_rc_t llmgw_grpc_call(llmgw_grpc_session_t *session,
    const llmgw_grpc_call_t *call, llmgw_grpc_stream_t **stream);

/*
 * Queues one message, copied, with its prefix before it.  Server: the
 * response's headers go before the first.  DONE, ENOMEM, ESTATE.
 */
llmgw_grpc_rc_t llmgw_grpc_send_message(llmgw_grpc_stream_t *stream,
    const uint8_t *data, size_t len);

/*
 * Like llmgw_grpc_send_message(), without a copy: queues a prefix and len
 * reserved bytes, and returns their address.  The caller writes the message
 * there before any other call on the stream.  NULL: out of memory, or the
 * stream has ended.
 */
uint8_t *llmgw_grpc_send_reserve(llmgw_grpc_stream_t *stream, size_t len);

/*
 * Like llmgw_grpc_send_reserve(), for a message that continues after the
 * reserved bytes with tail_len bytes of the caller's, which are not copied.
 * The caller keeps them until they were sent, or the stream was reset or
 * closed; until then the stream takes no other message.
 */
uint8_t *llmgw_grpc_send_before(llmgw_grpc_stream_t *stream, size_t len,
    const uint8_t *tail, size_t tail_len);

/* Client: the request is complete. */
llmgw_grpc_rc_t llmgw_grpc_half_close(llmgw_grpc_stream_t *stream);

/*
 * Server: ends the stream after what is queued, with status, message
 * (percent-encoded here and cut at 1 KiB; NULL: none) and further trailers
 * (at most 32, else ELIMIT); trailers-only where no message was sent.  A
 * request still arriving is then reset with NO_ERROR, as RFC 9113 8.1 has it.
 * DONE, ENOMEM, ELIMIT, ESTATE.
 */
llmgw_grpc_rc_t llmgw_grpc_finish(llmgw_grpc_stream_t *stream,
    llmgw_grpc_status_t status, const char *message,
    const llmgw_grpc_field_t *trailers, size_t ntrailers);

/* RST_STREAM with this HTTP/2 code (8: CANCEL); what is queued is dropped. */
void llmgw_grpc_stream_reset(llmgw_grpc_stream_t *stream,
    uint32_t http2_error);

/*
 * Gives back wire bytes of the stream's incoming window; a few are kept back
 * until a WINDOW_UPDATE is worth it.  1: there may be something to write now.
 */
int llmgw_grpc_stream_consume(llmgw_grpc_stream_t *stream, size_t wire_bytes);

/* Bytes queued and not yet handed to write. */
size_t llmgw_grpc_stream_queued(const llmgw_grpc_stream_t *stream);

llmgw_grpc_session_t *llmgw_grpc_stream_session(llmgw_grpc_stream_t *stream);
void *llmgw_grpc_stream_data(const llmgw_grpc_stream_t *stream);
void llmgw_grpc_stream_set_data(llmgw_grpc_stream_t *stream, void *data);

/*
 * To be called when the caller knows who the peer is and bounds the number of
 * such streams: from the next message on, a message may have up to
 * max_message_bytes in place of the session's limit, and the bytes of an
 * unfinished one are not counted.
 */
void llmgw_grpc_stream_trust(llmgw_grpc_stream_t *stream,
    size_t max_message_bytes);

/* Server: the request's :path, "" where it had none. */
const char *llmgw_grpc_stream_path(const llmgw_grpc_stream_t *stream);

/* Server: grpc-timeout in ms, rounded up; 0: none was sent. */
uint64_t llmgw_grpc_stream_timeout_ms(const llmgw_grpc_stream_t *stream);


/*
 * grpc-timeout (1 to 8 digits and one of H M S m u n) in ms, rounded up, at
 * least 1; 0 where it is malformed.
 */
uint64_t llmgw_grpc_timeout_decode(const char *value, size_t len);

/* Writes a grpc-timeout and its NUL; buf holds at least 16 bytes. */
void llmgw_grpc_timeout_encode(char *buf, uint64_t timeout_ms);

/*
 * Percent-encodes a grpc-message: bytes outside 0x20..0x7e and '%'.  Returns
 * the bytes needed, like snprintf; writes at most capacity with its NUL.
 */
size_t llmgw_grpc_message_encode(char *buf, size_t capacity, const char *src,
    size_t len);

/* "UNAVAILABLE" and so on; "UNKNOWN" for a number that is no status. */
const char *llmgw_grpc_status_name(int status);

/* The status that PROTOCOL-HTTP2.md derives from an HTTP status. */
llmgw_grpc_status_t llmgw_grpc_status_of_http(int http_status);

#endif /* LLMGW_GRPC_SESSION_H */
