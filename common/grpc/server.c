
/*
 * The server's half of conn.h: a listening socket and its connections.
 *
 * A server that has max_conns takes no more from the backlog until one ends.
 *
 * A connection is new until the client's first frame has come, after the
 * handshake of the channel if there is one: until then it may be a stranger's.
 * One address may have GRPC_SERVER_NEW_MAX new connections, each for a limited
 * time.  Further ones of this address wait as bare sockets, without a session
 * and the state of a handshake: so the workers of a gateway, which connect all
 * at once after a restart, are served a little later, and not refused.
 *
 *   accept --> new --------------------> ready
 *     |         ^     the first frame
 *     |         | one of its address is ready, or has ended
 *     '-> waiting
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

/* A peer whose host vanished is detected after 30 + 3 * 10 seconds. */
#define GRPC_SERVER_IDLE_S       30
#define GRPC_SERVER_INTERVAL_S   10
#define GRPC_SERVER_PROBES       3

/*
 * Limits of new connections of one address, and of waiting sockets of all
 * addresses.
 */
#define GRPC_SERVER_NEW_MAX      32
#define GRPC_SERVER_WAITING_MAX  1024

/* Refusals that continue are reported again after this time. */
#define GRPC_SERVER_LOG_S       60.0


typedef struct waiting_s  waiting_t;

struct waiting_s {
    waiting_t  *next;
    address_t   peer;
    int         fd;
};

struct grpc_server_s {
    struct ev_loop       *loop;
    address_t             address;
    int                   bound_fd;     /* -1: the listener has it now */
    listener_t            listener;
    grpc_conn_options_t   options;
    llmgw_grpc_config_t   config;
    size_t                max_conns;
    size_t                nconns;
    grpc_conn_t          *conns;        /* connections that are ready */
    grpc_conn_t          *new;
    waiting_t            *waiting;      /* in the order in which they came */
    size_t                nwaiting;
    int                   is_admitting;
    double                logged_at;    /* last report of refusals; 0: none */
};


static void grpc_server_admit_next(grpc_server_t *s, const address_t *peer);


/* --- the two lists */

static void
grpc_server_link(grpc_conn_t *c, grpc_conn_t **list)
{
    c->list = list;
    c->prev = NULL;
    c->next = *list;

    if (c->next != NULL) {
        c->next->prev = c;
    }

    *list = c;
}


static void
grpc_server_unlink(grpc_conn_t *c)
{
    if (c->prev != NULL) {
        c->prev->next = c->next;

    } else {
        *c->list = c->next;
    }

    if (c->next != NULL) {
        c->next->prev = c->prev;
    }
}


static size_t
grpc_server_new_of(const grpc_server_t *s, const address_t *peer)
{
    size_t        n;
    grpc_conn_t  *c;

    for (n = 0, c = s->new; c != NULL; c = c->next) {
        n += (size_t) address_is_same_host(&c->peer, peer);
    }

    return n;
}


static void
grpc_server_on_ready(grpc_conn_t *c)
{
    grpc_server_unlink(c);
    grpc_server_link(c, &c->server->conns);
    grpc_server_admit_next(c->server, &c->peer);
}


static void
grpc_server_on_gone(grpc_conn_t *c)
{
    grpc_server_t  *s;

    s = c->server;
    grpc_server_unlink(c);
    s->nconns--;
    listener_open(&s->listener);

    if (c->list == &s->new) {
        grpc_server_admit_next(s, &c->peer);
    }
}


/* --- accepting */

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
grpc_server_admit(grpc_server_t *s, int fd, const address_t *peer)
{
    grpc_conn_t  *c;

    c = grpc_conn_create(s->loop, fd, peer, &s->options, &s->config,
                         llmgw_grpc_server_create);

    if (c == NULL) {
        close(fd);
        return;
    }

    grpc_server_keepalive(fd);

    c->server = s;
    c->on_gone = grpc_server_on_gone;
    c->on_ready = grpc_server_on_ready;
    grpc_server_link(c, &s->new);

    if (++s->nconns >= s->max_conns) {
        listener_shut(&s->listener);
    }

    grpc_conn_open(c);
}


