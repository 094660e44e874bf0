
#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/packet_header.h"
#include "common/listener.h"
#include "net/stream.h"


#define STREAM_LENGTH_BYTES  2
#define STREAM_BACKLOG       16

typedef struct {
    streams_t  *streams;
    int         fd;                 /* -1: free */
    int         is_ours;            /* we are asking */
    address_t   peer;
    ev_io       io;
    ev_timer    timeout;
    uint64_t    number;             /* streams are numbered as they begin */
    size_t      n;                  /* bytes received or sent */
    size_t      len;                /* bytes to send; 0: it receives */
    uint8_t     bytes[STREAM_LENGTH_BYTES + PACKET_MAX_BYTES];
} stream_t;

struct streams_s {
    struct ev_loop     *loop;
    listener_t          listener;
    transport_recv_pt   on_datagram;
    void               *data;
    stream_t           *asked;      /* the one being answered */
    uint64_t            number;
    stream_t            streams[STREAM_MAX];
};


static void stream_ready(struct ev_loop *loop, ev_io *io, int events);


static void
stream_close(stream_t *stream)
{
    if (stream->fd == -1) {
        return;
    }

    ev_io_stop(stream->streams->loop, &stream->io);
    ev_timer_stop(stream->streams->loop, &stream->timeout);
    close(stream->fd);
    stream->fd = -1;
}


static void
stream_timeout(struct ev_loop *loop, ev_timer *timer, int events)
{
    stream_close(timer->data);
}


static void
stream_watch(stream_t *stream, int events)
{
    ev_io_stop(stream->streams->loop, &stream->io);
    ev_io_set(&stream->io, stream->fd, events);
    ev_io_start(stream->streams->loop, &stream->io);
}


/*
 * Whether a gives up its slot rather than b.  Of two that may, the older one
 * does.
 */
static int
stream_yields(const stream_t *a, const stream_t *b)
{
    if (a->fd == -1 || b->fd == -1) {
        return b->fd != -1;
    }

    return a->is_ours != b->is_ours ? b->is_ours : a->number < b->number;
}


/*
 * Opens a stream, and takes over fd.  NULL: fd was closed, since all slots have
 * questions of our own.
 */
static stream_t *
stream_open(streams_t *streams, int fd, const address_t *peer, int is_ours)
{
    size_t     i;
    stream_t  *stream;

    stream = &streams->streams[0];

    for (i = 1; i < STREAM_MAX; i++) {
        if (stream_yields(&streams->streams[i], stream)) {
            stream = &streams->streams[i];
        }
    }

    if (stream->fd != -1 && stream->is_ours && !is_ours) {
        close(fd);
        return NULL;
    }

    stream_close(stream);

    stream->fd = fd;
    stream->is_ours = is_ours;
    stream->peer = *peer;
    stream->number = ++streams->number;
    stream->n = 0;
    stream->len = 0;
    ev_io_init(&stream->io, stream_ready, fd, EV_READ);
    ev_timer_init(&stream->timeout, stream_timeout, STREAM_TIMEOUT_S, 0.);
    stream->io.data = stream;
    stream->timeout.data = stream;
    ev_io_start(streams->loop, &stream->io);
    ev_timer_start(streams->loop, &stream->timeout);

    return stream;
}


static void
stream_fill(stream_t *stream, const uint8_t *bytes, size_t len)
{
    stream->bytes[0] = len >> 8;
    stream->bytes[1] = len & 0xff;
    memcpy(stream->bytes + STREAM_LENGTH_BYTES, bytes, len);
    stream->n = 0;
    stream->len = STREAM_LENGTH_BYTES + len;
}


static void
stream_write(stream_t *stream)
{
    ssize_t  n;

    n = send(stream->fd, stream->bytes + stream->n, stream->len - stream->n,
             MSG_NOSIGNAL);

    if (n == -1) {
        if (errno != EAGAIN && errno != EINTR) {
            stream_close(stream);
        }

        return;
    }

    stream->n += n;

    if (stream->n < stream->len) {
        return;
    }

    if (!stream->is_ours) {
        stream_close(stream);       /* the answer was sent */
        return;
    }

    stream->n = 0;
    stream->len = 0;
    stream_watch(stream, EV_READ);
}


