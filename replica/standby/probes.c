
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "replica/standby/probes.h"


#define PROBES_BACKLOG       64
#define PROBES_ANSWER_BYTES  256


/* --- one connection */

static void
probes_close(probes_conn_t *c)
{
    probes_t  *p;

    p = c->probes;
    ev_io_stop(p->loop, &c->io);
    ev_timer_stop(p->loop, &c->timer);
    close(c->io.fd);
    c->probes = NULL;
    p->nconns--;
    listener_open(&p->listener);
}


/* Sends the answer.  The peer closes the connection, or the timer does: a
   close(2) with unread bytes would make the kernel drop the answer. */
static void
probes_answer(probes_conn_t *c, const char *status, const char *body)
{
    int   n;
    char  answer[PROBES_ANSWER_BYTES];

    n = snprintf(answer, sizeof(answer), "HTTP/1.1 %s\r\n"
                 "Content-Type: text/plain\r\n"
                 "Content-Length: %zu\r\n"
                 "Cache-Control: no-store\r\n"
                 "Connection: close\r\n\r\n%s\n", status, strlen(body) + 1,
                 body);

    c->is_answered = 1;

    if (send(c->io.fd, answer, (size_t) n, MSG_NOSIGNAL) != n
        || shutdown(c->io.fd, SHUT_WR) != 0)
    {
        probes_close(c);
    }
}


static void
probes_judge(probes_conn_t *c, const char *path, size_t len)
{
    int          is_so;
    size_t       i;
    const char  *state;

    static const struct {
        const char       *path;
        life_question_t   question;
    } known[] = {
        { "/livez", LIFE_IS_LIVE },
        { "/startupz", LIFE_IS_STARTED },
        { "/readyz", LIFE_IS_SERVING }
    };

    for (i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
        if (strlen(known[i].path) == len
            && memcmp(known[i].path, path, len) == 0)
        {
            is_so = c->probes->ask(c->probes->data, known[i].question, &state);
            probes_answer(c, is_so ? "200 OK" : "503 Service Unavailable",
                          state);
            return;
        }
    }

    probes_answer(c, "404 Not Found", "/livez, /startupz or /readyz");
}


/* Reads a request; only its first line is used. */
static void
probes_read(probes_conn_t *c)
{
    char  *path, *end;

    if (strncmp(c->request, "GET ", 4) != 0) {
        probes_answer(c, "405 Method Not Allowed", "GET only");
        return;
    }

    path = c->request + 4;
    end = path + strcspn(path, " ?\r\n");

    if (strncmp(path + strcspn(path, " \r\n"), " HTTP/1.", 8) != 0) {
        probes_answer(c, "400 Bad Request", "HTTP/1.1 only");
        return;
    }

    probes_judge(c, path, (size_t) (end - path));
}


static void
probes_on_bytes(struct ev_loop *loop, ev_io *w, int revents)
{
    ssize_t         n;
    probes_conn_t  *c;

    c = w->data;

    if (c->is_answered) {
        c->bytes = 0;
    }

    n = recv(w->fd, c->request + c->bytes, sizeof(c->request) - 1 - c->bytes,
             0);

    if (n <= 0) {
        if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
            probes_close(c);
        }

        return;
    }

    if (c->is_answered) {
        return;
    }

    c->bytes += (size_t) n;
    c->request[c->bytes] = '\0';

    if (memmem(c->request, c->bytes, "\r\n\r\n", 4) != NULL) {
        probes_read(c);

    } else if (c->bytes == sizeof(c->request) - 1) {
        probes_answer(c, "431 Request Header Fields Too Large", "too long");
    }
}


static void
probes_on_timeout(struct ev_loop *loop, ev_timer *w, int revents)
{
    probes_close(w->data);
}


/* --- all of them */

static void
probes_on_accept(void *data, int fd, const address_t *peer)
{
    int             i;
    probes_t       *p;
    probes_conn_t  *c;

    p = data;

    for (i = 0; p->conns[i].probes != NULL; i++) { /* void */ }

    c = &p->conns[i];
    c->probes = p;
    c->bytes = 0;
    c->is_answered = 0;
    ev_io_init(&c->io, probes_on_bytes, fd, EV_READ);
    ev_timer_init(&c->timer, probes_on_timeout, PROBES_TIMEOUT_S, 0);
    c->io.data = c;
    c->timer.data = c;
    ev_io_start(p->loop, &c->io);
    ev_timer_start(p->loop, &c->timer);

    if (++p->nconns == PROBES_CONNS) {
        listener_shut(&p->listener);
    }
}


int
probes_init(probes_t *p, struct ev_loop *loop, const char *text,
    probes_ask_pt ask, void *data, char *error)
{
    int        fd;
    address_t  address;

    memset(p, 0, sizeof(probes_t));
    p->loop = loop;
    p->ask = ask;
    p->data = data;
    p->listener.fd = -1;

    if (address_resolve(text, &address, error) != 0) {
        return -1;
    }

    fd = listener_socket(&address);

    if (fd == -1 || listen(fd, PROBES_BACKLOG) != 0) {
        snprintf(error, PROBES_ERROR_BYTES, "cannot listen on %s: %s", text,
                 strerror(errno));

        if (fd != -1) {
            close(fd);
        }

        return -1;
    }

    listener_init(&p->listener, loop, fd, probes_on_accept, p);

    return 0;
}


void
probes_done(probes_t *p)
{
    int  i;

    for (i = 0; i < PROBES_CONNS; i++) {
        if (p->conns[i].probes != NULL) {
            probes_close(&p->conns[i]);
        }
    }

    listener_done(&p->listener);
}
