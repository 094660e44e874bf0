
/*
 * The addresses of a name, resolved again and again.
 *
 *   every period_s        a child process resolves the name: getaddrinfo(3)
 *                         blocks for as long as resolv.conf says
 *   it answers            on_set gets all addresses, DNS_MAX at most; if
 *                         there are more, the same ones each time
 *   it fails, or takes    the last set stays: a name server that is away is no
 *   DNS_TIMEOUT_S         reason to drain engines
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

/* texts: addresses as "10.0.0.5:8000", valid during the call.  why, for people:
   n is -1 and the name was not resolved, or it has more than DNS_MAX addresses;
   NULL: neither. */
typedef void (*dns_set_pt)(void *data, const char *const *texts, int n,
    const char *why);

typedef struct {
    struct ev_loop  *loop;
    const char      *program;       /* path of this program */
    const char      *name;          /* "host:port" */
    double           period_s;
    dns_set_pt       on_set;
    void            *data;
    child_t          child;
    int              fd;            /* the child's output; -1: no child runs */
    ev_io            io;
    ev_timer         timer;
    size_t           len;
    char             text[(DNS_MAX + 2) * ADDRESS_TEXT_BYTES];
} dns_t;


/* program and name must live as long as dns. */
void dns_init(dns_t *dns, struct ev_loop *loop, const char *program,
    const char *name, double period_s, dns_set_pt on_set, void *data);
void dns_done(dns_t *dns);

/* Runs in the child: prints the addresses of NAME:PORT, one more than DNS_MAX
   if there are more, and then ".". */
int dns_main(int argc, char **argv);

#endif /* DNS_H */
