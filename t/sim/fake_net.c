
#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/rnd.h"
#include "fake_net.h"


#define FAKE_EPOCH_WALL_US  1763650000000000ULL
#define FAKE_START_US       1000000ULL

typedef struct {
    uint64_t  at_us;
    uint64_t  order;                /* of two at the same time */
    size_t    host;
    size_t    from;
    uint64_t  alarm;                /* its number; 0: a datagram */
    uint8_t  *bytes;
    size_t    len;
} fake_event_t;

struct transport_s {
    fake_net_t         *net;
    size_t              host;
    transport_recv_pt   on_datagram;
    void               *data;
};

struct clock_source_s {
    fake_net_t      *net;
    size_t           host;
    clock_alarm_pt   on_alarm;
    void            *data;
    uint64_t         alarm;         /* the number of the one that counts */
    uint64_t         at_us;
};

struct fake_net_s {
    size_t           n;
    transport_t     *transports;
    clock_source_t  *clocks;
    uint64_t        *stalled_until_us;
    uint8_t         *cuts;          /* n x n */
    fake_weather_t   weather;
    rnd_t            rnd;
    uint64_t         now_us;
    uint64_t         order;
    uint64_t         bytes;
    fake_event_t    *heap;
    size_t           nheap;
    size_t           capacity;
};


fake_net_t *
fake_net_create(size_t n, uint64_t seed)
{
    size_t       i;
    fake_net_t  *net;

    net = calloc(1, sizeof(fake_net_t));
    net->n = n;
    net->transports = calloc(n, sizeof(transport_t));
    net->clocks = calloc(n, sizeof(clock_source_t));
    net->stalled_until_us = calloc(n, sizeof(uint64_t));
    net->cuts = calloc(n, n);
    net->rnd.state = seed;
    net->now_us = FAKE_START_US;

    for (i = 0; i < n; i++) {
        net->transports[i].net = net;
        net->transports[i].host = i;
        net->clocks[i].net = net;
        net->clocks[i].host = i;
    }

    return net;
}


void
fake_net_destroy(fake_net_t *net)
{
    size_t  i;

    for (i = 0; i < net->nheap; i++) {
        free(net->heap[i].bytes);
    }

    free(net->heap);
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
fake_net_cut(fake_net_t *net, size_t from, size_t to, int is_cut)
{
    net->cuts[from * net->n + to] = is_cut;
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


static int
fake_event_is_before(const fake_event_t *a, const fake_event_t *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}


static void
fake_net_push(fake_net_t *net, fake_event_t event)
{
    size_t  i, parent;

    if (net->nheap == net->capacity) {
        net->capacity = net->capacity ? net->capacity * 2 : 1024;
        net->heap = realloc(net->heap, net->capacity * sizeof(fake_event_t));
    }

    event.order = ++net->order;

    for (i = net->nheap++; i > 0; i = parent) {
        parent = (i - 1) / 2;

        if (!fake_event_is_before(&event, &net->heap[parent])) {
            break;
        }

        net->heap[i] = net->heap[parent];
    }

    net->heap[i] = event;
}


static fake_event_t
fake_net_pop(fake_net_t *net)
{
    size_t        i, child;
    fake_event_t  first, last;

    first = net->heap[0];
    last = net->heap[--net->nheap];

    for (i = 0; (child = 2 * i + 1) < net->nheap; i = child) {
        if (child + 1 < net->nheap
            && fake_event_is_before(&net->heap[child + 1], &net->heap[child]))
        {
            child++;
        }

        if (!fake_event_is_before(&net->heap[child], &last)) {
            break;
        }

        net->heap[i] = net->heap[child];
    }

    net->heap[i] = last;

    return first;
}


static void
fake_net_deliver(fake_net_t *net, fake_event_t *event)
{
    address_t     from;
    transport_t  *transport;

    transport = &net->transports[event->host];

    if (transport->on_datagram != NULL) {
        fake_net_address(event->from, &from);
        transport->on_datagram(transport->data, &from, event->bytes,
                               event->len);
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


void
fake_net_run(fake_net_t *net, uint64_t until_us)
{
    fake_event_t  event;

    while (net->nheap > 0 && net->heap[0].at_us <= until_us) {
        event = fake_net_pop(net);
        net->now_us = event.at_us;

        if (net->stalled_until_us[event.host] > event.at_us) {
            event.at_us = net->stalled_until_us[event.host];
            fake_net_push(net, event);

        } else if (event.alarm) {
            fake_net_alarm(net, &event);

        } else {
            fake_net_deliver(net, &event);
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
    return FAKE_EPOCH_WALL_US + clock->net->now_us;
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
    event.at_us = at_us > net->now_us ? at_us : net->now_us;
    event.host = clock->host;
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


static void
fake_net_carry(fake_net_t *net, size_t from, size_t to, const uint8_t *bytes,
    size_t len)
{
    fake_event_t     event;
    fake_weather_t  *weather;

    weather = &net->weather;

    if (rnd_below(&net->rnd, 1000) < weather->loss_permille) {
        return;
    }

    memset(&event, 0, sizeof(event));
    event.at_us = net->now_us + weather->delay_us;
    event.host = to;
    event.from = from;
    event.len = len;
    event.bytes = malloc(len);
    memcpy(event.bytes, bytes, len);

    if (weather->jitter_us) {
        event.at_us += rnd_below(&net->rnd, weather->jitter_us + 1);
    }

    fake_net_push(net, event);
}


void
transport_send(transport_t *transport, const address_t *to,
    const uint8_t *bytes, size_t len)
{
    size_t       host;
    fake_net_t  *net;

    net = transport->net;
    net->bytes += len;
    host = fake_net_host(to);

    if (host >= net->n || net->cuts[transport->host * net->n + host]) {
        return;
    }

    fake_net_carry(net, transport->host, host, bytes, len);

    if (rnd_below(&net->rnd, 1000) < net->weather.double_permille) {
        fake_net_carry(net, transport->host, host, bytes, len);
    }
}


/*
 * What came to a host while it was stalled: all of it is handed over before
 * its alarm, as a socket's buffer would be.  Otherwise nothing waits.
 */
void
transport_drain(transport_t *transport)
{
    size_t        i;
    fake_net_t   *net;
    fake_event_t  event;

    net = transport->net;

    if (net->stalled_until_us[transport->host] != net->now_us) {
        return;
    }

    for (i = 0; i < net->nheap; /* void */) {
        if (net->heap[i].host != transport->host || net->heap[i].alarm
            || net->heap[i].at_us > net->now_us)
        {
            i++;
            continue;
        }

        /* Moves to the front as the earliest of all, and out. */
        event = net->heap[i];
        net->heap[i].alarm = UINT64_MAX;
        net->heap[i].bytes = NULL;
        fake_net_deliver(net, &event);
        i = 0;
    }
}
