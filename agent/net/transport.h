
/*
 * An interface that tests replace: sending and receiving datagrams.  Two
 * implementations, chosen when linking: net/transport_udp.c for the agent,
 * t/sim/stage/fake_net.c for tests.  Both may lose, duplicate, delay and
 * reorder a datagram.
 */

#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/address.h"


typedef struct transport_s  transport_t;

typedef void (*transport_recv_pt)(void *data, const address_t *from,
    const uint8_t *bytes, size_t len);

/*
 * From now on, datagrams that arrive are given to on_datagram; NULL: they are
 * lost.
 */
void transport_listen(transport_t *transport, transport_recv_pt on_datagram,
    void *data);

/*
 * Sends a datagram.  Never blocks, never fails: one that cannot be sent counts
 * as lost.
 */
void transport_send(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len);

/*
 * Sends the bytes over a new TCP connection, for peers that datagrams do not
 * reach, and waits for one answer.  The peer gets the bytes as a datagram from
 * an address that stands for the connection: a datagram that it sends to that
 * address before on_datagram returns is sent back over the connection, and
 * arrives here as a datagram, too.
 */
void transport_ask(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len);

/* Hands over all datagrams that have arrived by now. */
void transport_drain(transport_t *transport);

#endif /* TRANSPORT_H */
