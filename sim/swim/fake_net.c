
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/swim/fake_inner.h"


fake_net_t *
fake_net_create(size_t n, uint64_t seed)
{
    size_t       i;
    fake_net_t  *net;

    net = calloc(1, sizeof(fake_net_t));
    net->n = n;
    net->heap.item_bytes = sizeof(fake_event_t);
    net->transports = calloc(n, sizeof(transport_t));
    net->clocks = calloc(n, sizeof(clock_source_t));
    net->stalled_until_us = calloc(n, sizeof(uint64_t));
    net->cuts = calloc(n, n);
    net->held = calloc(n, sizeof(fake_held_t));
    net->rnd.state = seed;
    net->now_us = FAKE_NET_START_US;

    for (i = 0; i < n; i++) {
        net->transports[i].net = net;
        net->transports[i].host = i;
        net->transports[i].asker = SIZE_MAX;
        fake_net_address(i, &net->transports[i].address);
        net->clocks[i].net = net;
        net->clocks[i].host = i;
    }

    return net;
}


void
fake_net_destroy(fake_net_t *net)
{
    size_t  i, j;

    for (i = 0; i < net->heap.n; i++) {
        free(((fake_event_t *) heap_item(&net->heap, i))->bytes);
    }

    for (i = 0; i < net->n; i++) {
        for (j = 0; j < net->held[i].n; j++) {
            free(net->held[i].events[j].bytes);
        }
    }

    free(net->held);

    heap_done(&net->heap);
    free(net->transports);
    free(net->clocks);
    free(net->stalled_until_us);
    free(net->cuts);
    free(net);
}


fake_weather_t *
fake_net_weather(fake_net_t *net)
{
    return &net->weather;
}


void
fake_net_address(size_t host, address_t *address)
{
    char  text[ADDRESS_TEXT_BYTES];

    snprintf(text, sizeof(text), "10.0.%zu.%zu:7946", host / 250,
             host % 250 + 1);
    assert(address_parse(text, address) == 0);
}


static size_t
fake_net_host(const address_t *address)
{
    uint32_t                   ip;
    const struct sockaddr_in  *in;

    in = (const struct sockaddr_in *) &address->ss;
    ip = ntohl(in->sin_addr.s_addr);

    return ((ip >> 8) & 0xff) * 250 + (ip & 0xff) - 1;
}


static void
fake_net_tell(fake_net_t *net, const char *what, const fake_event_t *event)
{
    if (net->tap != NULL) {
        net->tap(net->tap_data, what, event->from, event->host, event->bytes,
                 event->len);
    }
}


transport_t *
fake_net_transport(fake_net_t *net, size_t host)
{
    return &net->transports[host];
}


clock_source_t *
fake_net_clock(fake_net_t *net, size_t host)
{
    return &net->clocks[host];
}


void
fake_net_cut(fake_net_t *net, size_t from, size_t to, unsigned what)
{
    net->cuts[from * net->n + to] = what;
}


void
fake_net_part(fake_net_t *net, size_t first, size_t n, unsigned what)
{
    size_t  i, j;

    for (i = first; i < first + n; i++) {
        for (j = 0; j < net->n; j++) {
            if (j < first || j >= first + n) {
                fake_net_cut(net, i, j, what);
                fake_net_cut(net, j, i, what);
            }
        }
    }
}


void
fake_net_filter(fake_net_t *net, size_t host, fake_filter_pt filter)
{
    net->transports[host].filter = filter;
}


void
fake_net_tap(fake_net_t *net, fake_tap_pt tap, void *data)
{
    net->tap = tap;
    net->tap_data = data;
}


void
fake_net_set_wall(fake_net_t *net, size_t host, int64_t ahead_us)
{
    net->clocks[host].wall_us = ahead_us;
}


void
fake_net_stall(fake_net_t *net, size_t host, uint64_t until_us)
{
    net->stalled_until_us[host] = until_us;
}


uint64_t
fake_net_now_us(const fake_net_t *net)
{
    return net->now_us;
}


uint64_t
fake_net_bytes(const fake_net_t *net)
{
    return net->bytes;
}


uint64_t
fake_net_datagrams(const fake_net_t *net)
{
    return net->datagrams;
}


/* Passes a datagram through the host's filter, if any, into `room`. */
static const uint8_t *
fake_net_filtered(const transport_t *transport, const uint8_t *bytes,
    size_t *len, int is_heard, uint8_t *room)
{
    if (transport->filter == NULL) {
        return bytes;
    }

    memcpy(room, bytes, *len);
    *len = transport->filter(room, *len, is_heard);

    return room;
}


