
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/listener.h"


#define LISTENER_ACCEPTS  64        /* most connections accepted in one
                                       iteration of the loop */


static void
listener_starved(listener_t *listener, int error)
{
    double  now;

    ev_io_stop(listener->loop, &listener->io);
    ev_timer_again(listener->loop, &listener->pause);
    now = ev_now(listener->loop);

    if (listener->logged_at != 0
        && now < listener->logged_at + LISTENER_LOG_S)
    {
        return;
    }

    listener->logged_at = now;

    if (listener->on_starved != NULL) {
        listener->on_starved(listener->starved_data, error);
    }
}


static void
listener_acceptable(struct ev_loop *loop, ev_io *io, int events)
{
    int          i, fd;
    address_t    peer;
    listener_t  *listener = io->data;

    for (i = 0; i < LISTENER_ACCEPTS && !listener->is_shut; i++) {
        memset(&peer, 0, sizeof(peer));
        peer.len = sizeof(peer.ss);
        fd = accept4(listener->fd, (struct sockaddr *) &peer.ss, &peer.len,
                     SOCK_NONBLOCK|SOCK_CLOEXEC);

        if (fd != -1) {
            listener->on_accept(listener->data, fd, &peer);
            continue;
        }

        if (errno == EAGAIN) {
            return;
        }

        if (errno != EINTR && errno != ECONNABORTED) {
            listener_starved(listener, errno);
            return;
        }
    }
}


static void
listener_pause_over(struct ev_loop *loop, ev_timer *pause, int events)
{
    listener_t  *listener = pause->data;

    ev_timer_stop(loop, pause);
    ev_io_start(loop, &listener->io);
}


int
listener_socket(const address_t *address)
{
    int  fd, one, saved_errno;

    fd = socket(address->ss.ss_family, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC,
                0);

    if (fd < 0) {
        return -1;
    }

    one = 1;

    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) == 0
        && bind(fd, (const struct sockaddr *) &address->ss, address->len) == 0)
    {
        return fd;
    }

    saved_errno = errno;
    close(fd);
    errno = saved_errno;

    return -1;
}


void
listener_init(listener_t *listener, struct ev_loop *loop, int fd,
    listener_accept_pt on_accept, void *data)
{
    memset(listener, 0, sizeof(listener_t));
    listener->loop = loop;
    listener->fd = fd;
    listener->on_accept = on_accept;
    listener->data = data;

    ev_io_init(&listener->io, listener_acceptable, fd, EV_READ);
    ev_init(&listener->pause, listener_pause_over);
    listener->io.data = listener;
    listener->pause.data = listener;
    listener->pause.repeat = LISTENER_PAUSE_S;

    ev_io_start(loop, &listener->io);
}


void
listener_on_starved(listener_t *listener, listener_starved_pt on_starved,
    void *data)
{
    listener->on_starved = on_starved;
    listener->starved_data = data;
}


void
listener_shut(listener_t *listener)
{
    listener->is_shut = 1;
    ev_timer_stop(listener->loop, &listener->pause);
    ev_io_stop(listener->loop, &listener->io);
}


void
listener_open(listener_t *listener)
{
    if (listener->fd != -1) {
        listener->is_shut = 0;
        ev_timer_stop(listener->loop, &listener->pause);
        ev_io_start(listener->loop, &listener->io);
    }
}


void
listener_done(listener_t *listener)
{
    if (listener->fd != -1) {
        listener_shut(listener);
        close(listener->fd);
        listener->fd = -1;
    }
}