/* A whole question or answer has been received: delivers it. */
static void
stream_deliver(stream_t *stream)
{
    size_t      len;
    uint64_t    number;
    streams_t  *streams;

    streams = stream->streams;
    number = stream->number;
    len = stream->n - STREAM_LENGTH_BYTES;

    streams->asked = stream->is_ours ? NULL : stream;
    streams->on_datagram(streams->data, &stream->peer,
                         stream->bytes + STREAM_LENGTH_BYTES, len);
    streams->asked = NULL;

    /*
     * no answer was given, or the datagram was an answer itself: the stream
     * ends
     */
    if (stream->number == number && stream->len == 0) {
        stream_close(stream);
    }
}


static void
stream_read(stream_t *stream)
{
    size_t   want;
    ssize_t  n;

    want = STREAM_LENGTH_BYTES;

    if (stream->n >= STREAM_LENGTH_BYTES) {
        want += stream->bytes[0] << 8 | stream->bytes[1];
    }

    if (want > sizeof(stream->bytes)) {
        stream_close(stream);
        return;
    }

    n = recv(stream->fd, stream->bytes + stream->n, want - stream->n, 0);

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            stream_close(stream);
        }

        return;
    }

    stream->n += n;

    if (stream->n > STREAM_LENGTH_BYTES && stream->n == want) {
        stream_deliver(stream);
    }
}


static void
stream_ready(struct ev_loop *loop, ev_io *io, int events)
{
    stream_t  *stream = io->data;

    if (stream->len != 0) {
        stream_write(stream);

    } else {
        stream_read(stream);
    }
}


void
streams_ask(streams_t *streams, const address_t *to, const uint8_t *bytes,
    size_t len)
{
    int        fd, on;
    stream_t  *stream;

    assert(len <= PACKET_MAX_BYTES);

    fd = socket(to->ss.ss_family, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd == -1) {
        return;
    }

    on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));

    if (connect(fd, (const struct sockaddr *) &to->ss, to->len) == -1
        && errno != EINPROGRESS)
    {
        close(fd);
        return;
    }

    stream = stream_open(streams, fd, to, 1);
    stream_fill(stream, bytes, len);
    stream_watch(stream, EV_WRITE);
}


int
streams_answer(streams_t *streams, const address_t *to, const uint8_t *bytes,
    size_t len)
{
    stream_t  *stream;

    stream = streams->asked;

    if (stream == NULL || stream->len != 0 || len > PACKET_MAX_BYTES
        || to->len != stream->peer.len
        || memcmp(&to->ss, &stream->peer.ss, to->len) != 0)
    {
        return 0;
    }

    stream_fill(stream, bytes, len);
    stream_watch(stream, EV_WRITE);

    return 1;
}


static void
streams_accept(void *data, int fd, const address_t *peer)
{
    (void) stream_open(data, fd, peer, 0);
}


void
streams_on_starved(streams_t *streams, listener_starved_pt on_starved,
    void *data)
{
    listener_on_starved(&streams->listener, on_starved, data);
}


static int
streams_listen(const address_t *address)
{
    int  fd, on;

    fd = socket(address->ss.ss_family,
                SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);
    if (fd == -1) {
        return -1;
    }

    /* connections left by an earlier run must not keep the port busy */
    on = 1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));

    if (bind(fd, (const struct sockaddr *) &address->ss, address->len) == -1
        || listen(fd, STREAM_BACKLOG) == -1)
    {
        close(fd);
        return -1;
    }

    return fd;
}


streams_t *
streams_create(struct ev_loop *loop, const address_t *address,
    transport_recv_pt on_datagram, void *data, char *error)
{
    int         fd;
    char        text[ADDRESS_TEXT_BYTES];
    size_t      i;
    streams_t  *streams;

    fd = streams_listen(address);
    if (fd == -1) {
        address_format(address, text);
        snprintf(error, STREAM_ERROR_BYTES,
                 "cannot bind gossip address %s/tcp: %s", text,
                 strerror(errno));
        return NULL;
    }

    streams = calloc(1, sizeof(streams_t));
    if (streams == NULL) {
        snprintf(error, STREAM_ERROR_BYTES, "out of memory");
        close(fd);
        return NULL;
    }

    streams->loop = loop;
    streams->on_datagram = on_datagram;
    streams->data = data;

    for (i = 0; i < STREAM_MAX; i++) {
        streams->streams[i].streams = streams;
        streams->streams[i].fd = -1;
    }

    listener_init(&streams->listener, loop, fd, streams_accept, streams);

    return streams;
}


void
streams_destroy(streams_t *streams)
{
    size_t  i;

    for (i = 0; i < STREAM_MAX; i++) {
        stream_close(&streams->streams[i]);
    }

    listener_done(&streams->listener);
    free(streams);
}