static void
fake_net_deliver(fake_net_t *net, fake_event_t *event)
{
    uint8_t         room[FAKE_FILTER_BYTES];
    address_t       from;
    transport_t    *transport;
    const uint8_t  *bytes;

    transport = &net->transports[event->host];
    fake_net_tell(net, "had", event);

    if (transport->on_datagram != NULL) {
        from = net->transports[event->from].address;

        if (event->kind == FAKE_QUESTION) {
            ((struct sockaddr_in *) &from.ss)->sin_port
                = htons(FAKE_STREAM_PORT);
            transport->asker = event->from;
        }

        bytes = fake_net_filtered(transport, event->bytes, &event->len, 1,
                                  room);
        transport->on_datagram(transport->data, &from, bytes, event->len);
        transport->asker = SIZE_MAX;
    }

    free(event->bytes);
}


static void
fake_net_alarm(fake_net_t *net, const fake_event_t *event)
{
    clock_source_t  *clock;

    clock = &net->clocks[event->host];

    if (event->alarm == clock->alarm && clock->on_alarm != NULL) {
        clock->alarm = 0;
        clock->on_alarm(clock->data);
    }
}


/* Delivers datagrams kept long enough; each other one has its own event. */
static void
fake_net_release(fake_net_t *net, size_t host)
{
    size_t        i;
    fake_held_t  *held;

    held = &net->held[host];

    for (i = held->n; i > 0; i--) {
        if (fake_net_is_due(net, &held->events[i - 1], FAKE_HOLD_US)) {
            fake_net_push(net, held->events[i - 1]);
            held->events[i - 1] = held->events[--held->n];
        }
    }
}


static void
fake_net_carry_out(fake_net_t *net, fake_event_t *event)
{
    switch (event->kind) {
    case FAKE_ALARM:
        fake_net_alarm(net, event);
        break;
    case FAKE_RELEASE:
        fake_net_release(net, event->host);
        break;
    case FAKE_NOTHING:
        break;
    default:
        fake_net_deliver(net, event);
    }
}


void
fake_net_run(fake_net_t *net, uint64_t until_us)
{
    fake_event_t  event;

    while (fake_net_next_us(net) <= until_us && net->heap.n > 0) {
        event = fake_net_pop(net);
        net->now_us = fake_net_is_due(net, &event, 0)
                      ? net->now_us : (uint64_t) event.key.at_us;

        if (net->stalled_until_us[event.host] > net->now_us) {
            event.key.at_us = (int64_t) net->stalled_until_us[event.host];
            fake_net_push(net, event);

        } else {
            fake_net_carry_out(net, &event);
        }
    }

    net->now_us = until_us;
}


uint64_t
clock_mono_us(clock_source_t *clock)
{
    return clock->net->now_us;
}


uint64_t
clock_wall_us(clock_source_t *clock)
{
    return FAKE_EPOCH_WALL_US + clock->net->now_us + clock->wall_us;
}


void
clock_arm(clock_source_t *clock, uint64_t at_us, clock_alarm_pt on_alarm,
    void *data)
{
    fake_event_t  event;
    fake_net_t   *net;

    net = clock->net;

    if (clock->alarm != 0 && clock->at_us == at_us && on_alarm != NULL) {
        clock->on_alarm = on_alarm;
        clock->data = data;
        return;
    }

    clock->on_alarm = on_alarm;
    clock->data = data;
    clock->at_us = at_us;
    clock->alarm = 0;

    if (at_us == UINT64_MAX) {
        return;
    }

    memset(&event, 0, sizeof(event));
    event.key.at_us = (int64_t) (at_us > net->now_us ? at_us : net->now_us);
    event.host = clock->host;
    event.kind = FAKE_ALARM;
    event.alarm = net->order + 1;
    clock->alarm = event.alarm;
    fake_net_push(net, event);
}


void
transport_listen(transport_t *transport, transport_recv_pt on_datagram,
    void *data)
{
    transport->on_datagram = on_datagram;
    transport->data = data;
}


static int
fake_net_is_lost(fake_net_t *net)
{
    return rnd_below(&net->rnd, 1000) < net->weather.loss_permille;
}


static uint64_t
fake_net_flight_us(fake_net_t *net)
{
    return net->weather.delay_us
           + (net->weather.jitter_us
              ? rnd_below(&net->rnd, net->weather.jitter_us + 1) : 0);
}


/* Keeps a datagram until others have overtaken it, FAKE_HOLD_US at most. */
static void
fake_net_hold(fake_net_t *net, const fake_event_t *event)
{
    fake_held_t   *held;
    fake_event_t   release;

    held = &net->held[event->host];
    held->events[held->n++] = *event;

    memset(&release, 0, sizeof(release));
    release.kind = FAKE_RELEASE;
    release.host = event->host;
    release.key.at_us = event->key.at_us + FAKE_HOLD_US;
    fake_net_push(net, release);
}


