
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/line_fds.h"


static void
line_fds_close(int *fd)
{
    if (*fd != -1) {
        close(*fd);
        *fd = -1;
    }
}


void
line_fds_init(line_fds_t *fds)
{
    fds->current = -1;
    fds->newest = -1;
    fds->sent = 0;
    fds->nout = 0;
}


void
line_fds_done(line_fds_t *fds)
{
    line_fds_close(&fds->current);
    line_fds_close(&fds->newest);

    while (fds->nout > 0) {
        close(fds->out[--fds->nout].fd);
    }
}


ssize_t
line_fds_recv(line_fds_t *fds, int sock, char *data, size_t capacity)
{
    ssize_t          n;
    struct iovec     bytes;
    struct msghdr    message;
    struct cmsghdr  *control;

    _Alignas(struct cmsghdr) char  space[CMSG_SPACE(sizeof(int))];

    bytes.iov_base = data;
    bytes.iov_len = capacity;

    memset(&message, 0, sizeof(message));
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = space;

    /* Room for exactly one descriptor: the padding that CMSG_SPACE() adds would
       fit a second one.  The kernel closes those for which there is no room. */
    message.msg_controllen = CMSG_LEN(sizeof(int));

    n = recvmsg(sock, &message, MSG_CMSG_CLOEXEC);

    if (n < 0) {
        return n;
    }

    control = CMSG_FIRSTHDR(&message);

    if (control != NULL && control->cmsg_level == SOL_SOCKET
        && control->cmsg_type == SCM_RIGHTS
        && control->cmsg_len == CMSG_LEN(sizeof(int)))
    {
        line_fds_close(&fds->newest);
        memcpy(&fds->newest, CMSG_DATA(control), sizeof(int));
    }

    return n;
}


/* Only one descriptor of a line is kept. */
void
line_fds_enter(line_fds_t *fds, int is_last)
{
    if (!is_last || fds->newest == -1) {
        return;
    }

    if (fds->current == -1) {
        fds->current = fds->newest;
        fds->newest = -1;
        return;
    }

    line_fds_close(&fds->newest);
}


void
line_fds_leave(line_fds_t *fds)
{
    line_fds_close(&fds->current);
}


int
line_fds_take(line_fds_t *fds)
{
    int  fd;

    fd = fds->current;
    fds->current = -1;

    return fd;
}


int
line_fds_push(line_fds_t *fds, int fd, size_t queued)
{
    int  copy;

    if (fds->nout == LINE_FDS_MAX) {
        errno = ENOBUFS;
        return -1;
    }

    copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (copy < 0) {
        return -1;
    }

    fds->out[fds->nout].fd = copy;
    fds->out[fds->nout].at = fds->sent + queued;
    fds->nout++;

    return 0;
}


/* Sends the next byte and the first of the waiting descriptors. */
static ssize_t
line_fds_send_first(line_fds_t *fds, int sock, const char *data)
{
    ssize_t          n;
    struct iovec     byte;
    struct msghdr    message;
    struct cmsghdr  *control;

    _Alignas(struct cmsghdr) char  space[CMSG_SPACE(sizeof(int))] = { 0 };

    byte.iov_base = (char *) data;
    byte.iov_len = 1;

    memset(&message, 0, sizeof(message));
    message.msg_iov = &byte;
    message.msg_iovlen = 1;
    message.msg_control = space;
    message.msg_controllen = sizeof(space);

    control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fds->out[0].fd, sizeof(int));

    n = sendmsg(sock, &message, MSG_NOSIGNAL);

    if (n == 1) {
        close(fds->out[0].fd);
        fds->nout--;
        memmove(fds->out, fds->out + 1, fds->nout * sizeof(line_fds_out_t));
    }

    return n;
}


ssize_t
line_fds_send(line_fds_t *fds, int sock, const char *data, size_t len)
{
    ssize_t   n;
    uint64_t  before;

    before = len;

    if (fds->nout > 0) {
        before = fds->out[0].at - fds->sent;
    }

    if (before == 0) {
        n = line_fds_send_first(fds, sock, data);

    } else {
        n = send(sock, data, before < len ? before : len, MSG_NOSIGNAL);
    }

    if (n > 0) {
        fds->sent += (uint64_t) n;
    }

    return n;
}
