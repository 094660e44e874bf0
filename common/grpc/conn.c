
/*
 * Shared by both halves of conn.h: bytes between a socket and a session.
 *
 * Reading is one recv(2) per event-loop iteration and connection.  Writing is
 * put off: a caller that queues something wakes the connection (recv does by
 * itself), which feeds an event of the lowest priority.  libev comes to it
 * after the iteration's sockets and timers.  So ten streams that emit a token
 * in one iteration cost one send(2), and an idle connection costs nothing.  (An
 * ev_prepare could run before other ev_prepares, and would leave what they
 * queue unsent while the loop sleeps.)
 *
 *                connected          end of file, error, protocol error, silence
 *   CONNECTING ------------> OPEN ------------------------------------------.
 *       |                     |   |                                         v
 *       | refused, timeout    |   | session over           on_close of each
 *       |                     |   '-----> LINGERING -----> stream, then
 *       '------------->-------'            end of file,    on_closed, free
 *                     destroy()            timeout
 *
 * A server's connection is new until its client's first frame has come
 * (server.c).
 *
 * Bytes that the socket does not take are kept in `rest` (less than one
 * buffer), and the session is not asked for more until they are sent: the
 * queues of streams then grow, which their owners can see by
 * llmgw_grpc_stream_queued().
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/grpc/conn.h"
#include "common/grpc/conn_inner.h"
#include "common/os/mono.h"


#define GRPC_CONN_READ_BYTES   65536
#define GRPC_CONN_WRITE_BYTES  65536

/* A connection that could write for ever yields after this many bytes. */
#define GRPC_CONN_TURN_BYTES   (1024 * 1024)

/* Time for the peer to take a last GOAWAY and close. */
#define GRPC_CONN_LINGER_S     0.2


static void grpc_conn_on_woken(struct ev_loop *loop, ev_prepare *w,
    int revents);
static void grpc_conn_on_readable(struct ev_loop *loop, ev_io *w, int revents);
static void grpc_conn_on_writable(struct ev_loop *loop, ev_io *w, int revents);
static void grpc_conn_on_timeout(struct ev_loop *loop, ev_timer *w,
    int revents);


static void
grpc_conn_stop(grpc_conn_t *c)
{
    ev_clear_pending(c->loop, &c->waker);
    ev_io_stop(c->loop, &c->reader);
    ev_io_stop(c->loop, &c->writer);
    ev_timer_stop(c->loop, &c->timer);
}


void
grpc_conn_end(grpc_conn_t *c, const char *reason, int tell)
{
    llmgw_grpc_session_t  *session;

    session = c->session;
    c->session = NULL;
    c->is_destroyed = 1;
    c->busy++;

    grpc_conn_stop(c);
    llmgw_grpc_session_destroy(session);

    if (c->on_closed != NULL && tell) {
        c->on_closed(c, reason);
    }

    if (c->on_gone != NULL) {
        c->on_gone(c);
    }

    if (c->channel != NULL) {
        c->options.channel->close(c->channel);
    }

    close(c->fd);
    free(c->rest);
    free(c);
}


void
grpc_conn_destroy(grpc_conn_t *c)
{
    if (c->is_destroyed) {
        return;
    }

    c->is_destroyed = 1;

    if (c->busy == 0) {
        grpc_conn_end(c, NULL, 0);
    }
}


/* Keeps bytes that the socket did not take. */
static int
grpc_conn_keep(grpc_conn_t *c, const uint8_t *data, size_t len)
{
    c->rest = malloc(len);

    if (c->rest == NULL) {
        return -1;
    }

    memcpy(c->rest, data, len);
    c->rest_start = 0;
    c->rest_end = len;

    return 0;
}


/* Returns how many bytes the socket took, 0 if none now, or -1. */
static ssize_t
grpc_conn_put(grpc_conn_t *c, const uint8_t *data, size_t len)
{
    ssize_t  n;

    do {
        n = c->channel == NULL
            ? send(c->fd, data, len, MSG_NOSIGNAL)
            : c->options.channel->write(c->channel, data, len);
    } while (n < 0 && errno == EINTR);

    if (n < 0 && errno == EAGAIN) {
        return 0;
    }

    return n;
}


/* Sends kept bytes.  1: all are sent; 0: the socket is full; -1: broken. */
static int
grpc_conn_put_rest(grpc_conn_t *c)
{
    ssize_t  n;

    if (c->rest == NULL) {
        return 1;
    }

    n = grpc_conn_put(c, c->rest + c->rest_start,
                      c->rest_end - c->rest_start);

    if (n < 0) {
        return -1;
    }

    c->rest_start += (size_t) n;

    if (c->rest_start < c->rest_end) {
        return 0;
    }

    free(c->rest);
    c->rest = NULL;

    return 1;
}


/*
 * Moves bytes from the session to the socket.  1: all was written; 0: the rest
 * waits for the socket; -1: broken.
 */
