
/*
 * A libev connection that speaks lines: the control socket's two ends.
 *
 * Incoming bytes are cut at '\n' and given out one line at a time, NUL
 * terminated, without the newline.  Outgoing lines are queued and written as
 * the socket takes them.  A line longer than LINE_MAX_BYTES, or a peer that
 * leaves more than LINE_QUEUE_BYTES unread, ends the connection.
 *
 * A server bounds what its answers take by line_conn_hold_back(): a peer that
 * asks and does not read its answers gets no further ones.
 */

#ifndef LINE_CONN_H
#define LINE_CONN_H

#include <ev.h>
#include <stddef.h>


#define LINE_MAX_BYTES    (256 * 1024)          /* of a line that is received;
                                                   sent ones may be longer */
#define LINE_QUEUE_BYTES  (64 * 1024 * 1024)    /* 65536 members as JSON */

typedef struct line_conn_s  line_conn_t;

typedef struct {
    void  (*on_line)(line_conn_t *conn, char *line, size_t len);
    /*
     * The last word: the peer closed, broke, or broke a limit; reason is NULL
     * for an orderly end of file.  The connection is destroyed after it.  Does
     * not come for line_conn_destroy().
     */
    void  (*on_close)(line_conn_t *conn, const char *reason);
} line_conn_callbacks_t;

/* Takes the connected or connecting, non-blocking fd over.  NULL: memory. */
line_conn_t *line_conn_create(struct ev_loop *loop, int fd,
    const line_conn_callbacks_t *callbacks, void *data);

/* Safe within a callback. */
void line_conn_destroy(line_conn_t *conn);

/* Queues text and a newline.  0, or -1: over the limit, conn is closing. */
int line_conn_send(line_conn_t *conn, const char *text, size_t len);

/*
 * The same, with a duplicate of fd (SCM_RIGHTS, on the line's first byte; -1:
 * none); fd stays the caller's.  Beyond LINE_FDS_MAX unsent ones the peer does
 * not read, and the connection ends as well.
 */
int line_conn_send_fd(line_conn_t *conn, const char *text, size_t len,
    int fd);

/* Bytes that the peer has not taken yet. */
size_t line_conn_queued(const line_conn_t *conn);

/*
 * From now on, while more than so many bytes are queued, no line is received
 * or given out; both resume when the peer has taken enough.  Then at most the
 * limit and one answer are queued, and lines that the caller sends on its own.
 * For the end that answers: two ends that hold back would wait for each other.
 */
void line_conn_hold_back(line_conn_t *conn, size_t queued_bytes);

/* Destroys the connection once what is queued has been written. */
void line_conn_finish(line_conn_t *conn);

void *line_conn_data(line_conn_t *conn);
int line_conn_fd(const line_conn_t *conn);

/*
 * Within on_line: the descriptor that came with this very line (SCM_RIGHTS on
 * its first byte, or on any bytes of this line alone), the caller's from now
 * on; -1: none.  One that is not taken is closed when on_line returns, and of
 * several the first is kept.
 */
int line_conn_take_fd(line_conn_t *conn);

/* Non-blocking connect to a unix socket; the fd, or -1 and errno. */
int line_conn_connect(const char *path);

#endif /* LINE_CONN_H */
