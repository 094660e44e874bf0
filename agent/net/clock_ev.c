
#include <stdlib.h>
#include <time.h>

#include "net/clock_ev.h"


struct clock_source_s {
    struct ev_loop  *loop;
    ev_timer         timer;
    uint64_t         at_us;
    clock_alarm_pt   on_alarm;
    void            *data;
};


static uint64_t
clock_read_us(clockid_t id)
{
    struct timespec  ts;

    clock_gettime(id, &ts);

    return ts.tv_sec * 1000000ULL + ts.tv_nsec / 1000;
}


uint64_t
clock_mono_us(clock_source_t *clock)
{
    return clock_read_us(CLOCK_MONOTONIC);
}


uint64_t
clock_wall_us(clock_source_t *clock)
{
    return clock_read_us(CLOCK_REALTIME);
}


static void
clock_timer(struct ev_loop *loop, ev_timer *timer, int events)
{
    clock_source_t  *clock = timer->data;

    clock->at_us = UINT64_MAX;
    clock->on_alarm(clock->data);
}


clock_source_t *
clock_ev_create(struct ev_loop *loop)
{
    clock_source_t  *clock;

    clock = calloc(1, sizeof(clock_source_t));
    if (clock == NULL) {
        return NULL;
    }

    clock->loop = loop;
    clock->at_us = UINT64_MAX;
    ev_init(&clock->timer, clock_timer);
    clock->timer.data = clock;

    return clock;
}


void
clock_ev_destroy(clock_source_t *clock)
{
    ev_timer_stop(clock->loop, &clock->timer);
    free(clock);
}


void
clock_arm(clock_source_t *clock, uint64_t at_us, clock_alarm_pt on_alarm,
    void *data)
{
    uint64_t  now_us;

    clock->on_alarm = on_alarm;
    clock->data = data;

    if (clock->at_us == at_us) {
        return;         /* most datagrams move no deadline */
    }

    clock->at_us = at_us;
    ev_timer_stop(clock->loop, &clock->timer);

    if (at_us == UINT64_MAX) {
        return;
    }

    /* libev would count from its cached time */
    ev_now_update(clock->loop);
    now_us = clock_mono_us(clock);

    ev_timer_set(&clock->timer,
                 at_us > now_us ? (at_us - now_us) / 1e6 : 0., 0.);
    ev_timer_start(clock->loop, &clock->timer);
}
