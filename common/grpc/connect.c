
/*
 * The client's half of conn.h: a socket that connects, within a time.
 */

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/grpc/conn_inner.h"


/* Begins to connect.  -1 and errno, which is usually EINPROGRESS. */
static int
grpc_conn_dial(int fd, const address_t *address, const address_t *source)
{
    if (source != NULL
        && bind(fd, (const struct sockaddr *) &source->ss, source->len) != 0)
    {
        return -1;
    }

    return connect(fd, (const struct sockaddr *) &address->ss, address->len);
}


grpc_conn_t *
grpc_conn_connect(struct ev_loop *loop, const address_t *address,
    const llmgw_grpc_config_t *config, uint64_t connect_timeout_ms,
    grpc_conn_closed_pt on_closed)
{
    return grpc_conn_connect_with(loop, address, NULL, config,
                                  connect_timeout_ms, on_closed);
}


grpc_conn_t *
grpc_conn_connect_with(struct ev_loop *loop, const address_t *address,
    const grpc_conn_options_t *options, const llmgw_grpc_config_t *config,
    uint64_t connect_timeout_ms, grpc_conn_closed_pt on_closed)
{
    int           fd;
    grpc_conn_t  *c;

    fd = socket(address->ss.ss_family, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC,
                0);

    if (fd < 0) {
        return NULL;
    }

    c = grpc_conn_create(loop, fd, address, options, config,
                         llmgw_grpc_client_create);

    if (c == NULL) {
        close(fd);
        errno = ENOMEM;
        return NULL;
    }

    c->on_closed = on_closed;
    c->is_connecting = 1;

    /* an immediate error is reported from the loop, like a later one */

    if (grpc_conn_dial(fd, address, c->options.source) != 0
        && errno != EINPROGRESS)
    {
        c->connect_errno = errno;
        ev_feed_event(loop, &c->writer, EV_WRITE);
        return c;
    }

    ev_io_start(loop, &c->writer);
    ev_now_update(loop);
    ev_timer_set(&c->timer, (double) connect_timeout_ms / 1000, 0);
    ev_timer_start(loop, &c->timer);

    return c;
}


void
grpc_conn_connected(grpc_conn_t *c)
{
    int        error;
    socklen_t  len;

    error = c->connect_errno;
    len = sizeof(error);

    if (error == 0
        && getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &len) != 0)
    {
        error = errno;
    }

    if (error != 0) {
        grpc_conn_end(c, strerror(error), 1);
        return;
    }

    ev_io_stop(c->loop, &c->writer);
    grpc_conn_open(c);
}
