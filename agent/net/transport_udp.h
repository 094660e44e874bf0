
/* The transport of the agent: a UDP socket and net/stream.h, on libev. */

#ifndef TRANSPORT_UDP_H
#define TRANSPORT_UDP_H

#include <ev.h>

#include "common/listener.h"
#include "net/transport.h"


/* NULL and a reason in error (>= 256 bytes). */
transport_t *transport_udp_create(struct ev_loop *loop,
    const address_t *address, char *error);
void transport_udp_destroy(transport_t *transport);

/* on_starved is called when an incoming connection finds no descriptor. */
void transport_udp_on_starved(transport_t *transport,
    listener_starved_pt on_starved, void *data);

/*
 * is_held 1: nothing is sent, and datagrams that come wait in the kernel, until
 * this is called with 0.  For moments only: members that ping us wait, too.
 */
void transport_udp_hold(transport_t *transport, int is_held);

/*
 * For tests: drops this percentage of the datagrams that arrive.  TCP
 * connections lose nothing, as on a real network.
 */
void transport_udp_lose(transport_t *transport, unsigned percent,
    uint64_t random_seed);

#endif /* TRANSPORT_UDP_H */
