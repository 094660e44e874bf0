
/*
 * The server's half of conn.h: a listening socket and its connections.
 *
 * A server that has max_conns takes no more from the backlog until one ends.
 */

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/grpc/conn_inner.h"
#include "common/listener.h"


#define GRPC_SERVER_BACKLOG      4096
#define GRPC_SERVER_ERROR_BYTES  256

/* A peer whose host vanished is found after 30 + 3 * 10 seconds. */
#define GRPC_SERVER_IDLE_S       30
#define GRPC_SERVER_INTERVAL_S   10
#define GRPC_SERVER_PROBES       3


struct grpc_server_s {
    struct ev_loop       *loop;
    address_t             address;
    int                   bound_fd;     /* -1: the listener's now */
    listener_t            listener;
    grpc_conn_options_t   options;
    llmgw_grpc_config_t   config;
    size_t                max_conns;
    size_t                nconns;
    grpc_conn_t          *conns;
};


static void
grpc_server_on_gone(grpc_conn_t *c)
{
    grpc_server_t  *s;

    s = c->server;

    if (c->prev != NULL) {
        c->prev->next = c->next;

    } else {
        s->conns = c->next;
    }

    if (c->next != NULL) {
        c->next->prev = c->prev;
    }

    s->nconns--;
    listener_open(&s->listener);
}


static void
grpc_server_keepalive(int fd)
{
    int  one, idle, interval, probes;

    one = 1;
    idle = GRPC_SERVER_IDLE_S;
    interval = GRPC_SERVER_INTERVAL_S;
    probes = GRPC_SERVER_PROBES;

    (void) setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &one, sizeof(one));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle, sizeof(idle));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval,
                      sizeof(interval));
    (void) setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}


static void
grpc_server_on_accept(void *data, int fd, const address_t *peer)
{
    grpc_conn_t    *c;
    grpc_server_t  *s = data;

    c = grpc_conn_create(s->loop, fd, peer, &s->options, &s->config,
                         llmgw_grpc_server_create);

    if (c == NULL) {
        close(fd);
        return;
    }

    grpc_server_keepalive(fd);

    c->server = s;
    c->on_gone = grpc_server_on_gone;
    c->next = s->conns;

    if (s->conns != NULL) {
        s->conns->prev = c;
    }

    s->conns = c;

    if (++s->nconns >= s->max_conns) {
        listener_shut(&s->listener);
    }

    grpc_conn_open(c);
}


static void
grpc_server_cannot(const address_t *address, int fault, char *error)
{
    char  text[ADDRESS_TEXT_BYTES];

    address_format(address, text);
    snprintf(error, GRPC_SERVER_ERROR_BYTES, "cannot listen on %s: %s", text,
             strerror(fault));
}


grpc_server_t *
grpc_server_bind(struct ev_loop *loop, const address_t *address,
    const llmgw_grpc_config_t *config, size_t max_conns, char *error)
{
    int             fd;
    grpc_server_t  *s;

    s = calloc(1, sizeof(grpc_server_t));

    if (s == NULL) {
        snprintf(error, GRPC_SERVER_ERROR_BYTES, "out of memory");
        return NULL;
    }

    fd = listener_socket(address);

    if (fd < 0) {
        grpc_server_cannot(address, errno, error);
        free(s);
        return NULL;
    }

    s->loop = loop;
    s->config = *config;
    s->address = *address;
    s->max_conns = max_conns;
    s->bound_fd = fd;
    s->listener.fd = -1;

    return s;
}


int
grpc_server_listen(grpc_server_t *s, char *error)
{
    if (listen(s->bound_fd, GRPC_SERVER_BACKLOG) != 0) {
        grpc_server_cannot(&s->address, errno, error);
        return -1;
    }

    listener_init(&s->listener, s->loop, s->bound_fd, grpc_server_on_accept,
                  s);
    s->bound_fd = -1;

    return 0;
}


grpc_server_t *
grpc_server_create(struct ev_loop *loop, const address_t *address,
    const llmgw_grpc_config_t *config, size_t max_conns, char *error)
{
    grpc_server_t  *s;

    s = grpc_server_bind(loop, address, config, max_conns, error);

    if (s != NULL && grpc_server_listen(s, error) != 0) {
        grpc_server_destroy(s);
        return NULL;
    }

    return s;
}


void
grpc_server_set_options(grpc_server_t *s, const grpc_conn_options_t *options)
{
    s->options = *options;
}


void
grpc_server_goaway(grpc_server_t *s)
{
    grpc_conn_t  *c;

    listener_done(&s->listener);

    for (c = s->conns; c != NULL; c = c->next) {
        if (!c->is_destroyed) {
            llmgw_grpc_session_goaway(c->session);
            grpc_conn_wake(c);
        }
    }
}


size_t
grpc_server_conns(const grpc_server_t *s)
{
    return s->nconns;
}


void
grpc_server_destroy(grpc_server_t *s)
{
    grpc_conn_t  *c, *next;

    listener_done(&s->listener);

    if (s->bound_fd != -1) {
        close(s->bound_fd);
    }

    for (c = s->conns; c != NULL; c = next) {
        next = c->next;
        grpc_conn_destroy(c);
    }

    free(s);
}
