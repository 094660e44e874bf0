
/*
 * Lines over a libev socket.
 *
 * Incoming bytes gather in one buffer that grows to LINE_MAX_BYTES and no
 * further; outgoing lines go to the socket at once where nothing is queued
 * before them, so that the last line of a process leaves even if its loop
 * does not turn again.  Bytes that the socket does not take wait in `out`.
 *
 *            +--------+   finish(), or end of file with lines queued
 *   create ->|  OPEN  |-----------------------------+
 *            +--------+                             v
 *                 |                           +-----------+
 *                 | destroy(), error, limit   | FINISHING |
 *                 |                           +-----------+
 *                 v                                 |
 *             destroyed <---- queue empty, error, --+
 *                             or LINE_LINGER_S without progress
 *
 * A caller may destroy a connection from within its own callbacks: while one
 * runs (`busy`) the memory stays, and is freed when it has returned.  An error
 * in line_conn_send() is stored, and reported by on_close from the loop: no
 * callback comes from within a caller's own call.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/line_conn.h"
#include "common/line_fds.h"


#define LINE_READ_BYTES  16384      /* one read(2) an iteration, for fairness */
#define LINE_LINGER_S    10.0       /* for a peer that does not read its
                                       answer */


typedef struct {
    char    *data;
    size_t   start;         /* bytes before this one have been used */
    size_t   end;
    size_t   capacity;
} line_buffer_t;

struct line_conn_s {
    struct ev_loop         *loop;
    ev_io                   reader;
    ev_io                   writer;
    ev_timer                linger;
    line_conn_callbacks_t   callbacks;
    void                   *data;
    int                     fd;
    line_fds_t              fds;
    line_buffer_t           in;
    size_t                  scanned;    /* bytes of `in` known to have no
                                           newline */
    line_buffer_t           out;
    size_t                  hold_back;  /* limit of queued bytes; SIZE_MAX:
                                           none */
    const char             *error;      /* to be reported from the loop */
    unsigned                busy:1;
    unsigned                finishing:1;
    unsigned                destroyed:1;
};


/* Makes room for len more bytes; used bytes are dropped first. */
static int
line_buffer_reserve(line_buffer_t *b, size_t len)
{
    char    *data;
    size_t   capacity;

    if (b->capacity - b->end >= len) {
        return 0;
    }

    if (b->start > 0) {
        memmove(b->data, b->data + b->start, b->end - b->start);
        b->end -= b->start;
        b->start = 0;
    }

    capacity = b->capacity > 0 ? b->capacity : 4096;

    while (capacity - b->end < len) {
        capacity *= 2;
    }

    if (capacity == b->capacity) {
        return 0;
    }

    data = realloc(b->data, capacity);

    if (data == NULL) {
        return -1;
    }

    b->data = data;
    b->capacity = capacity;

    return 0;
}


static void
line_buffer_use(line_buffer_t *b, size_t len)
{
    b->start += len;

    if (b->start == b->end) {
        b->start = 0;
        b->end = 0;
    }
}


static size_t
line_buffer_len(const line_buffer_t *b)
{
    return b->end - b->start;
}


static void
line_conn_free(line_conn_t *c)
{
    line_fds_done(&c->fds);
    free(c->in.data);
    free(c->out.data);
    free(c);
}


void
line_conn_destroy(line_conn_t *c)
{
    if (c->destroyed) {
        return;
    }

    c->destroyed = 1;

    ev_io_stop(c->loop, &c->reader);
    ev_io_stop(c->loop, &c->writer);
    ev_timer_stop(c->loop, &c->linger);
    close(c->fd);
    c->fd = -1;

    if (!c->busy) {
        line_conn_free(c);
    }
}


/* Calls on_close once, unless the caller has destroyed the connection. */
static void
line_conn_close(line_conn_t *c, const char *reason)
{
    if (!c->finishing && !c->destroyed) {
        c->finishing = 1;
        c->busy = 1;
        c->callbacks.on_close(c, reason);
        c->busy = 0;
    }

    if (c->destroyed) {
        line_conn_free(c);
        return;
    }

    if (reason == NULL && line_buffer_len(&c->out) > 0) {
        ev_io_stop(c->loop, &c->reader);
        ev_timer_again(c->loop, &c->linger);
        return;
    }

    line_conn_destroy(c);
}


