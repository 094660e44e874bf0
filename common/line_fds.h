
/*
 * Descriptors that travel with lines (SCM_RIGHTS): line_conn.c's own half.
 *
 * On a stream socket the kernel hands a descriptor out together with the bytes
 * it was sent with, and ends that recvmsg() with them; bytes that were sent
 * before may stand in front.  So the last byte of a recvmsg() that brought a
 * descriptor is a byte of its line, if the sender sent no other line's bytes in
 * the same sendmsg().  line_fds_send() sends one byte with it, the line's
 * first.
 */

#ifndef LINE_FDS_H
#define LINE_FDS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>


#define LINE_FDS_MAX  64    /* unsent ones; a peer that reads has none */

typedef struct {
    int         fd;
    uint64_t    at;         /* bytes of the connection before its line */
} line_fds_out_t;

typedef struct {
    int             current;        /* of the line in hand; -1: none */
    int             newest;         /* of the last line begun; -1: none */
    uint64_t        sent;           /* bytes, since the connection began */
    size_t          nout;
    line_fds_out_t  out[LINE_FDS_MAX];
} line_fds_t;


void line_fds_init(line_fds_t *fds);

/* Closes all that was not taken and all that was not sent. */
void line_fds_done(line_fds_t *fds);

/* recvmsg(2), keeping at most one descriptor. */
ssize_t line_fds_recv(line_fds_t *fds, int sock, char *data, size_t capacity);

/*
 * To be called before a line is given out, or when a part of one was read.
 * is_last: all that was received ends with it.
 */
void line_fds_enter(line_fds_t *fds, int is_last);

/* The line in hand was used; its descriptor, if still there, is closed. */
void line_fds_leave(line_fds_t *fds);

/* The descriptor of the line in hand, the caller's; -1: none. */
int line_fds_take(line_fds_t *fds);

/*
 * A duplicate of fd is to go with the byte that follows the `queued` ones.
 * 0, or -1 and errno: EMFILE, or LINE_FDS_MAX are waiting (ENOBUFS).
 */
int line_fds_push(line_fds_t *fds, int fd, size_t queued);

/* send(2) up to the next byte that takes a descriptor, or that byte. */
ssize_t line_fds_send(line_fds_t *fds, int sock, const char *data,
    size_t len);

#endif /* LINE_FDS_H */
