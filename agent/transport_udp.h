
/* The transport of the agent: one UDP socket on a libev loop. */

#ifndef TRANSPORT_UDP_H
#define TRANSPORT_UDP_H

#include <ev.h>

#include "transport.h"


/* NULL and a reason in error (>= 256 bytes). */
transport_t *transport_udp_create(struct ev_loop *loop,
    const address_t *address, char *error);
void transport_udp_destroy(transport_t *transport);

#endif /* TRANSPORT_UDP_H */
