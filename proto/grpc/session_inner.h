
/*
 * Shared by the files of session.h; no other file includes it.
 *
 *   session.c  a session: nghttp2 set up, fed and emptied
 *   scout.c    fetches into the cache what an input will need
 *   events.c   nghttp2's callbacks: each finds its stream and passes on
 *   headers.c  a header block while it arrives
 *   client.c   the client's half: calls and responses
 *   server.c   the server's half: requests and answers
 *   stream.c   a stream from creation to on_close, its incoming side
 *   send.c     a stream's outgoing side: queue and data source
 *   message.c  cuts DATA into messages
 *   buf.c      the growing buffer of all, and fields packed into it
 *   status.c   status names, HTTP status, percent-encoding
 *   timeout.c  grpc-timeout
 *
 * nghttp2's stream_user_data is our stream.  It is NULL for streams that
 * only nghttp2 knows: a request that was answered with an HTTP error, a call
 * that was abandoned before its HEADERS were sent.
 */

#ifndef LLMGW_GRPC_SESSION_INNER_H
#define LLMGW_GRPC_SESSION_INNER_H

#include <nghttp2/nghttp2.h>

#include "proto/grpc/session.h"


/* Limit of a header block, counted as in RFC 9113 6.5.2 (plus 32 a field). */
#define LLMGW_GRPC_MAX_BLOCK_BYTES      (16 * 1024)

/* Limit of a :path, which a stream keeps: method names are far shorter. */
#define LLMGW_GRPC_MAX_PATH_BYTES       1024

/*
 * Limit of fields of one call, and of trailers of one finish: four times what
 * the callers need.
 */
#define LLMGW_GRPC_MAX_FIELDS           32

/*
 * Limit of a status message as sent: a sentence and what an engine adds to it.
 */
#define LLMGW_GRPC_MAX_MESSAGE_CHARS    1024

/*
 * An empty buffer larger than this is given back to malloc.  Token messages are
 * tens of bytes, so a stream in its steady state never allocates; a prompt's
 * memory is not kept for the hours that its stream may last.
 */
#define LLMGW_GRPC_KEEP_BYTES           2048

/* Closed streams kept for reuse: enough for one event-loop iteration. */
#define LLMGW_GRPC_SPARE_STREAMS        64

/* nghttp2 assumes the same until the peer's SETTINGS come. */
#define LLMGW_GRPC_ASSUMED_STREAMS      100

#define LLMGW_GRPC_CACHE_LINE           64

/*
 * nghttp2 sends WINDOW_UPDATE when half a window is consumed.  Telling it of
 * each message would cost a lookup of the stream, so consumed bytes are kept
 * back first: up to this share of the window, and up to this many bytes.
 */
#define LLMGW_GRPC_KEEP_BACK_SHARE      16
#define LLMGW_GRPC_KEEP_BACK_BYTES      4096

/* Streams that are prefetched for one input: what a first-level cache holds. */
#define LLMGW_GRPC_SCOUTED              64
#define LLMGW_GRPC_FRAME_HEAD_BYTES     9

/* Empty DATA frames in a row: no sender has a reason for more than one. */
#define LLMGW_GRPC_MAX_EMPTY_FRAMES     1000

/*
 * Resets that a client may send.  A gateway cancels the losers of its hedges
 * and the requests of clients that went away, all over one connection, so
 * nghttp2's 33 a second would cut it off; this limit stays far below what
 * costs a server anything.
 */
#define LLMGW_GRPC_RESET_BURST          20000
#define LLMGW_GRPC_RESETS_PER_S         10000

/* Control frames that wait for a peer that does not read. */
#define LLMGW_GRPC_MAX_OUTBOUND_FRAMES  20000


typedef struct {
    uint8_t  *data;
    size_t    start;        /* first byte not yet taken */
    size_t    end;
    size_t    capacity;
} llmgw_grpc_buf_t;


typedef struct {
    size_t            partial;        /* wire bytes of the unfinished message
                                         not yet returned to the window */
    size_t            unconsumed;     /* wire bytes of whole messages,
                                         likewise */
    uint32_t          message_bytes;  /* known when the prefix is whole */
    uint8_t           prefix[LLMGW_GRPC_PREFIX_BYTES];
    uint8_t           prefix_bytes;
    uint8_t           is_whole;       /* message returned, not yet dropped */
    llmgw_grpc_buf_t  body;           /* a message that came in pieces */
} llmgw_grpc_reader_t;


typedef enum {
    LLMGW_GRPC_READ_MORE = 0,         /* input used up */
    LLMGW_GRPC_READ_MESSAGE,
    LLMGW_GRPC_READ_COMPRESSED,
    LLMGW_GRPC_READ_TOO_LARGE,
    LLMGW_GRPC_READ_FULL,             /* unfinished messages take too much */
    LLMGW_GRPC_READ_ENOMEM
} llmgw_grpc_read_t;


typedef struct {
    const uint8_t  *data;
    size_t          len;
    size_t          wire_bytes;       /* still to be given back */
} llmgw_grpc_message_t;


