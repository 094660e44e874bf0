
#include <stdio.h>
#include <sys/pidfd.h>

#include "replica/standby/standby.h"


#define STANDBY_PULSE_S  0.5

void
standby_fail(standby_t *s)
{
    s->engine->is_broken = 1;
    ev_break(s->loop, EVBREAK_ALL);
}


static void
standby_tell(standby_t *s, llmgw_group_state_t state)
{
    engine_group_t  *group;

    group = &s->engine->facts.group;

    if (group->state != state) {
        group->state = (uint8_t) state;
        engine_publish(s->engine);
    }
}


static void
standby_tell_lock(standby_t *s, int is_away)
{
    engine_group_t  *group;

    group = &s->engine->facts.group;

    if (group->is_lock_away != is_away) {
        group->is_lock_away = is_away;
        engine_publish(s->engine);
    }
}


/* --- Init */

static void
standby_on_gate(void *data)
{
    standby_t  *s;

    s = data;

    if (s->engine->kind->open(s->engine, s->engine_options) != 0) {
        standby_fail(s);
        return;
    }

    s->is_open = 1;
}


/* --- Waking */

void
standby_filled(standby_t *s)
{
    s->is_woken = 1;

    if (s->engine->kind->wake(s->engine) != 0) {
        standby_fail(s);
    }
}


static void
standby_fill(standby_t *s)
{
    if (s->body == NULL) {
        standby_filled(s);

    } else if (s->body->fill(s->body->data) != 0) {
        standby_fail(s);
    }
}


int
standby_worker(standby_t *s, pid_t pid)
{
    int  fd;

    fd = pidfd_open(pid, 0);

    if (fd == -1) {
        return -1;
    }

    watchdog_worker(s->watchdog, pid, fd);

    return 0;
}


static void
standby_on_granted(void *data, uint64_t epoch, uint64_t lock)
{
    standby_t  *s;

    s = data;
    s->engine->facts.group.epoch = epoch;
    s->engine->facts.group.lock = lock;
    s->state = LLMGW_GROUP_WAKING;
    standby_tell(s, LLMGW_GROUP_WAKING);

    if (s->body == NULL || s->body->count == 0) {
        standby_fill(s);

    } else if (s->body->begin(s->body->data,
                              watchdog_lock_fd(s->watchdog)) != 0) {
        standby_fail(s);
    }
}


static void
standby_on_regranted(void *data, uint64_t lock)
{
    standby_t  *s;

    s = data;
    s->engine->facts.group.lock = lock;
    engine_publish(s->engine);
}


/* Workers may allocate memory once the lock service watches each of them. */
static void
standby_on_registered(void *data, int workers)
{
    standby_t  *s;

    s = data;

    if (s->body != NULL && workers == s->body->count && !s->is_filling) {
        s->is_filling = 1;
        standby_fill(s);
    }
}


/* --- Active */

static void
standby_on_ready(standby_t *s)
{
    char  error[256];

    if (grpc_server_listen(s->server, error) != 0) {
        log_write(s->log, LOG_ERROR, "%s", error);
        standby_fail(s);
        return;
    }

    if (watchdog_woken(s->watchdog) != 0) {
        return;         /* too late: the watchdog ends the process */
    }

    s->state = LLMGW_GROUP_ACTIVE;
    standby_tell(s, LLMGW_GROUP_ACTIVE);
    s->on_active(s->data);
}


/* --- the end of its service */

void
standby_seek(standby_t *s)
{
    watchdog_seek(s->watchdog);
}


static void
standby_on_successor(void *data)
{
    standby_t  *s;

    s = data;
    s->on_successor(s->data);
}


/* --- each iteration of the loop */

static void
standby_exchange(standby_t *s)
{
    int                   is_lock_away;
    life_vitals_t         vitals;
    const engine_t       *e;
    llmgw_group_state_t   shown;

    e = s->engine;
    vitals.is_ready = e->facts.state == ENGINE_READY && !e->is_broken;
    vitals.is_draining = engine_is_draining(e);
    vitals.streams = (uint64_t) (e->stats.active - e->full);
    vitals.progress = e->progress;
    shown = watchdog_turned(s->watchdog, &vitals, &is_lock_away);
    standby_tell_lock(s, is_lock_away);

    if (s->state == LLMGW_GROUP_STANDBY && shown <= LLMGW_GROUP_STANDBY) {
        standby_tell(s, shown);
    }
}


static void
standby_on_turn(struct ev_loop *loop, ev_prepare *w, int revents)
{
    standby_t       *s;
    engine_state_t   is;

    s = w->data;
    standby_exchange(s);
    is = s->engine->facts.state;

    if (s->state == LLMGW_GROUP_INIT && s->is_open && is == ENGINE_ASLEEP) {
        s->state = LLMGW_GROUP_STANDBY;
        watchdog_asleep(s->watchdog);

    } else if (s->state == LLMGW_GROUP_WAKING && s->is_woken
               && is == ENGINE_READY)
    {
        standby_on_ready(s);
    }
}


static void
standby_on_pulse(struct ev_loop *loop, ev_timer *w, int revents)
{
    /* nothing to do: the timer only makes the loop iterate */
}


/* --- its own life */

static watchdog_t *
standby_post_watchdog(standby_t *s, char *error)
{
    watchdog_options_t  options = {
        .group = s->options->group,
        .engine = s->id,
        .lock = s->options->lock,
        .probe_listen = s->options->probe_listen,
        .waking_timeout_ms = s->options->waking_timeout_ms
    };

    static const watchdog_callbacks_t  callbacks = {
        .on_granted = standby_on_granted,
        .on_regranted = standby_on_regranted,
        .on_registered = standby_on_registered,
        .on_successor = standby_on_successor
    };

    return watchdog_create(s->loop, s->log, &options, &callbacks, s, error);
}


static void
standby_init_parts(standby_t *s)
{
    /* It runs before the agent's link looks for changes. */
    ev_prepare_init(&s->watch, standby_on_turn);
    ev_set_priority(&s->watch, EV_MAXPRI);
    ev_timer_init(&s->pulse, standby_on_pulse, STANDBY_PULSE_S,
                  STANDBY_PULSE_S);
    s->watch.data = s;
    ev_prepare_start(s->loop, &s->watch);
    ev_timer_start(s->loop, &s->pulse);

    s->startup.loop = s->loop;
    s->startup.log = s->log;
    s->startup.sockets = s->options->wait_for;
    s->startup.on_open = standby_on_gate;
    s->startup.data = s;
    startup_wait_init(&s->startup);
}


int
standby_init(standby_t *s)
{
    char             error[WATCHDOG_ERROR_BYTES];
    engine_facts_t  *f;

    f = &s->engine->facts;
    f->state = ENGINE_STARTING;
    f->group.state = LLMGW_GROUP_INIT;
    s->state = LLMGW_GROUP_INIT;
    snprintf(f->group.name, sizeof(f->group.name), "%s", s->options->group);

    s->watchdog = standby_post_watchdog(s, error);

    if (s->watchdog == NULL) {
        log_write(s->log, LOG_ERROR, "standby: %s", error);
        return -1;
    }

    standby_init_parts(s);

    return 0;
}


void
standby_done(standby_t *s)
{
    startup_wait_done(&s->startup);
    ev_prepare_stop(s->loop, &s->watch);
    ev_timer_stop(s->loop, &s->pulse);

    if (s->body != NULL) {
        s->body->done(s->body->data);
    }

    watchdog_destroy(s->watchdog, !s->engine->is_broken);

    if (s->is_open) {
        s->engine->kind->close(s->engine);
    }
}
