
/* Flows over real shards, in real time: the fleet's functions and libev's. */

#include <ev.h>
#include <stdlib.h>

#include "common/os/mono.h"
#include "replica/shard/flow/flow_inner.h"


typedef struct {
    struct ev_loop  *loop;
    ev_timer         timer;
    flows_t         *flows;
} live_t;


static uint64_t
live_now_ns(void *clock)
{
    return mono_ns();
}


static void
live_wake(void *clock, uint64_t at_ns)
{
    live_t    *live = clock;
    uint64_t   now;

    now = live_now_ns(clock);

    /* The loop's own time may be an iteration old. */
    ev_now_update(live->loop);
    ev_timer_stop(live->loop, &live->timer);
    ev_timer_set(&live->timer, at_ns > now ? (at_ns - now) / 1e9 : 0., 0.);
    ev_timer_start(live->loop, &live->timer);
}


static void
live_on_timer(struct ev_loop *loop, ev_timer *timer, int revents)
{
    live_t  *live = timer->data;

    flows_tick(live->flows);
}


static void
live_free(void *clock)
{
    live_t  *live = clock;

    ev_timer_stop(live->loop, &live->timer);
    free(live);
}


static const flow_world_t  live_world = {
    fleet_find, fleet_exclude, fleet_worked, fleet_is_doubted, fleet_each,
    link_open, link_step, link_close,
    live_now_ns, live_wake
};


flows_t *
flows_open(struct ev_loop *loop, const log_t *log, fleet_t *fleet,
    const flows_options_t *options)
{
    live_t  *live;

    live = calloc(1, sizeof(live_t));

    if (live == NULL) {
        return NULL;
    }

    live->loop = loop;
    ev_timer_init(&live->timer, live_on_timer, 0., 0.);
    live->timer.data = live;
    live->flows = flows_create(&live_world, fleet, live, log, options);

    if (live->flows == NULL) {
        free(live);
        return NULL;
    }

    live->flows->free_clock = live_free;

    return live->flows;
}
