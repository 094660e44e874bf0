
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/packet_header.h"
#include "common/rnd.h"
#include "net/stream.h"
#include "net/transport_udp.h"


/*
 * Room for the table of a thousand members, which arrives as a hundred
 * datagrams at once; net.core.rmem_max may limit this.
 */
#define TRANSPORT_RCVBUF_BYTES  (4 * 1024 * 1024)

/*
 * Datagrams received at once, so that a flood cannot keep the loop from
 * everything else.
 */
#define TRANSPORT_MAX_BATCH     256

#define TRANSPORT_ERROR_BYTES   256

struct transport_s {
    struct ev_loop     *loop;
    ev_io               io;
    int                 fd;
    streams_t          *streams;
    int                 is_held;
    unsigned            loss_percent;
    rnd_t               rnd;
    transport_recv_pt   on_datagram;
    void               *data;
};


static void
transport_readable(struct ev_loop *loop, ev_io *io, int events)
{
    transport_drain(io->data);
}


static void
transport_streamed(void *data, const address_t *from, const uint8_t *bytes,
    size_t len)
{
    transport_t  *transport = data;

    if (transport->on_datagram != NULL && !transport->is_held) {
        transport->on_datagram(transport->data, from, bytes, len);
    }
}


transport_t *
transport_udp_create(struct ev_loop *loop, const address_t *address,
    char *error)
{
    int           fd, bytes;
    char          text[ADDRESS_TEXT_BYTES];
    transport_t  *transport;

    address_format(address, text);

    fd = socket(address->ss.ss_family,
                SOCK_DGRAM|SOCK_NONBLOCK|SOCK_CLOEXEC, 0);

    if (fd == -1 || bind(fd, (const struct sockaddr *) &address->ss,
                         address->len) == -1)
    {
        snprintf(error, TRANSPORT_ERROR_BYTES,
                 "cannot bind gossip address %s/udp: %s", text,
                 strerror(errno));
        if (fd != -1) {
            close(fd);
        }

        return NULL;
    }

    bytes = TRANSPORT_RCVBUF_BYTES;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof(bytes));

    transport = calloc(1, sizeof(transport_t));
    if (transport == NULL) {
        snprintf(error, TRANSPORT_ERROR_BYTES, "out of memory");
        close(fd);
        return NULL;
    }

    transport->streams = streams_create(loop, address, transport_streamed,
                                        transport, error);
    if (transport->streams == NULL) {
        close(fd);
        free(transport);
        return NULL;
    }

    transport->loop = loop;
    transport->fd = fd;
    ev_io_init(&transport->io, transport_readable, fd, EV_READ);
    transport->io.data = transport;
    ev_io_start(loop, &transport->io);

    return transport;
}


void
transport_udp_destroy(transport_t *transport)
{
    ev_io_stop(transport->loop, &transport->io);
    streams_destroy(transport->streams);
    close(transport->fd);
    free(transport);
}


void
transport_udp_on_starved(transport_t *transport,
    listener_starved_pt on_starved, void *data)
{
    streams_on_starved(transport->streams, on_starved, data);
}


void
transport_udp_hold(transport_t *transport, int is_held)
{
    transport->is_held = is_held;

    if (is_held) {
        ev_io_stop(transport->loop, &transport->io);

    } else {
        ev_io_start(transport->loop, &transport->io);
    }
}


void
transport_udp_lose(transport_t *transport, unsigned percent,
    uint64_t random_seed)
{
    transport->loss_percent = percent;
    transport->rnd.state = random_seed;
}


void
transport_listen(transport_t *transport, transport_recv_pt on_datagram,
    void *data)
{
    transport->on_datagram = on_datagram;
    transport->data = data;
}


void
transport_send(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len)
{
    ssize_t  n;

    if (transport->is_held) {
        return;
    }

    if (streams_answer(transport->streams, to, bytes, len)) {
        return;
    }

    do {
        n = sendto(transport->fd, bytes, len, 0,
                   (const struct sockaddr *) &to->ss, to->len);
    } while (n == -1 && errno == EINTR);
}


void
transport_ask(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len)
{
    streams_ask(transport->streams, to, bytes, len);
}


/*
 * Receives one datagram.  If a peer's port is closed, it answers by ICMP, which
 * recvfrom() reports as ECONNREFUSED: the socket is still good.
 */
static int
transport_receive(transport_t *transport)
{
    ssize_t    n;
    uint8_t    bytes[PACKET_MAX_BYTES + 1];
    address_t  from;

    from.len = sizeof(from.ss);
    n = recvfrom(transport->fd, bytes, sizeof(bytes), 0,
                 (struct sockaddr *) &from.ss, &from.len);

    if (n == -1) {
        return errno == EAGAIN ? -1 : 0;
    }

    if (transport->loss_percent != 0
        && rnd_below(&transport->rnd, 100) < transport->loss_percent)
    {
        return 0;
    }

    if (transport->on_datagram != NULL) {
        transport->on_datagram(transport->data, &from, bytes, n);
    }

    return 0;
}


void
transport_drain(transport_t *transport)
{
    int  i;

    for (i = 0; i < TRANSPORT_MAX_BATCH && !transport->is_held; i++) {
        if (transport_receive(transport) != 0) {
            return;
        }
    }
}
