
/*
 * The addresses of a name, asked again and again.
 *
 *   every period_s        a child process resolves the name: getaddrinfo(3)
 *                         blocks for as long as resolv.conf says
 *   it answers            on_set, with all addresses, DNS_MAX at most; if
 *                         there are more, the same ones each time
 *   it fails, or takes    the last set stays: a name server that is away is no
 *   DNS_TIMEOUT_S         reason to drain an engine
 */

#ifndef DNS_H
#define DNS_H

#include <ev.h>

#include "common/address.h"
#include "common/child/child.h"


#define DNS_TIMEOUT_S  10.0
#define DNS_MAX        64

/* The command of this program that the child runs. */
#define DNS_COMMAND    "resolve"

/* texts: "10.0.0.5:8000"; they live until it returns.  why: for people; n is -1
   and the name was not resolved, or it has more addresses; NULL: neither. */
typedef void (*dns_set_pt)(void *data, const char *const *texts, int n,
    const char *why);

typedef struct {
    struct ev_loop  *loop;
    const char      *program;       /* this one's path */
    const char      *name;          /* "host:port" */
    double           period_s;
    dns_set_pt       on_set;
    void            *data;
    child_t          child;
    int              fd;            /* its output; -1: none runs */
    ev_io            io;
    ev_timer         timer;
    size_t           len;
    char             text[(DNS_MAX + 2) * ADDRESS_TEXT_BYTES];
} dns_t;


/* program and name live as long as it does. */
void dns_init(dns_t *dns, struct ev_loop *loop, const char *program,
    const char *name, double period_s, dns_set_pt on_set, void *data);
void dns_done(dns_t *dns);

/* The child: prints the addresses of NAME:PORT, and "." behind them;
   one more than DNS_MAX shows that there are more. */
int dns_main(int argc, char **argv);

#endif /* DNS_H */
