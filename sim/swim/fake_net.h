
/*
 * A network and a clock in memory: the second implementation of net/transport.h
 * and net/clock.h.
 *
 * Everything that happens (a datagram arrives, an alarm goes off) is an event
 * in one heap, carried out in order of time, so that an hour of a cluster
 * passes in seconds and the same seed gives the same hour.
 */

#ifndef FAKE_NET_H
#define FAKE_NET_H

#include "net/clock.h"
#include "net/transport.h"


#define FAKE_NET_START_US  1000000ULL   /* the time at which a net begins */

typedef struct fake_net_s  fake_net_t;

/* How the net treats datagrams; may be changed at any time. */
typedef struct {
    unsigned  loss_permille;
    unsigned  double_permille;
    uint64_t  delay_us;
    uint64_t  jitter_us;            /* at most this is added to delay_us */
    size_t    reorder;              /* how many later datagrams may overtake
                                       one, at most FAKE_MAX_REORDER; 0: only
                                       what random delays bring */
} fake_weather_t;

#define FAKE_MAX_REORDER  32

/* The cluster's name in datagrams, which filters rely on. */
#define FAKE_CLUSTER      "test"

/* What may be cut on a path between two hosts. */
#define FAKE_DATAGRAMS    0x1
#define FAKE_STREAMS      0x2
#define FAKE_ALL          (FAKE_DATAGRAMS|FAKE_STREAMS)

/* Reports what happened to a datagram, for a log; len is 0 for a stream. */
typedef void (*fake_tap_pt)(void *data, const char *what, size_t from,
    size_t to, const uint8_t *bytes, size_t len);

/* A net of `n` hosts; host i has the address 10.0.i/250.(i%250 + 1):7946. */
fake_net_t *fake_net_create(size_t n, uint64_t seed);
void fake_net_destroy(fake_net_t *net);

fake_weather_t *fake_net_weather(fake_net_t *net);
void fake_net_address(size_t host, address_t *address);

transport_t *fake_net_transport(fake_net_t *net, size_t host);
clock_source_t *fake_net_clock(fake_net_t *net, size_t host);

/*
 * Cuts a path in one direction: what is FAKE_ALL or a part of it; 0 restores
 * the path.  A stream needs both directions.
 */
void fake_net_cut(fake_net_t *net, size_t from, size_t to, unsigned what);

/*
 * Cuts or restores all paths between the hosts [first, first + n) and the
 * others.
 */
void fake_net_part(fake_net_t *net, size_t first, size_t n, unsigned what);

/*
 * Changes in place what a host sends and receives; bytes has the size
 * FAKE_FILTER_BYTES.  Returns the new length.
 */
#define FAKE_FILTER_BYTES  4096

typedef size_t (*fake_filter_pt)(uint8_t *bytes, size_t len, int is_heard);

void fake_net_filter(fake_net_t *net, size_t host, fake_filter_pt filter);

void fake_net_tap(fake_net_t *net, fake_tap_pt tap, void *data);

/* Sets how far this host's wall clock is ahead. */
void fake_net_set_wall(fake_net_t *net, size_t host, int64_t ahead_us);

/* Stalls the host until that time: its alarms and datagrams wait. */
void fake_net_stall(fake_net_t *net, size_t host, uint64_t until_us);

uint64_t fake_net_now_us(const fake_net_t *net);

/* When the next event is due; UINT64_MAX: none is. */
uint64_t fake_net_next_us(const fake_net_t *net);
void fake_net_run(fake_net_t *net, uint64_t until_us);

/* Bytes of payload, and number of datagrams, that all hosts have sent. */
uint64_t fake_net_bytes(const fake_net_t *net);
uint64_t fake_net_datagrams(const fake_net_t *net);

#endif /* FAKE_NET_H */
