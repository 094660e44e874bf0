
/*
 * Seam: how datagrams leave and come.
 *
 * Two implementations, chosen when linking: net/transport_udp.c for the
 * agent, t/sim/stage/fake_net.c for tests.  A datagram may be lost, doubled,
 * delayed and reordered by either.
 */

#ifndef TRANSPORT_H
#define TRANSPORT_H

#include <stddef.h>
#include <stdint.h>

#include "common/address.h"


typedef struct transport_s  transport_t;

typedef void (*transport_recv_pt)(void *data, const address_t *from,
    const uint8_t *bytes, size_t len);

/* From now on what comes goes to on_datagram; NULL: it is lost. */
void transport_listen(transport_t *transport, transport_recv_pt on_datagram,
    void *data);

/* Never blocks, never fails: what does not leave counts as lost. */
void transport_send(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len);

/*
 * The same over a connection of its own, for what datagrams do not reach: it
 * is opened, the bytes go, one answer is waited for, as long as one asks
 * usually waits for it.  At the other end they come as a datagram from an
 * address that stands for the connection: what is sent to that address before
 * on_datagram returns goes back by it, and comes to us as a datagram, too.
 */
void transport_ask(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len);

/* Hands over what has come by now and still waits, before it returns. */
void transport_drain(transport_t *transport);

#endif /* TRANSPORT_H */
