
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "supervise/reporter.h"


/* Linux 6.5: the peer itself, and not a process that got its number. */
#ifndef SO_PEERPIDFD
#define SO_PEERPIDFD  77
#endif


static void
reporter_died(reporter_t *reporter)
{
    int  unread;

    /* We are called again in the next event-loop iteration. */
    if (ioctl(reporter->socket_fd, FIONREAD, &unread) == 0 && unread > 0) {
        return;
    }

    reporter_forget(reporter);
    reporter->on_dead(reporter->data);
}


static void
reporter_gone(struct ev_loop *loop, ev_io *watch, int events)
{
    reporter_died(watch->data);
}


static void
reporter_witnessed(void *data)
{
    reporter_died(data);
}


void
reporter_init(reporter_t *reporter, struct ev_loop *loop,
    reporter_dead_pt on_dead, void *data)
{
    reporter->loop = loop;
    reporter->on_dead = on_dead;
    reporter->data = data;
    reporter->socket_fd = -1;
    reporter->pid = 0;
    reporter->pidfd = -1;
    reporter->witness = NULL;

    ev_init(&reporter->watch, reporter_gone);
    reporter->watch.data = reporter;
    ev_set_priority(&reporter->watch, -1);
}


static int
reporter_open(int socket_fd, pid_t pid)
{
    int        fd;
    socklen_t  len;

    len = sizeof(fd);

    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERPIDFD, &fd, &len) == 0) {
        return fd;
    }

    return pid > 0 ? pidfd_open(pid, 0) : -1;
}


void
reporter_watch(reporter_t *reporter, int socket_fd, int passed_fd)
{
    socklen_t     len;
    struct ucred  peer;

    reporter_forget(reporter);
    reporter->socket_fd = socket_fd;

    len = sizeof(peer);

    if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0) {
        reporter->pid = peer.pid;
    }

    reporter->pidfd = reporter_open(socket_fd, reporter->pid);

    if (reporter->pidfd != -1) {
        ev_io_set(&reporter->watch, reporter->pidfd, EV_READ);
        ev_io_start(reporter->loop, &reporter->watch);
    }

    if (passed_fd != -1) {
        reporter->witness = witness_create(reporter->loop, passed_fd,
                                           reporter_witnessed, reporter);
    }
}


void
reporter_forget(reporter_t *reporter)
{
    ev_io_stop(reporter->loop, &reporter->watch);

    if (reporter->witness != NULL) {
        witness_destroy(reporter->witness);
    }

    if (reporter->pidfd != -1) {
        close(reporter->pidfd);
    }

    reporter->witness = NULL;
    reporter->pidfd = -1;
    reporter->socket_fd = -1;
    reporter->pid = 0;
}


int
reporter_signal(const reporter_t *reporter, int signal_number)
{
    return reporter->pidfd == -1
           ? -1 : pidfd_send_signal(reporter->pidfd, signal_number, NULL, 0);
}


int
reporter_pidfd(const reporter_t *reporter)
{
    return reporter->pidfd == -1
           ? -1 : fcntl(reporter->pidfd, F_DUPFD_CLOEXEC, 3);
}
