
/* Private to fake_*.c: the one struct, and the heap of future events. */

#ifndef FAKE_INNER_H
#define FAKE_INNER_H

#include "common/data/heap.h"
#include "common/rnd.h"
#include "sim/swim/fake_net.h"


#define FAKE_EPOCH_WALL_US  1763650000000000ULL

/* The port of a host that asks over a stream: not its gossip port. */
#define FAKE_STREAM_PORT    40000

/* TCP sends again after this; a lost SYN is too late for a ping. */
#define FAKE_RETRANSMIT_US  200000

/* The longest that a datagram waits for others to overtake it. */
#define FAKE_HOLD_US        150000

typedef enum {
    FAKE_DATAGRAM = 0,
    FAKE_QUESTION,                  /* over a stream */
    FAKE_ANSWER,
    FAKE_ALARM,
    FAKE_RELEASE,                   /* of datagrams kept for a host */
    FAKE_NOTHING                    /* was already carried out */
} fake_kind_t;

typedef struct {
    heap_key_t    key;
    size_t        host;
    size_t        from;
    fake_kind_t   kind;
    uint64_t      alarm;            /* its number */
    uint8_t      *bytes;
    size_t        len;
} fake_event_t;

/* Datagrams to one host, kept so that others overtake them. */
typedef struct {
    fake_event_t  events[FAKE_MAX_REORDER];
    size_t        n;
} fake_held_t;

struct transport_s {
    fake_net_t         *net;
    size_t              host;
    address_t           address;
    fake_filter_pt      filter;     /* or NULL */
    size_t              asker;      /* over this stream; SIZE_MAX: none */
    transport_recv_pt   on_datagram;
    void               *data;
};

struct clock_source_s {
    fake_net_t      *net;
    size_t           host;
    clock_alarm_pt   on_alarm;
    void            *data;
    uint64_t         alarm;         /* the number of the valid one */
    uint64_t         at_us;
    int64_t          wall_us;       /* ahead */
};

struct fake_net_s {
    size_t           n;
    transport_t     *transports;
    clock_source_t  *clocks;
    uint64_t        *stalled_until_us;
    uint8_t         *cuts;          /* n x n */
    fake_held_t     *held;
    fake_tap_pt      tap;
    void            *tap_data;
    fake_weather_t   weather;
    rnd_t            rnd;
    uint64_t         now_us;
    uint64_t         order;
    uint64_t         bytes;
    uint64_t         datagrams;
    heap_t           heap;          /* of fake_event_t */
};


/* Is it that much later than the event's time? */
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
