
/*
 * The floor: what a proxy that understands HTTP/2 costs at least.
 *
 *     floor LISTEN_PORT UPSTREAM_PORT...
 *
 * The streams of all clients are distributed round robin over one connection to
 * each upstream, unchanged: no message is parsed, nothing is counted, decided,
 * limited or logged, and a failure ends the stream.  There is one epoll loop;
 * what an iteration produced is written at its end, with one send(2) a
 * connection.  nghttp2 does HTTP/2, with its own flow control towards both
 * sides; between them bytes are buffered without bound.  It is a yardstick, not
 * a proxy to use.
 *
 *   client --- server session --- relay --- client session --- upstream
 *                    to_up ------>       <------ to_down
 */

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bench/peers/floor.h"


#define EVENTS    512
#define IO_BYTES  65536
#define WINDOW    (16 * 1024 * 1024)
#define STREAMS   100000


static void
conn_session(conn_t *c)
{
    nghttp2_option             *option;
    nghttp2_settings_entry      iv[3] = {
        { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW },
        { NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1 },
        { NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS }
    };
    nghttp2_session_callbacks  *callbacks;

    (void) nghttp2_option_new(&option);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_peer_max_concurrent_streams(option, STREAMS);
    (void) nghttp2_session_callbacks_new(&callbacks);
    floor_callbacks(callbacks);
    (void) (c->is_up ? nghttp2_session_client_new2(&c->h2, callbacks, c,
                                                   option)
                     : nghttp2_session_server_new2(&c->h2, callbacks, c,
                                                   option));
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);

    (void) nghttp2_submit_settings(c->h2, 0, iv, c->is_up ? 2 : 3);
    (void) nghttp2_session_set_local_window_size(c->h2, 0, 0, WINDOW);
}


static void
conn_watch(conn_t *c, int op, int want_write)
{
    struct epoll_event  event = {
        .events = EPOLLIN | (want_write ? EPOLLOUT : 0),
        .data.ptr = c
    };

    (void) epoll_ctl(c->floor->epoll, op, c->fd, &event);
}


static conn_t *
conn_create(floor_t *f, int fd, int is_up)
{
    int      one = 1;
    conn_t  *c;

    c = must(calloc(1, sizeof(conn_t)));
    c->floor = f;
    c->fd = fd;
    c->is_up = is_up;
    (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    conn_session(c);
    touch(c);

    return c;
}


static struct sockaddr_in
loopback(uint16_t port)
{
    struct sockaddr_in  sin = { .sin_family = AF_INET };

    sin.sin_port = htons(port);
    sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);

    return sin;
}


conn_t *
floor_connect(floor_t *f, size_t i)
{
    int                 fd;
    struct sockaddr_in  sin = loopback(f->ports[i]);

    fd = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd < 0 || (connect(fd, (struct sockaddr *) &sin, sizeof(sin)) != 0
                   && errno != EINPROGRESS))
    {
        must(NULL);
    }

    f->up[i] = conn_create(f, fd, 1);
    f->up[i]->is_connecting = 1;
    conn_watch(f->up[i], EPOLL_CTL_ADD, 1);

    return f->up[i];
}


/*
 * Ends the streams that a session still has before it is deleted, as if each
 * had been reset, since nghttp2 does not report them.
 */
static void
conn_close(conn_t *c)
{
    size_t     i;
    floor_t   *f = c->floor;
    int32_t    id, last;
    uint32_t   step = 2;

    last = c->is_up ? (int32_t) nghttp2_session_get_next_stream_id(c->h2)
                    : nghttp2_session_get_last_proc_stream_id(c->h2) + 1;

    for (id = 1; id < last; id += (int32_t) step) {
        (void) floor_on_close(c->h2, id, NGHTTP2_INTERNAL_ERROR, c);
        (void) nghttp2_session_set_stream_user_data(c->h2, id, NULL);
    }

    for (i = 0; i < f->nup; i++) {
        if (f->up[i] == c) {
            f->up[i] = NULL;
        }
    }

    nghttp2_session_del(c->h2);
    close(c->fd);
    free(c->rest);
    free(c);
}


/* Fills buf with frames; keeps the rest of a frame for the next call. */
static size_t
conn_fill(conn_t *c, uint8_t *buf, size_t capacity)
{
    size_t          used = 0;
    ssize_t         n;
    const uint8_t  *data;

    while (used < capacity
           && (n = nghttp2_session_mem_send(c->h2, &data)) > 0)
    {
        if (used + (size_t) n > capacity) {
            c->rest = must(malloc((size_t) n));
            memcpy(c->rest, data, (size_t) n);
            c->rest_start = 0;
            c->rest_end = (size_t) n;
            break;
        }

        memcpy(buf + used, data, (size_t) n);
        used += (size_t) n;
    }

    return used;
}