static int
grpc_server_take_waiting(grpc_server_t *s, waiting_t **link)
{
    int         fd;
    waiting_t  *w;

    w = *link;
    *link = w->next;
    s->nwaiting--;
    fd = w->fd;
    free(w);

    return fd;
}


static void
grpc_server_drop_waiting(grpc_server_t *s)
{
    while (s->waiting != NULL) {
        close(grpc_server_take_waiting(s, &s->waiting));
    }
}


/*
 * Serves waiting sockets of that address, the oldest first, while there is
 * room.  A connection that ends at once calls this again by on_gone();
 * is_admitting makes that call return, since the loop here continues anyway.
 */
static void
grpc_server_admit_next(grpc_server_t *s, const address_t *peer)
{
    address_t    host;
    waiting_t  **link;

    if (s->is_admitting) {
        return;
    }

    s->is_admitting = 1;
    host = *peer;
    link = &s->waiting;

    while (*link != NULL) {

        if (!address_is_same_host(&(*link)->peer, &host)) {
            link = &(*link)->next;
            continue;
        }

        if (grpc_server_new_of(s, &host) >= GRPC_SERVER_NEW_MAX) {
            break;
        }

        host = (*link)->peer;
        grpc_server_admit(s, grpc_server_take_waiting(s, link), &host);
    }

    s->is_admitting = 0;
}


static void
grpc_server_refuse(grpc_server_t *s, int fd, const address_t *peer)
{
    double  now;

    close(fd);
    now = ev_now(s->loop);

    if (s->options.on_refused == NULL
        || (s->logged_at != 0 && now < s->logged_at + GRPC_SERVER_LOG_S))
    {
        return;
    }

    s->logged_at = now;
    s->options.on_refused(s->options.refused_data, peer, "too many connections "
                          "from this address have sent nothing yet, and its "
                          "queue is full");
}


static void
grpc_server_on_accept(void *data, int fd, const address_t *peer)
{
    waiting_t      *w, **last;
    grpc_server_t  *s = data;

    if (grpc_server_new_of(s, peer) < GRPC_SERVER_NEW_MAX) {
        grpc_server_admit(s, fd, peer);
        return;
    }

    w = s->nwaiting < GRPC_SERVER_WAITING_MAX ? malloc(sizeof(waiting_t))
                                              : NULL;

    if (w == NULL) {
        grpc_server_refuse(s, fd, peer);
        return;
    }

    w->next = NULL;
    w->peer = *peer;
    w->fd = fd;

    for (last = &s->waiting; *last != NULL; last = &(*last)->next) {
        /* the last one */
    }

    *last = w;
    s->nwaiting++;
}


/* --- the server */

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


static void
grpc_server_goaway_list(grpc_conn_t *c)
{
    for ( /* void */ ; c != NULL; c = c->next) {
        if (!c->is_destroyed) {
            llmgw_grpc_session_goaway(c->session);
            grpc_conn_wake(c);
        }
    }
}


void
grpc_server_goaway(grpc_server_t *s)
{
    listener_done(&s->listener);
    grpc_server_drop_waiting(s);
    grpc_server_goaway_list(s->conns);
    grpc_server_goaway_list(s->new);
}


size_t
grpc_server_conns(const grpc_server_t *s)
{
    return s->nconns;
}


static void
grpc_server_destroy_list(grpc_conn_t *c)
{
    grpc_conn_t  *next;

    for ( /* void */ ; c != NULL; c = next) {
        next = c->next;
        grpc_conn_destroy(c);
    }
}


void
grpc_server_destroy(grpc_server_t *s)
{
    listener_done(&s->listener);

    if (s->bound_fd != -1) {
        close(s->bound_fd);
    }

    grpc_server_drop_waiting(s);
    grpc_server_destroy_list(s->conns);
    grpc_server_destroy_list(s->new);
    free(s);
}
