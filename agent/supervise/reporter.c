
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "common/os/pidfd.h"
#include "supervise/reporter.h"


static void
reporter_died(reporter_t *reporter)
{
    int  unread;

    /* this is called again in the next event-loop iteration */
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


void
reporter_watch(reporter_t *reporter, int socket_fd, uint64_t accepted_ticks,
    int passed_fd)
{
    pidfd_t  peer;

    reporter_forget(reporter);
    reporter->socket_fd = socket_fd;

    if (pidfd_of_peer(socket_fd, accepted_ticks, &peer) == 0) {
        reporter->pid = peer.pid;
        reporter->pidfd = peer.fd;
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
    return pidfd_send_signal(reporter->pidfd, signal_number, NULL, 0);
}


int
reporter_pidfd(const reporter_t *reporter)
{
    return reporter->pidfd == -1
           ? -1 : fcntl(reporter->pidfd, F_DUPFD_CLOEXEC, 3);
}
