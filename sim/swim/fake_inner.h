
/* Private to fake_*.c: the structs of a net, and the heap of future events. */

#ifndef FAKE_INNER_H
#define FAKE_INNER_H

#include "common/data/heap.h"
#include "common/rnd.h"
#include "sim/swim/fake_net.h"


#define FAKE_EPOCH_WALL_US  1763650000000000ULL

/*
 * The port from which a host asks over a stream; it differs from its gossip
 * port.
 */
#define FAKE_STREAM_PORT    40000

/*
 * The delay of TCP's retransmission: a ping whose SYN is lost comes too late.
 */
#define FAKE_RETRANSMIT_US  200000

/* How long a datagram may be kept back for others to overtake it. */
#define FAKE_HOLD_US        150000

typedef enum {
    FAKE_DATAGRAM = 0,
    FAKE_QUESTION,                  /* over a stream */
    FAKE_ANSWER,
    FAKE_ALARM,
    FAKE_RELEASE,                   /* delivers datagrams kept for a host */
    FAKE_NOTHING                    /* an event that was already handled */
} fake_kind_t;

typedef struct {
    heap_key_t    key;
    size_t        host;
    size_t        from;
    fake_kind_t   kind;
    uint64_t      alarm;            /* number of the alarm */
    uint8_t      *bytes;
    size_t        len;
} fake_event_t;

/* Datagrams to one host, kept back so that others overtake them. */
typedef struct {
    fake_event_t  events[FAKE_MAX_REORDER];
    size_t        n;
} fake_held_t;

struct transport_s {
    fake_net_t         *net;
    size_t              host;
    address_t           address;
    fake_filter_pt      filter;     /* may be NULL */
    size_t              asker;      /* whose question over a stream is being
                                       answered; SIZE_MAX: none */
    transport_recv_pt   on_datagram;
    void               *data;
};

struct clock_source_s {
    fake_net_t      *net;
    size_t           host;
    clock_alarm_pt   on_alarm;
    void            *data;
    uint64_t         alarm;         /* number of the valid alarm */
    uint64_t         at_us;
    int64_t          wall_us;       /* how far its wall clock is ahead */
};

struct fake_net_s {
    size_t           n;
    transport_t     *transports;
    clock_source_t  *clocks;
    uint64_t        *stalled_until_us;
    uint8_t         *cuts;          /* by two hosts: what is cut */
    fake_held_t     *held;
    fake_tap_pt      tap;
    void            *tap_data;
    fake_weather_t   weather;
    rnd_t            rnd;
    uint64_t         now_us;
    uint64_t         order;
    uint64_t         bytes;
    uint64_t         datagrams;
    heap_t           heap;          /* items are fake_event_t */
};


/* Whether it is after_us later than the event's time. */
static inline int
fake_net_is_due(const fake_net_t *net, const fake_event_t *event,
    uint64_t after_us)
{
    return (uint64_t) event->key.at_us + after_us <= net->now_us;
}

/* fake_heap.c */

void fake_net_push(fake_net_t *net, fake_event_t event);
fake_event_t fake_net_pop(fake_net_t *net);

#endif /* FAKE_INNER_H */