static int
grpc_conn_pump(grpc_conn_t *c)
{
    int      rc;
    size_t   total;
    ssize_t  n, sent;
    uint8_t  buf[GRPC_CONN_WRITE_BYTES];

    rc = grpc_conn_put_rest(c);

    if (rc <= 0) {
        return rc;
    }

    for (total = 0; total < GRPC_CONN_TURN_BYTES; total += (size_t) n) {
        n = llmgw_grpc_session_write(c->session, buf, sizeof(buf));

        if (n <= 0) {
            return n < 0 ? -1 : 1;
        }

        sent = grpc_conn_put(c, buf, (size_t) n);

        if (sent < 0) {
            return -1;
        }

        if (sent < n) {
            return grpc_conn_keep(c, buf + sent, (size_t) (n - sent));
        }
    }

    return 0;
}


/* The reason why the last call on the socket failed. */
static const char *
grpc_conn_fault(grpc_conn_t *c)
{
    return c->channel != NULL && errno == EPROTO
           ? c->options.channel->reason(c->channel) : strerror(errno);
}


/* Returns the reason to end the connection; NULL: it continues. */
static const char *
grpc_conn_write(grpc_conn_t *c, int *is_over)
{
    int  rc;

    errno = 0;
    c->busy++;
    rc = grpc_conn_pump(c);
    c->busy--;

    if (rc < 0) {
        return errno != 0 ? grpc_conn_fault(c) : "out of memory";
    }

    if (rc == 0) {
        ev_io_start(c->loop, &c->writer);

    } else {
        ev_io_stop(c->loop, &c->writer);
        *is_over = llmgw_grpc_session_is_over(c->session);
    }

    return NULL;
}


/*
 * Both sides have sent everything.  If close(2) were called with the peer's
 * bytes unread, a reset would follow our GOAWAY, and a peer that writes just
 * then would see the reset first.  So the peer's end of file is waited for.
 */
void
grpc_conn_linger(grpc_conn_t *c, const char *reason)
{
    if (c->channel != NULL && !c->is_connecting) {
        c->options.channel->finish(c->channel);
    }

    if (shutdown(c->fd, SHUT_WR) != 0) {
        grpc_conn_end(c, reason, 1);
        return;
    }

    c->reason = reason;
    c->is_lingering = 1;
    ev_io_stop(c->loop, &c->writer);
    ev_io_start(c->loop, &c->reader);
    ev_timer_stop(c->loop, &c->timer);
    ev_timer_set(&c->timer, GRPC_CONN_LINGER_S, 0);
    ev_timer_start(c->loop, &c->timer);
}


static void
grpc_conn_flush(grpc_conn_t *c)
{
    int          is_over;
    const char  *reason;

    is_over = 0;
    ev_clear_pending(c->loop, &c->waker);
    reason = grpc_conn_write(c, &is_over);

    if (c->is_destroyed) {
        grpc_conn_end(c, NULL, 0);
        return;
    }

    if (reason != NULL) {
        grpc_conn_end(c, reason, 1);

    } else if (is_over && !c->is_lingering) {
        grpc_conn_linger(c, NULL);
    }
}


void
grpc_conn_wake(grpc_conn_t *c)
{
    if (!c->is_connecting && !c->is_lingering && !c->is_destroyed
        && !ev_is_active(&c->writer))
    {
        ev_feed_event(c->loop, &c->waker, EV_CUSTOM);
    }
}


static void
grpc_conn_on_woken(struct ev_loop *loop, ev_prepare *w, int revents)
{
    grpc_conn_flush(w->data);
}


/* Feeds the session; a peer that broke HTTP/2 gets a last GOAWAY. */
static void
grpc_conn_feed(grpc_conn_t *c, const uint8_t *data, size_t len)
{
    int              is_over;
    llmgw_grpc_rc_t  rc;

    c->busy++;
    rc = llmgw_grpc_session_recv(c->session, data, len);
    c->busy--;

    if (c->is_destroyed) {
        grpc_conn_end(c, NULL, 0);
        return;
    }

    if (rc == LLMGW_GRPC_DONE) {
        grpc_conn_wake(c);
        grpc_conn_check_ready(c);
        return;
    }

    (void) grpc_conn_write(c, &is_over);
    grpc_conn_end(c, rc == LLMGW_GRPC_EPROTO ? "protocol error"
                                             : "out of memory",
                  !c->is_destroyed);
}


static ssize_t
grpc_conn_get(grpc_conn_t *c, uint8_t *buf, size_t capacity)
{
    ssize_t  n;

    if (c->channel == NULL || c->is_lingering) {
        return recv(c->fd, buf, capacity, 0);
    }

    n = c->options.channel->read(c->channel, buf, capacity);

    if (c->options.channel->read_wants_write(c->channel)) {
        ev_io_stop(c->loop, &c->reader);
        ev_io_start(c->loop, &c->writer);
    }

    return n;
}


/*
 * The reason of an end of file; NULL: it is orderly.  In HTTP/2 the server
 * sends first; a server that has sent nothing may be waiting for the client's
 * TLS.
 */
