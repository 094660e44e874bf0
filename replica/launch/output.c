
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "replica/launch/output.h"


/* Bytes that are read at a time, so that other events of the loop come
   between. */
#define OUTPUT_READ_BYTES  16384


/* Whether the log can take a line now: a file always can; a pipe, if a whole
   line fits. */
static int
output_log_takes(void)
{
    struct pollfd  fd = { .fd = STDERR_FILENO, .events = POLLOUT };

    return poll(&fd, 1, 0) == 1 && (fd.revents & POLLOUT);
}


static void
output_line(output_t *o)
{
    o->line[o->len] = '\0';

    if (o->len == 0) {
        /* an empty line */

    } else if (!output_log_takes()) {
        o->dropped++;

    } else {
        if (o->dropped > 0) {
            log_write(o->log, LOG_WARN, "%lu lines of the engine are missing "
                      "here, the log could not take them", o->dropped);
            o->dropped = 0;
        }

        log_write(o->log, LOG_INFO, "engine: %s%s", o->line,
                  o->is_cut ? "..." : "");
    }

    o->len = 0;
    o->is_cut = 0;
}


static void
output_byte(output_t *o, char c)
{
    if (c == '\n') {
        output_line(o);
        o->is_return = 0;
        return;
    }

    if (c == '\r') {
        o->is_return = 1;
        return;
    }

    if (o->is_return) {
        o->is_return = 0;
        o->len = 0;
        o->is_cut = 0;
    }

    if (o->len == OUTPUT_LINE_BYTES) {
        o->is_cut = 1;
        return;
    }

    o->line[o->len++] = c;
}


/* Returns the number of bytes; 0: all writers have ended; -1: none now. */
static ssize_t
output_read(output_t *o)
{
    char     bytes[OUTPUT_READ_BYTES];
    ssize_t  i, n;

    n = read(o->read_fd, bytes, sizeof(bytes));

    for (i = 0; i < n; i++) {
        output_byte(o, bytes[i]);
    }

    return n;
}


static void
output_on_readable(struct ev_loop *loop, ev_io *w, int revents)
{
    output_t  *o;

    o = w->data;

    if (output_read(o) == 0) {
        ev_io_stop(loop, w);
    }
}


/* The write end stays open here, so that there is no end of file between two
   starts of the engine. */
int
output_open(output_t *o, struct ev_loop *loop, const log_t *log)
{
    int  ends[2];

    memset(o, 0, sizeof(*o));
    o->loop = loop;
    o->log = log;
    o->read_fd = -1;
    o->write_fd = -1;

    if (pipe2(ends, O_CLOEXEC) != 0) {
        return -1;
    }

    o->read_fd = ends[0];
    o->write_fd = ends[1];
    (void) fcntl(o->read_fd, F_SETFL, O_NONBLOCK);

    ev_io_init(&o->watch, output_on_readable, o->read_fd, EV_READ);
    o->watch.data = o;
    ev_io_start(loop, &o->watch);

    return 0;
}


void
output_close(output_t *o)
{
    if (o->read_fd == -1) {
        return;
    }

    ev_io_stop(o->loop, &o->watch);
    close(o->write_fd);

    while (output_read(o) > 0) { /* void */ }

    output_line(o);
    close(o->read_fd);
    o->read_fd = -1;
    o->write_fd = -1;
}