static void
fake_net_push_copy(fake_net_t *net, fake_event_t event, const uint8_t *bytes)
{
    size_t        i;
    fake_held_t  *held;

    event.bytes = malloc(event.len);
    memcpy(event.bytes, bytes, event.len);
    held = &net->held[event.host];

    if (event.kind != FAKE_DATAGRAM || net->weather.reorder == 0) {
        fake_net_push(net, event);
        return;
    }

    if (held->n == net->weather.reorder) {
        i = rnd_below(&net->rnd, held->n);
        fake_net_push(net, held->events[i]);
        held->events[i] = held->events[--held->n];
    }

    fake_net_hold(net, &event);
}


static void
fake_net_carry(fake_net_t *net, size_t from, size_t to, const uint8_t *bytes,
    size_t len)
{
    fake_event_t  event;

    memset(&event, 0, sizeof(event));
    event.kind = FAKE_DATAGRAM;
    event.host = to;
    event.from = from;
    event.len = len;
    event.bytes = (uint8_t *) bytes;

    if (fake_net_is_lost(net)) {
        fake_net_tell(net, "lost", &event);
        return;
    }

    fake_net_tell(net, "sent", &event);
    event.key.at_us = (int64_t) (net->now_us + fake_net_flight_us(net));
    fake_net_push_copy(net, event, bytes);
}


/* Carries bytes over a new stream.  The first two packets of its handshake must
   arrive; later ones are sent again if they are lost. */
static void
fake_net_carry_stream(fake_net_t *net, fake_kind_t kind, size_t from,
    size_t to, const uint8_t *bytes, size_t len)
{
    size_t        i, flights;
    fake_event_t  event;

    if ((net->cuts[from * net->n + to] | net->cuts[to * net->n + from])
        & FAKE_STREAMS)
    {
        return;
    }

    memset(&event, 0, sizeof(event));
    event.kind = kind;
    event.host = to;
    event.from = from;
    event.len = len;
    event.key.at_us = (int64_t) net->now_us;
    flights = kind == FAKE_QUESTION ? 3 : 1;

    for (i = 0; i < flights; i++) {
        event.key.at_us += (int64_t) fake_net_flight_us(net);

        if (!fake_net_is_lost(net)) {
            continue;
        }

        if (i + 1 < flights) {
            return;
        }

        event.key.at_us += FAKE_RETRANSMIT_US;
    }

    fake_net_push_copy(net, event, bytes);
}


void
transport_send(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len)
{
    size_t       host;
    uint8_t      room[FAKE_FILTER_BYTES];
    fake_net_t  *net;

    net = transport->net;
    host = fake_net_host(to);
    bytes = fake_net_filtered(transport, bytes, &len, 0, room);

    if (address_port(to) == FAKE_STREAM_PORT) {
        if (transport->asker == host) {
            fake_net_carry_stream(net, FAKE_ANSWER, transport->host, host,
                                  bytes, len);
        }

        return;
    }

    net->bytes += len;
    net->datagrams++;

    if (host >= net->n
        || net->cuts[transport->host * net->n + host] & FAKE_DATAGRAMS)
    {
        return;
    }

    fake_net_carry(net, transport->host, host, bytes, len);

    if (rnd_below(&net->rnd, 1000) < net->weather.double_permille) {
        fake_net_carry(net, transport->host, host, bytes, len);
    }
}


void
transport_ask(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len)
{
    size_t       host;
    uint8_t      room[FAKE_FILTER_BYTES];
    fake_net_t  *net;

    net = transport->net;
    host = fake_net_host(to);
    bytes = fake_net_filtered(transport, bytes, &len, 0, room);
    net->bytes += len;

    if (host < net->n) {
        fake_net_carry_stream(net, FAKE_QUESTION, transport->host, host,
                              bytes, len);
    }
}


/* The earliest datagram that is due at a host now; NULL: none is. */
static fake_event_t *
fake_net_waiting(fake_net_t *net, size_t host)
{
    size_t         i;
    fake_event_t  *event, *found;

    found = NULL;

    for (i = 0; i < net->heap.n; i++) {
        event = heap_item(&net->heap, i);

        if (event->host == host && event->kind < FAKE_ALARM
            && fake_net_is_due(net, event, 0)
            && (found == NULL || heap_is_before(&event->key, &found->key)))
        {
            found = event;
        }
    }

    return found;
}


/*
 * Delivers the datagrams that came while the host was stalled, like those in a
 * socket's buffer, before its alarm.  At other times none wait.
 */
void
transport_drain(transport_t *transport)
{
    fake_net_t    *net;
    fake_event_t   event, *waiting;

    net = transport->net;

    if (net->stalled_until_us[transport->host] != net->now_us) {
        return;
    }

    while ((waiting = fake_net_waiting(net, transport->host)) != NULL) {
        event = *waiting;
        waiting->kind = FAKE_NOTHING;
        waiting->bytes = NULL;
        fake_net_deliver(net, &event);
    }
}
