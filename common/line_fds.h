
/*
 * Descriptors that travel with lines (SCM_RIGHTS): line_conn.c's own half.
 *
 * On a stream socket the kernel hands a descriptor out together with the bytes
 * it was sent with, and ends the recvmsg() after them; bytes that were sent
 * before may come first.  So the last byte of a recvmsg() that brought a
 * descriptor belongs to the descriptor's line, if the sender sent no other
 * line's bytes in the same sendmsg().  line_fds_send() sends a single byte with
 * a descriptor, the first one of its line.
 */

#ifndef LINE_FDS_H
#define LINE_FDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>


#define LINE_FDS_MAX  64    /* unsent ones; a peer that reads has none */

typedef struct {
    int         fd;
    uint64_t    at;         /* number of the byte that it goes with */
} line_fds_out_t;

typedef struct {
    int             current;        /* of the line handed out; -1: none */
    int             newest;         /* of the last line that began; -1: none */
    uint64_t        sent;           /* bytes sent since the connection began */
    size_t          nout;
    line_fds_out_t  out[LINE_FDS_MAX];
} line_fds_t;


void line_fds_init(line_fds_t *fds);

/* Closes all descriptors that were not taken or not sent. */
void line_fds_done(line_fds_t *fds);

/* Like recv(2), by recvmsg(2); keeps at most one descriptor. */
ssize_t line_fds_recv(line_fds_t *fds, int sock, char *data, size_t capacity);

/*
 * To be called before a line is handed out, or when a part of one was read.
 * is_last: everything received so far ends with this line.
 */
void line_fds_enter(line_fds_t *fds, int is_last);

/* The line was handed out; its descriptor is closed unless it was taken. */
void line_fds_leave(line_fds_t *fds);

/* Takes the descriptor of the line being handed out; -1: there is none. */
int line_fds_take(line_fds_t *fds);

/*
 * Registers a duplicate of fd to be sent with the byte that follows the
 * `queued` ones.  0; or -1 and errno: EMFILE, or ENOBUFS if LINE_FDS_MAX are
 * waiting.
 */
int line_fds_push(line_fds_t *fds, int fd, size_t queued);

/*
 * Like send(2), but sends only the bytes before the next one that carries a
 * descriptor, or that byte.
 */
ssize_t line_fds_send(line_fds_t *fds, int sock, const char *data,
    size_t len);

#endif /* LINE_FDS_H */
