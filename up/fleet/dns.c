
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "up/fleet/dns.h"
#include "up/host/bound.h"


/* Written after the last address; output without it is incomplete. */
#define DNS_END  "."


static void
dns_forget(dns_t *d)
{
    if (d->fd == -1) {
        return;
    }

    ev_io_stop(d->loop, &d->io);
    close(d->fd);
    d->fd = -1;
    child_kill(&d->child);
    child_done(&d->child);              /* the default loop reaps it */
}


static void
dns_wait(dns_t *d, double after_s)
{
    ev_timer_stop(d->loop, &d->timer);
    ev_timer_set(&d->timer, after_s, 0.);
    ev_timer_start(d->loop, &d->timer);
}


static void
dns_finish(dns_t *d, const char *why)
{
    int          n, is_more;
    char        *line, *state;
    char         more[64];
    const char  *texts[DNS_MAX];

    snprintf(more, sizeof(more), "more than %d addresses: %d are used",
             DNS_MAX, DNS_MAX);
    dns_forget(d);
    d->text[d->len] = '\0';
    n = is_more = 0;

    for (line = strtok_r(d->text, "\n", &state); line != NULL;
         line = strtok_r(NULL, "\n", &state))
    {
        if (strcmp(line, DNS_END) == 0) {
            d->on_set(d->data, texts, n, is_more ? more : NULL);
            dns_wait(d, d->period_s);
            return;
        }

        is_more = n == DNS_MAX;

        if (!is_more) {
            texts[n++] = line;
        }
    }

    d->on_set(d->data, NULL, -1, n == 1 ? texts[0] : why);
    dns_wait(d, d->period_s);
}


static void
dns_on_io(struct ev_loop *loop, ev_io *w, int events)
{
    dns_t    *d;
    ssize_t   n;

    d = w->data;
    n = read(d->fd, d->text + d->len, sizeof(d->text) - 1 - d->len);

    if (n == -1 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }

    if (n <= 0) {
        dns_finish(d, "the resolver ended without an answer");
        return;
    }

    d->len += (size_t) n;
}


/* Nothing to do: the end of the child's output has been handled. */
static void
dns_on_gone(void *data, pid_t pid, const char *how)
{
    /* void */
}


static void
dns_ask(dns_t *d)
{
    int          rc, fds[2];
    char         error[CHILD_ERROR_BYTES];
    bound_t      bound;
    char *const  argv[] = {
        (char *) d->program, (char *) DNS_COMMAND, (char *) d->name, NULL
    };

    d->len = 0;

    if (pipe2(fds, O_CLOEXEC|O_NONBLOCK) != 0) {
        dns_finish(d, strerror(errno));
        return;
    }

    bound_fill(&bound, SIGKILL, argv);
    child_init(&d->child, d->loop, dns_on_gone, d);
    d->child.program = BOUND_PROGRAM;
    d->child.output_fd = fds[1];
    rc = child_start(&d->child, bound.words, error);
    close(fds[1]);

    if (rc != 0) {
        close(fds[0]);
        dns_finish(d, error);
        return;
    }

    d->fd = fds[0];
    ev_io_set(&d->io, d->fd, EV_READ);
    ev_io_start(d->loop, &d->io);
    dns_wait(d, DNS_TIMEOUT_S);
}


static void
dns_on_timer(struct ev_loop *loop, ev_timer *w, int events)
{
    dns_t  *d;

    d = w->data;

    if (d->fd != -1) {
        d->len = 0;
        dns_finish(d, "the name server does not answer");
        return;
    }

    dns_ask(d);
}


void
dns_init(dns_t *dns, struct ev_loop *loop, const char *program,
    const char *name, double period_s, dns_set_pt on_set, void *data)
{
    dns->loop = loop;
    dns->program = program;
    dns->name = name;
    dns->period_s = period_s;
    dns->on_set = on_set;
    dns->data = data;
    dns->fd = -1;
    ev_init(&dns->io, dns_on_io);
    ev_init(&dns->timer, dns_on_timer);
    dns->io.data = dns;
    dns->timer.data = dns;
    dns_wait(dns, 0.);
}


void
dns_done(dns_t *dns)
{
    dns_forget(dns);
    ev_timer_stop(dns->loop, &dns->timer);
}


static int
dns_compare(const void *a, const void *b)
{
    return strcmp(a, b);
}


/*
 * Sorts the addresses, so that of more than DNS_MAX the same ones are used each
 * time.
 */
int
dns_main(int argc, char **argv)
{
    int         i, n;
    char        error[128];
    char        texts[4 * DNS_MAX][ADDRESS_TEXT_BYTES];
    address_t   addresses[4 * DNS_MAX];

    if (argc != 2) {
        return 2;
    }

    n = address_resolve_all(argv[1], AF_UNSPEC, addresses, 4 * DNS_MAX, error);

    if (n < 0) {
        printf("%s\n", error);
        return 1;
    }

    for (i = 0; i < n; i++) {
        address_format(&addresses[i], texts[i]);
    }

    qsort(texts, (size_t) n, sizeof(texts[0]), dns_compare);

    for (i = 0; i < n && i <= DNS_MAX; i++) {
        printf("%s\n", texts[i]);
    }

    printf(DNS_END "\n");

    return 0;
}