static void
line_conn_fail(line_conn_t *c, const char *reason)
{
    c->error = reason;
    ev_feed_event(c->loop, &c->writer, EV_WRITE);
}


/* Writes as much as the socket takes.  0, or -1: the connection is broken. */
static int
line_conn_flush(line_conn_t *c)
{
    ssize_t  n;

    while (line_buffer_len(&c->out) > 0) {
        n = line_fds_send(&c->fds, c->fd, c->out.data + c->out.start,
                          line_buffer_len(&c->out));

        if (n < 0) {
            if (errno == EINTR) {
                continue;
            }

            if (errno == EAGAIN || errno == ENOTCONN) {
                ev_io_start(c->loop, &c->writer);
                return 0;
            }

            return -1;
        }

        line_buffer_use(&c->out, (size_t) n);

        if (c->finishing) {
            ev_timer_again(c->loop, &c->linger);
        }
    }

    ev_io_stop(c->loop, &c->writer);

    return 0;
}


static int
line_conn_holds_back(const line_conn_t *c)
{
    return line_buffer_len(&c->out) > c->hold_back;
}


/*
 * Hands out whole lines while that is allowed; while lines are held back, the
 * reader stops.  -1: the connection was destroyed meanwhile.
 */
static int
line_conn_cut(line_conn_t *c)
{
    char    *line, *newline;
    size_t   len;

    while (!c->destroyed && !c->finishing) {
        if (line_conn_holds_back(c)) {
            ev_io_stop(c->loop, &c->reader);
            break;
        }

        line = c->in.data + c->in.start;
        newline = memchr(line + c->scanned, '\n',
                         line_buffer_len(&c->in) - c->scanned);

        if (newline == NULL) {
            c->scanned = line_buffer_len(&c->in);
            line_fds_enter(&c->fds, 1);
            break;
        }

        *newline = '\0';
        len = (size_t) (newline - line);
        c->scanned = 0;

        if (len > LINE_MAX_BYTES) {
            c->scanned = len;
            break;
        }

        line_fds_enter(&c->fds, newline + 1 == c->in.data + c->in.end);
        c->busy = 1;
        c->callbacks.on_line(c, line, len);
        c->busy = 0;
        line_fds_leave(&c->fds);

        line_buffer_use(&c->in, len + 1);
    }

    if (c->destroyed) {
        line_conn_free(c);
        return -1;
    }

    return 0;
}


static void
line_conn_give_out(line_conn_t *c)
{
    if (line_conn_cut(c) == 0 && c->scanned > LINE_MAX_BYTES) {
        line_conn_close(c, "line too long");
    }
}


/* Lines that were received before the reader stopped are handed out first. */
static void
line_conn_resume(line_conn_t *c)
{
    ev_io_start(c->loop, &c->reader);
    line_conn_give_out(c);
}


static void
line_conn_on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    ssize_t       n;
    line_conn_t  *c;

    c = w->data;

    if (line_buffer_reserve(&c->in, LINE_READ_BYTES) != 0) {
        line_conn_close(c, "out of memory");
        return;
    }

    n = line_fds_recv(&c->fds, c->fd, c->in.data + c->in.end,
                      LINE_READ_BYTES);

    if (n < 0) {
        if (errno != EAGAIN && errno != EINTR) {
            line_conn_close(c, strerror(errno));
        }

        return;
    }

    if (n == 0) {
        line_conn_close(c, line_buffer_len(&c->in) > 0
                           ? "closed within a line" : NULL);
        return;
    }

    c->in.end += (size_t) n;
    line_conn_give_out(c);
}


static void
line_conn_on_writable(struct ev_loop *loop, ev_io *w, int revents)
{
    line_conn_t  *c;

    c = w->data;

    if (c->error != NULL) {
        line_conn_close(c, c->error);
        return;
    }

    if (line_conn_flush(c) != 0) {
        line_conn_close(c, strerror(errno));
        return;
    }

    if (c->finishing) {
        if (line_buffer_len(&c->out) == 0) {
            line_conn_destroy(c);
        }

        return;
    }

    if (!ev_is_active(&c->reader) && !line_conn_holds_back(c)) {
        line_conn_resume(c);
    }
}


