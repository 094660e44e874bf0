
/*
 * Seam: sending and receiving datagrams.  Two implementations, chosen when
 * linking: net/transport_udp.c for the agent, t/sim/stage/fake_net.c for
 * tests.  Both may lose, duplicate, delay and reorder a datagram.
 */

#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/address.h"


typedef struct transport_s  transport_t;

typedef void (*transport_recv_pt)(void *data, const address_t *from,
    const uint8_t *bytes, size_t len);

/* From now on datagrams that arrive go to on_datagram; NULL: they are lost. */
void transport_listen(transport_t *transport, transport_recv_pt on_datagram,
    void *data);

/* Never blocks, never fails: what cannot be sent counts as lost. */
void transport_send(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len);

/*
 * The same over a TCP connection, for peers that datagrams do not reach: it is
 * opened, the bytes are sent, and one answer is waited for.  The peer gets the
 * bytes as a datagram from an address that stands for the connection: what it
 * sends to that address before on_datagram returns goes back over the
 * connection, and arrives here as a datagram, too.
 */
void transport_ask(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len);

/* Hands over all datagrams that have arrived by now. */
void transport_drain(transport_t *transport);

#endif /* TRANSPORT_H */
