
/*
 * How a replica stops.
 *
 *            SIGTERM               no stream runs, drain timeout,
 *                                  second signal, successor
 *   SERVING ---------> DRAINING ----------------------> FLUSHING
 *                                                          |
 *                     goodbye to the agent, end  <---------'
 *                     of the loop                 no connection is left,
 *                          ^                      or RETIRE_FLUSH_MS
 *                          | engine ended            |
 *                      STOPPING <--------------------'
 *                                 it was started here
 *
 * An engine that was started here is asked to end when no stream is left; a
 * second signal has it killed.
 *
 * An engine that is not the Active one of its group has no streams, and its
 * process ends at the first signal.
 *
 * While the Active one drains, its group serves no new streams.  So it drains
 * only as long as it has no successor: then it ends its streams, which continue
 * there.
 *
 * While draining the replica continues to accept, so that a gateway that does
 * not know yet gets "draining", and not "connection refused", which would count
 * against the replica.  Streams that still run at the end of that time get the
 * same answer as a trailer, and continue elsewhere.
 */

#include "replica/retire.h"
#include "common/os/mono.h"


/* For clients that do not read their last trailers. */
#define RETIRE_FLUSH_MS  1000
#define RETIRE_POLL_S    0.005


void
retire_stopped(retire_t *r)
{
    agent_link_goodbye(r->link);
    log_write(r->log, LOG_INFO, "stopped");
    ev_break(r->loop, EVBREAK_ALL);
}


static void
retire_leave(retire_t *r)
{
    ev_timer_stop(r->loop, &r->timer);

    if (r->stop_engine == NULL) {
        retire_stopped(r);
        return;
    }

    r->state = RETIRE_STOPPING;
    r->stop_engine(r->data, r->is_hurried);
}


static void
retire_flush(retire_t *r)
{
    if (r->engine->stats.active > 0) {
        log_write(r->log, LOG_WARN, "ending %d streams that still run",
                  r->engine->stats.active);
    }

    r->state = RETIRE_FLUSHING;
    run_end_all(r->engine, "replica is stopping", 1);
    grpc_server_goaway(r->server);

    r->flush_until_ms = mono_ms() + RETIRE_FLUSH_MS;

    ev_prepare_stop(r->loop, &r->watch);
    ev_timer_stop(r->loop, &r->timer);
    ev_timer_set(&r->timer, RETIRE_POLL_S, RETIRE_POLL_S);
    ev_timer_start(r->loop, &r->timer);
}


static void
retire_drain(retire_t *r)
{
    r->state = RETIRE_DRAINING;
    r->engine->is_stopping = 1;

    log_write(r->log, LOG_INFO, "stopping, %d streams run",
              r->engine->stats.active);

    ev_timer_set(&r->timer, (double) r->drain_timeout_ms / 1000, 0);
    ev_timer_start(r->loop, &r->timer);
    ev_prepare_start(r->loop, &r->watch);

    if (r->on_drain != NULL) {
        r->on_drain(r->data);
    }
}


void
retire_hand_over(retire_t *r)
{
    if (r->state == RETIRE_DRAINING) {
        log_write(r->log, LOG_INFO, "handing over to a standby");
        retire_flush(r);
    }
}


static void
retire_on_signal(struct ev_loop *loop, ev_signal *w, int revents)
{
    retire_t  *r;

    r = w->data;

    if (r->state == RETIRE_SERVING && !engine_is_active(r->engine)) {
        r->state = RETIRE_FLUSHING;
        retire_leave(r);

    } else if (r->state == RETIRE_SERVING) {
        retire_drain(r);

    } else if (r->state == RETIRE_DRAINING) {
        r->is_hurried = 1;
        retire_flush(r);

    } else if (r->state == RETIRE_FLUSHING) {
        r->is_hurried = 1;

    } else if (r->stop_engine != NULL) {
        r->stop_engine(r->data, 1);
    }
}


static void
retire_on_timer(struct ev_loop *loop, ev_timer *w, int revents)
{
    retire_t  *r;

    r = w->data;

    if (r->state == RETIRE_DRAINING) {
        retire_flush(r);
        return;
    }

    if (grpc_server_conns(r->server) == 0 || mono_ms() >= r->flush_until_ms) {
        retire_leave(r);
    }
}


/* Called before each sleep of the loop: notices when the last stream has
   ended. */
static void
retire_on_turn(struct ev_loop *loop, ev_prepare *w, int revents)
{
    retire_t  *r;

    r = w->data;

    if (r->engine->stats.active == 0) {
        retire_flush(r);
    }
}


void
retire_init(retire_t *r)
{
    r->state = RETIRE_SERVING;

    ev_signal_init(&r->sigterm, retire_on_signal, SIGTERM);
    ev_signal_init(&r->sigint, retire_on_signal, SIGINT);
    ev_prepare_init(&r->watch, retire_on_turn);
    ev_init(&r->timer, retire_on_timer);
    r->sigterm.data = r;
    r->sigint.data = r;
    r->watch.data = r;
    r->timer.data = r;

    ev_signal_start(r->loop, &r->sigterm);
    ev_signal_start(r->loop, &r->sigint);
}