static void
line_conn_on_linger(struct ev_loop *loop, ev_timer *w, int revents)
{
    line_conn_destroy(w->data);
}


line_conn_t *
line_conn_create(struct ev_loop *loop, int fd,
    const line_conn_callbacks_t *callbacks, void *data)
{
    line_conn_t  *c;

    c = calloc(1, sizeof(line_conn_t));

    if (c == NULL) {
        return NULL;
    }

    c->loop = loop;
    c->fd = fd;
    line_fds_init(&c->fds);
    c->callbacks = *callbacks;
    c->data = data;
    c->hold_back = SIZE_MAX;

    ev_io_init(&c->reader, line_conn_on_readable, fd, EV_READ);
    ev_io_init(&c->writer, line_conn_on_writable, fd, EV_WRITE);
    ev_init(&c->linger, line_conn_on_linger);
    c->linger.repeat = LINE_LINGER_S;
    c->reader.data = c;
    c->writer.data = c;
    c->linger.data = c;

    ev_io_start(loop, &c->reader);

    return c;
}


/* Queues a line; fd -1: no descriptor goes with it. */
static int
line_conn_queue(line_conn_t *c, const char *text, size_t len, int fd)
{
    int  was_empty;

    if (c->destroyed || c->finishing || c->error != NULL) {
        return -1;
    }

    was_empty = (line_buffer_len(&c->out) == 0);

    if (line_buffer_len(&c->out) + len + 1 > LINE_QUEUE_BYTES) {
        line_conn_fail(c, "peer does not read");
        return -1;
    }

    if (line_buffer_reserve(&c->out, len + 1) != 0) {
        line_conn_fail(c, "out of memory");
        return -1;
    }

    if (fd != -1
        && line_fds_push(&c->fds, fd, line_buffer_len(&c->out)) != 0)
    {
        line_conn_fail(c, errno == ENOBUFS ? "peer does not read"
                                           : strerror(errno));
        return -1;
    }

    memcpy(c->out.data + c->out.end, text, len);
    c->out.end += len;
    c->out.data[c->out.end++] = '\n';

    if (was_empty && line_conn_flush(c) != 0) {
        line_conn_fail(c, strerror(errno));
        return -1;
    }

    return 0;
}


int
line_conn_send(line_conn_t *c, const char *text, size_t len)
{
    return line_conn_queue(c, text, len, -1);
}


int
line_conn_send_fd(line_conn_t *c, const char *text, size_t len, int fd)
{
    return line_conn_queue(c, text, len, fd);
}


size_t
line_conn_queued(const line_conn_t *c)
{
    return line_buffer_len(&c->out);
}


void
line_conn_hold_back(line_conn_t *c, size_t queued_bytes)
{
    c->hold_back = queued_bytes;
}


void
line_conn_finish(line_conn_t *c)
{
    if (c->destroyed || c->finishing) {
        return;
    }

    if (c->error != NULL || line_buffer_len(&c->out) == 0) {
        line_conn_destroy(c);
        return;
    }

    c->finishing = 1;
    ev_io_stop(c->loop, &c->reader);
    ev_timer_again(c->loop, &c->linger);
}


void *
line_conn_data(line_conn_t *c)
{
    return c->data;
}


int
line_conn_fd(const line_conn_t *c)
{
    return c->fd;
}


int
line_conn_take_fd(line_conn_t *c)
{
    return line_fds_take(&c->fds);
}


int
line_conn_connect(const char *path)
{
    int                 fd, saved_errno;
    size_t              len;
    struct sockaddr_un  sun;

    len = strlen(path);

    if (len >= sizeof(sun.sun_path)) {
        errno = ENAMETOOLONG;
        return -1;
    }

    memset(&sun, 0, sizeof(sun));
    sun.sun_family = AF_UNIX;
    memcpy(sun.sun_path, path, len);

    fd = socket(AF_UNIX, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd < 0) {
        return -1;
    }

    if (connect(fd, (struct sockaddr *) &sun, sizeof(sun)) != 0) {
        saved_errno = errno;
        close(fd);
        errno = saved_errno;
        return -1;
    }

    return fd;
}