/* The block now arriving: HTTP/2 allows one per connection at a time. */
typedef struct {
    llmgw_grpc_buf_t  path;
    llmgw_grpc_buf_t  fields;         /* server: packed until on_request */
    size_t            bytes;
    uint64_t          timeout_ms;
    unsigned          is_post:1;
    unsigned          is_grpc:1;
    unsigned          is_response:1;  /* has a :status */
    unsigned          is_interim:1;   /* 1xx */
} llmgw_grpc_block_t;


/* What each message needs comes first, in one cache line. */
struct llmgw_grpc_stream_s {
    llmgw_grpc_session_t  *session;
    void                  *data;
    int32_t                id;
    int                    http_status;

    unsigned               is_sent:1;       /* client: HEADERS have left */
    unsigned               is_answered:1;   /* server: HEADERS submitted;
                                               client: HEADERS received */
    unsigned               is_grpc:1;       /* client: by content-type */
    unsigned               is_foreign:1;    /* client: body is not gRPC */
    unsigned               is_deferred:1;   /* nghttp2 waits for resume */
    unsigned               is_in_ended:1;   /* on_end was called */
    unsigned               is_out_ended:1;  /* half-closed or finished */
    unsigned               is_reset:1;      /* or closed: no more callbacks */

    uint32_t               kept_back;       /* bytes consumed, not reported to
                                               nghttp2 */
    llmgw_grpc_reader_t    in;

    llmgw_grpc_stream_t   *prev;
    llmgw_grpc_stream_t   *next;
    llmgw_grpc_buf_t       out;
    const uint8_t         *tail;      /* the caller's bytes, sent after `out` */
    size_t                 tail_len;
    llmgw_grpc_buf_t       text;      /* server: path; client: message */
    llmgw_grpc_buf_t       trailers;  /* server: packed, until out is empty */
    uint64_t               timeout_ms;
    size_t                 max_message_bytes;
    size_t                 unfinished_bytes;    /* its bytes in
                                                   session->unfinished */
    int                    status;    /* client: grpc-status */
    unsigned               is_trusted:1;    /* then they are not counted
                                               there */
} __attribute__((aligned(LLMGW_GRPC_CACHE_LINE)));


/* scout.c: start of the next frame of the input. */
typedef struct {
    size_t   skip;                    /* rest of the current frame, bytes */
    size_t   head_bytes;              /* bytes of a frame header cut in two */
    uint8_t  head[LLMGW_GRPC_FRAME_HEAD_BYTES];
} llmgw_grpc_scout_t;


/*
 * Operations in which the two roles differ. If the difference is only a
 * condition, the code tests is_server.
 */
typedef struct {
    int   (*open)(nghttp2_session **h2,
                  const nghttp2_session_callbacks *callbacks, void *data,
                  const nghttp2_option *option);

    /* Sets the one entry of SETTINGS that the other role does not send. */
    void  (*setting)(const llmgw_grpc_config_t *config,
                     nghttp2_settings_entry *entry);

    /* A field of the arriving block. */
    void  (*field)(llmgw_grpc_session_t *session, const nghttp2_frame *frame,
                   const char *name, size_t name_len, const char *value,
                   size_t value_len);

    /* HEADERS were sent. */
    void  (*sent)(llmgw_grpc_session_t *session, const nghttp2_frame *frame);

    /*
     * Only the server has it.  A request's block is complete: makes its
     * stream, or answers with an HTTP status and returns NULL.
     */
    llmgw_grpc_stream_t *(*request)(llmgw_grpc_session_t *session,
                                    int32_t id);

    /* A message will follow: sends HEADERS unless they were sent. */
    llmgw_grpc_rc_t (*answer)(llmgw_grpc_stream_t *stream);

    /*
     * The queue's last byte was taken: sends what comes after it.  0, or an
     * error.
     */
    int   (*end)(llmgw_grpc_stream_t *stream, uint32_t *flags);
} llmgw_grpc_role_t;


struct llmgw_grpc_session_s {
    nghttp2_session               *h2;
    const llmgw_grpc_role_t       *role;
    const llmgw_grpc_callbacks_t  *callbacks;
    void                          *data;
    llmgw_grpc_stream_t           *streams;      /* newest first */
    llmgw_grpc_stream_t           *spare;
    llmgw_grpc_stream_t           *drained;      /* drained by the frame being
                                                    sent */
    llmgw_grpc_block_t             block;
    llmgw_grpc_scout_t             scout;        /* client */
    size_t                         nstreams;
    size_t                         nunsent;      /* of these, with bytes in
                                                    `out` */
    size_t                         nspare;
    size_t                         nempty_frames;
    size_t                         max_message_bytes;
    llmgw_grpc_unfinished_t       *unfinished;
    size_t                         received;     /* DATA of the recv under
                                                    way, not given back */
    uint32_t                       max_calls;    /* client: the peer's limit in
                                                    its SETTINGS */
    uint32_t                       keep_back;    /* bytes of a stream's
                                                    window */

    uint8_t                       *out;          /* of the write under way */
    size_t                         out_bytes;
    size_t                         out_capacity;

