
/*
 * A libev connection that speaks lines: the control socket's two ends.
 *
 * Incoming bytes are cut at '\n' and given out one line at a time, NUL
 * terminated, without the newline.  Outgoing lines are queued and written as
 * the socket takes them.  A line longer than LINE_MAX_BYTES, or a peer that
 * leaves more than LINE_QUEUE_BYTES unread, ends the connection.
 *
 * A server bounds the memory of its answers by line_conn_hold_back(): the lines
 * of a peer that does not read its answers are not answered any more.
 */

#ifndef LINE_CONN_H
#define LINE_CONN_H

#include <ev.h>
#include <stddef.h>


#define LINE_MAX_BYTES    (256 * 1024)          /* of a received line; sent ones
                                                   may be longer */
#define LINE_QUEUE_BYTES  (64 * 1024 * 1024)    /* 65536 members as JSON */

typedef struct line_conn_s  line_conn_t;

typedef struct {
    void  (*on_line)(line_conn_t *conn, char *line, size_t len);
    /*
     * The last callback: the peer closed or broke the connection, or exceeded a
     * limit; reason is NULL for an orderly end of file.  The connection is
     * destroyed after it.  It is not called for line_conn_destroy().
     */
    void  (*on_close)(line_conn_t *conn, const char *reason);
} line_conn_callbacks_t;

/*
 * Takes over fd, which is non-blocking, and connected or connecting.  NULL: out
 * of memory.
 */
line_conn_t *line_conn_create(struct ev_loop *loop, int fd,
    const line_conn_callbacks_t *callbacks, void *data);

/* Safe within callbacks. */
void line_conn_destroy(line_conn_t *conn);

/*
 * Queues text and a newline.  0; or -1: over the limit, the connection is
 * closing.
 */
int line_conn_send(line_conn_t *conn, const char *text, size_t len);

/*
 * The same, with a duplicate of fd (by SCM_RIGHTS, on the line's first byte;
 * -1: none); fd itself stays the caller's.  If LINE_FDS_MAX descriptors are
 * unsent, the peer does not read, and the connection ends as well.
 */
int line_conn_send_fd(line_conn_t *conn, const char *text, size_t len,
    int fd);

/* The number of bytes that the peer has not taken yet. */
size_t line_conn_queued(const line_conn_t *conn);

/*
 * From now on, while more than that many bytes are queued, no line is received
 * or handed out; both resume when the peer has taken enough.  So at most the
 * limit and one answer are queued, and lines that the caller sends without
 * being asked.  Only for the end that answers: two ends that hold back would
 * wait for each other.
 */
void line_conn_hold_back(line_conn_t *conn, size_t queued_bytes);

/* Destroys the connection once what is queued has been written. */
void line_conn_finish(line_conn_t *conn);

void *line_conn_data(line_conn_t *conn);
int line_conn_fd(const line_conn_t *conn);

/*
 * To be called within on_line: returns the descriptor that came with this line
 * (SCM_RIGHTS on its first byte, or on any bytes of this line alone), which
 * belongs to the caller from now on; -1: none.  A descriptor that is not taken
 * is closed when on_line returns; of several, only the first is kept.
 */
int line_conn_take_fd(line_conn_t *conn);

/*
 * Begins a non-blocking connect to a unix socket.  Returns the fd, or -1 and
 * errno.
 */
int line_conn_connect(const char *path);

#endif /* LINE_CONN_H */
