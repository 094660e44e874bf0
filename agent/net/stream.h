
/*
 * Datagrams over TCP: a listener on the gossip port, and connections that
 * carry one question and one answer.
 *
 *     asks                                         is asked
 *     connect ------------------------------------> accept
 *     2 bytes of length, big endian, datagram ----> on_datagram, from P
 *     on_datagram <--- 2 bytes of length, datagram  stream_answer, to P
 *     close                                         close
 *
 * P is the peer's address as accept() tells it.  A slot is taken until the
 * answer has been received or sent, for a second at most.  When all are taken
 * the oldest connection of a peer is closed, so that a peer which opens many
 * and sends nothing cannot keep others out for long.  Our own questions yield
 * to our own only: a peer that connects cannot end our checks.
 */

#ifndef STREAM_H
#define STREAM_H

#include <ev.h>

#include "common/listener.h"
#include "net/transport.h"


/*
 * Enough for our own and others' questions at once: three late probers with ten
 * each.
 */
#define STREAM_MAX           32
#define STREAM_TIMEOUT_S     1.0
#define STREAM_ERROR_BYTES   256

typedef struct streams_s  streams_t;

/* Listens on the address.  NULL, and a reason. */
streams_t *streams_create(struct ev_loop *loop, const address_t *address,
    transport_recv_pt on_datagram, void *data, char *error);
void streams_destroy(streams_t *streams);

/* on_starved is called when an incoming connection finds no descriptor. */
void streams_on_starved(streams_t *streams, listener_starved_pt on_starved,
    void *data);

/* Sends a question of at most PACKET_MAX_BYTES.  Never blocks, never fails: a
   question without an answer counts as lost. */
void streams_ask(streams_t *streams, const address_t *to,
    const uint8_t *bytes, size_t len);

/*
 * If `to` is the peer whose question is being handled, sends the answer.  1: it
 * was.
 */
int streams_answer(streams_t *streams, const address_t *to,
    const uint8_t *bytes, size_t len);

#endif /* STREAM_H */