static ssize_t
conn_send(conn_t *c, const uint8_t *data, size_t len)
{
    ssize_t  n;

    n = send(c->fd, data, len, MSG_NOSIGNAL);

    if (n < 0 && errno != EAGAIN) {
        c->is_dead = 1;
    }

    return n < 0 ? 0 : n;
}


/* Appends what the socket did not accept to what was kept already. */
static void
conn_keep(conn_t *c, const uint8_t *data, size_t len)
{
    size_t    had;
    uint8_t  *rest;

    had = c->rest_end - c->rest_start;
    rest = must(malloc(len + had));
    memcpy(rest, data, len);

    if (had > 0) {
        memcpy(rest + len, c->rest + c->rest_start, had);
    }

    free(c->rest);
    c->rest = rest;
    c->rest_start = 0;
    c->rest_end = len + had;
}


static void
conn_flush(conn_t *c)
{
    size_t          len;
    ssize_t         n;
    static uint8_t  buf[IO_BYTES];

    while (!c->is_connecting && !c->is_dead) {

        if (c->rest != NULL) {
            n = conn_send(c, c->rest + c->rest_start,
                          c->rest_end - c->rest_start);
            c->rest_start += (size_t) n;

            if (c->rest_start < c->rest_end) {
                conn_watch(c, EPOLL_CTL_MOD, 1);
                return;
            }

            free(c->rest);
            c->rest = NULL;
            c->rest_start = c->rest_end = 0;
        }

        len = conn_fill(c, buf, sizeof(buf));

        if (len == 0 && c->rest == NULL) {
            return;
        }

        n = conn_send(c, buf, len);

        if ((size_t) n < len) {
            conn_keep(c, buf + n, len - (size_t) n);
        }
    }
}


static void
conn_ready(conn_t *c, uint32_t events)
{
    ssize_t         n;
    static uint8_t  buf[IO_BYTES];

    if (events & EPOLLOUT) {
        c->is_connecting = 0;
        conn_watch(c, EPOLL_CTL_MOD, 0);
        touch(c);
    }

    if (!(events & (EPOLLIN|EPOLLHUP|EPOLLERR))) {
        return;
    }

    n = recv(c->fd, buf, sizeof(buf), 0);

    if (n > 0) {
        n = nghttp2_session_mem_recv(c->h2, buf, (size_t) n);

    } else if (n < 0 && errno == EAGAIN) {
        return;

    } else {
        n = -1;
    }

    if (n < 0) {
        c->is_dead = 1;
        touch(c);
    }
}


/* --- the loop */

static void
accept_all(floor_t *f)
{
    int      fd;
    conn_t  *c;

    while ((fd = accept4(f->listener, NULL, NULL,
                         SOCK_NONBLOCK|SOCK_CLOEXEC)) >= 0)
    {
        c = conn_create(f, fd, 0);
        conn_watch(c, EPOLL_CTL_ADD, 0);
    }
}


static void
flush_dirty(floor_t *f)
{
    conn_t  *c;

    while ((c = f->dirty) != NULL) {
        f->dirty = c->next_dirty;
        c->is_dirty = 0;
        conn_flush(c);

        if (c->is_dead && !c->is_dirty) {
            conn_close(c);
        }
    }
}


static void
serve(floor_t *f)
{
    int                 i, n;
    struct epoll_event  events[EVENTS];

    for ( ;; ) {
        n = epoll_wait(f->epoll, events, EVENTS, -1);

        for (i = 0; i < n; i++) {
            if (events[i].data.ptr == NULL) {
                accept_all(f);

            } else {
                conn_ready(events[i].data.ptr, events[i].events);
            }
        }

        flush_dirty(f);
    }
}


int
main(int argc, char **argv)
{
    int                 i, one = 1;
    floor_t             f = { .nup = 0 };
    struct sockaddr_in  sin;
    struct epoll_event  event = { .events = EPOLLIN, .data.ptr = NULL };

    if (argc < 3 || argc > UPSTREAMS + 2) {
        fprintf(stderr, "usage: floor LISTEN_PORT UPSTREAM_PORT...\n");
        return 2;
    }

    for (i = 2; i < argc; i++) {
        f.ports[f.nup++] = (uint16_t) atoi(argv[i]);
    }

    sin = loopback((uint16_t) atoi(argv[1]));
    f.epoll = epoll_create1(EPOLL_CLOEXEC);
    f.listener = socket(AF_INET, SOCK_STREAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);
    (void) setsockopt(f.listener, SOL_SOCKET, SO_REUSEADDR, &one,
                      sizeof(one));

    if (bind(f.listener, (struct sockaddr *) &sin, sizeof(sin)) != 0
        || listen(f.listener, 4096) != 0
        || epoll_ctl(f.epoll, EPOLL_CTL_ADD, f.listener, &event) != 0)
    {
        perror("floor");
        return 1;
    }

    serve(&f);

    return 0;
}