static const char *
grpc_conn_eof(const grpc_conn_t *c)
{
    if (c->server == NULL && !c->is_heard && !c->is_lingering) {
        return "connection closed by the peer before it sent anything: it may "
               "expect TLS";
    }

    return llmgw_grpc_session_streams(c->session) > 0
           ? "connection closed by the peer" : NULL;
}


static void
grpc_conn_on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    ssize_t       n;
    uint8_t       buf[GRPC_CONN_READ_BYTES];
    grpc_conn_t  *c;

    c = w->data;

    if (c->is_shaking) {
        grpc_conn_shake(c);
        return;
    }

    n = grpc_conn_get(c, buf, sizeof(buf));

    if (n > 0) {
        c->read_ms = mono_ms();
        c->is_pinged = 0;

        if (!c->is_heard) {
            c->is_heard = 1;
            grpc_conn_look(c, buf, (size_t) n);
        }

        if (!c->is_lingering) {
            grpc_conn_feed(c, buf, (size_t) n);
        }

        return;
    }

    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (c->is_lingering && (n < 0 || c->reason != NULL)) {
        grpc_conn_end(c, c->reason, 1);
        return;
    }

    grpc_conn_end(c, n < 0 ? grpc_conn_fault(c) : grpc_conn_eof(c), 1);
}


static void
grpc_conn_on_writable(struct ev_loop *loop, ev_io *w, int revents)
{
    grpc_conn_t  *c;

    c = w->data;

    if (c->is_shaking) {
        grpc_conn_shake(c);

    } else if (c->is_connecting) {
        grpc_conn_connected(c);

    } else {
        ev_io_start(loop, &c->reader);
        grpc_conn_flush(c);
    }
}


void
grpc_conn_wait_for_silence(grpc_conn_t *c, double seconds)
{
    ev_timer_set(&c->timer, seconds, 0);
    ev_timer_start(c->loop, &c->timer);
}


/*
 * A PING is sent before a peer is given up, however late this is called: it may
 * have been our own loop that stood still.
 */
static void
grpc_conn_on_silence(grpc_conn_t *c)
{
    double  left_s;

    if (c->is_pinged) {
        grpc_conn_end(c, "the peer does not answer a PING", 1);
        return;
    }

    left_s = ((double) c->options.ping_ms
              - (double) (mono_ms() - c->read_ms)) / 1000;

    if (left_s > 0) {
        grpc_conn_wait_for_silence(c, left_s);
        return;
    }

    if (llmgw_grpc_session_ping(c->session) != LLMGW_GRPC_DONE) {
        grpc_conn_end(c, "out of memory", 1);
        return;
    }

    c->is_pinged = 1;
    grpc_conn_wake(c);
    grpc_conn_wait_for_silence(c, (double) c->options.answer_ms / 1000);
}


static void
grpc_conn_on_timeout(struct ev_loop *loop, ev_timer *w, int revents)
{
    grpc_conn_t  *c;

    c = w->data;

    if (c->is_lingering) {
        grpc_conn_end(c, c->reason, 1);

    } else if (c->is_shaking) {
        grpc_conn_shake_late(c);

    } else if (c->is_connecting) {
        grpc_conn_end(c, "connect timed out", 1);

    } else if (c->on_ready != NULL) {
        grpc_conn_end(c, "the client sent nothing", 1);

    } else {
        grpc_conn_on_silence(c);
    }
}


grpc_conn_t *
grpc_conn_create(struct ev_loop *loop, int fd, const address_t *peer,
    const grpc_conn_options_t *options, const llmgw_grpc_config_t *config,
    grpc_conn_session_pt create)
{
    int                   one;
    grpc_conn_t          *c;
    llmgw_grpc_config_t   own;

    c = calloc(1, sizeof(grpc_conn_t));

    if (c == NULL) {
        return NULL;
    }

    own = *config;
    own.data = c;
    c->session = create(&own);

    if (c->session == NULL) {
        free(c);
        return NULL;
    }

    c->loop = loop;
    c->fd = fd;
    c->peer = *peer;
    c->data = config->data;

    if (options != NULL) {
        c->options = *options;
    }

    ev_prepare_init(&c->waker, grpc_conn_on_woken);
    ev_io_init(&c->reader, grpc_conn_on_readable, fd, EV_READ);
    ev_io_init(&c->writer, grpc_conn_on_writable, fd, EV_WRITE);
    ev_init(&c->timer, grpc_conn_on_timeout);
    ev_set_priority(&c->waker, EV_MINPRI);
    ev_set_priority(&c->timer, EV_MINPRI);  /* after bytes that have come in
                                               time */
    c->waker.data = c;
    c->reader.data = c;
    c->writer.data = c;
    c->timer.data = c;

    one = 1;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));

    return c;
}


llmgw_grpc_session_t *
grpc_conn_session(grpc_conn_t *c)
{
    return c->session;
}


void *
grpc_conn_data(grpc_conn_t *c)
{
    return c->data;
}


void
grpc_conn_peer(const grpc_conn_t *c, address_t *address)
{
    *address = c->peer;
}