    llmgw_grpc_rc_t                failed;       /* what calls return from now
                                                    on */
    unsigned                       is_server:1;
    unsigned                       is_goaway_told:1;
    unsigned                       has_settings:1;  /* the peer's have come */
    unsigned                       is_goaway_sent:1;
    unsigned                       is_destroyed:1;
};


/* buf.c */

/*
 * Makes room for n bytes at the end and returns its address; NULL: out of
 * memory, nothing changed.
 */
uint8_t *llmgw_grpc_buf_reserve(llmgw_grpc_buf_t *buf, size_t n);
int llmgw_grpc_buf_append(llmgw_grpc_buf_t *buf, const void *src, size_t n);
void llmgw_grpc_buf_drop(llmgw_grpc_buf_t *buf, size_t n);
void llmgw_grpc_buf_clear(llmgw_grpc_buf_t *buf);
void llmgw_grpc_buf_done(llmgw_grpc_buf_t *buf);

static inline size_t
llmgw_grpc_buf_len(const llmgw_grpc_buf_t *buf)
{
    return buf->end - buf->start;
}


/* Packs one field; 0, or -1: out of memory. */
int llmgw_grpc_pack(llmgw_grpc_buf_t *buf, const char *name, size_t name_len,
    const char *value, size_t value_len);

/* Unpacks the field at *offset and advances it; 0 after the last. */
int llmgw_grpc_unpack(const llmgw_grpc_buf_t *buf, size_t *offset,
    nghttp2_nv *nv);


/* message.c */

/* Consumes *data and *len.  A message is valid until the next call. */
llmgw_grpc_read_t llmgw_grpc_reader_next(llmgw_grpc_reader_t *reader,
    size_t max_message_bytes, const uint8_t **data, size_t *len,
    llmgw_grpc_message_t *message);
int llmgw_grpc_reader_is_within(const llmgw_grpc_reader_t *reader);

/* Returns the wire bytes to give back now, and counts them as given back. */
size_t llmgw_grpc_reader_release(llmgw_grpc_reader_t *reader,
    size_t wire_bytes);


/* scout.c */

/* Looks through data, which is the input that nghttp2 gets next. */
void llmgw_grpc_scout(llmgw_grpc_session_t *session, const uint8_t *data,
    size_t len);


/* headers.c */

void llmgw_grpc_block_init(llmgw_grpc_block_t *block);
void llmgw_grpc_block_done(llmgw_grpc_block_t *block);

/* Counts a field; 0: this field puts the block over the limit. */
int llmgw_grpc_block_add(llmgw_grpc_block_t *block, size_t name_len,
    size_t value_len);

/* "application/grpc", alone or with "+proto", ";charset" or the like. */
int llmgw_grpc_is_grpc_type(const char *value, size_t len);

/* Compares the caller's variables name and name_len with a literal. */
#define llmgw_grpc_is_field(literal)                                          \
    (name_len == sizeof(literal) - 1                                          \
     && memcmp(name, literal, sizeof(literal) - 1) == 0)


/* session.c */

llmgw_grpc_session_t *llmgw_grpc_session_create(
    const llmgw_grpc_config_t *config, const llmgw_grpc_role_t *role);


/* stream.c */

llmgw_grpc_stream_t *llmgw_grpc_stream_create(llmgw_grpc_session_t *session);
void llmgw_grpc_stream_free(llmgw_grpc_stream_t *stream);
void llmgw_grpc_stream_receive(llmgw_grpc_stream_t *stream,
    const uint8_t *data, size_t len);
void llmgw_grpc_stream_end(llmgw_grpc_stream_t *stream);
void llmgw_grpc_stream_close(llmgw_grpc_stream_t *stream, uint32_t error,
    int is_refused);

/* Closes a call whose HEADERS were never sent. */
void llmgw_grpc_stream_abandon(llmgw_grpc_stream_t *stream, uint32_t error);


/* send.c */

ssize_t llmgw_grpc_source_read(nghttp2_session *h2, int32_t id, uint8_t *buf,
    size_t length, uint32_t *flags, nghttp2_data_source *source, void *data);
int llmgw_grpc_source_send(nghttp2_session *h2, nghttp2_frame *frame,
    const uint8_t *frame_header, size_t length, nghttp2_data_source *source,
    void *data);
void llmgw_grpc_stream_resume(llmgw_grpc_stream_t *stream);
void llmgw_grpc_nv(nghttp2_nv *nv, const char *name, size_t name_len,
    const char *value, size_t value_len);

#define llmgw_grpc_nv_literal(name, value)                                    \
    { (uint8_t *) name, (uint8_t *) value, sizeof(name) - 1,                  \
      sizeof(value) - 1,                                                      \
      NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE }


/* events.c */

void llmgw_grpc_events_set(nghttp2_session_callbacks *callbacks);


/* status.c */

/* Decodes a message in place; returns the new length. */
size_t llmgw_grpc_message_decode(char *message, size_t len);

/* The value of a grpc-status; UNKNOWN where it is not a status. */
int llmgw_grpc_status_decode(const char *value, size_t len);

#endif /* LLMGW_GRPC_SESSION_INNER_H */
