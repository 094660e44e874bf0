
/*
 * When each stream starts.
 *
 *   closed loop   each slot once, spread evenly over the ramp; then again as
 *                 soon as its stream has ended
 *   lockstep      all slots at once, and again when the last has ended
 *   open loop     the k-th start is due at k / rate, whatever became of those
 *                 before it.  Where no slot is free it waits, and its times
 *                 still count from when it was due.  So a gateway cannot hide
 *                 a stall by delaying the requests that would have shown it
 *                 (coordinated omission)
 *
 * Starts at even steps stay in step for as long as streams run.  A gateway
 * that distributes them round robin then has all streams of a replica, or of
 * a connection, in phase.  With --poisson the time from one start to the next
 * is drawn from the exponential distribution of the same mean, and slots are
 * taken in random order.
 *
 * A timerfd waits for the next start: the loop's own timers have epoll's
 * resolution, a millisecond, which is coarser than what is measured.
 */

#include <errno.h>
#include <math.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "client/bench_inner.h"


#define BENCH_START_NEVER  UINT64_MAX


/* The mean time from one start to the next. */
static double
bench_start_step_ns(const bench_t *bench)
{
    const bench_options_t  *o;

    o = &bench->options;

    return o->rate > 0
           ? (double) BENCH_NS_S / o->rate
           : (double) (o->ramp_ms * BENCH_NS_MS) / (double) bench->nslots;
}


/* When the next start is due; bench_start_pass() advances to the one after. */
static uint64_t
bench_start_at(const bench_t *bench, const bench_arrival_t *arrival)
{
    return bench->schedule_ns
           + (uint64_t) (bench->options.is_poisson
                         ? arrival->poisson_ns
                         : (double) arrival->k * bench_start_step_ns(bench));
}


static void
bench_start_pass(const bench_t *bench, bench_arrival_t *arrival)
{
    double  uniform;

    arrival->k++;

    if (bench->options.is_poisson) {
        uniform = ((double) (bench_random(&arrival->random) >> 11) + 1)
                  * 0x1p-53;
        arrival->poisson_ns -= log(uniform) * bench_start_step_ns(bench);
    }
}


/* When the next start is due. */
static uint64_t
bench_start_next_ns(const bench_t *bench)
{
    uint64_t                k;
    const bench_options_t  *o;

    o = &bench->options;
    k = bench->arrival.k;

    if (bench_start_is_done(bench)) {
        return BENCH_START_NEVER;
    }

    if (o->rate > 0) {
        return bench_start_at(bench, &bench->arrival);
    }

    if (o->is_lockstep) {
        return k % bench->nslots == 0 && bench->nrunning > 0
               ? BENCH_START_NEVER : 0;
    }

    if (k >= bench->nslots) {
        return 0;
    }

    return bench_start_at(bench, &bench->arrival);
}


int
bench_start_is_done(const bench_t *bench)
{
    const bench_options_t  *o;

    o = &bench->options;

    if (bench->phase >= BENCH_DRAINING) {
        return 1;
    }

    if (o->is_held && bench->nstarted >= bench->nslots) {
        return 1;
    }

    return o->requests > 0 && bench->nstarted >= (uint64_t) o->requests;
}


uint64_t
bench_start_waiting(const bench_t *bench, uint64_t now_ns)
{
    uint64_t         n;
    bench_arrival_t  arrival;

    if (bench->options.rate <= 0) {
        return 0;
    }

    arrival = bench->arrival;
    n = 0;

    while (bench_start_at(bench, &arrival) <= now_ns
           && (bench->options.requests == 0
               || arrival.k < (uint64_t) bench->options.requests))
    {
        bench_start_pass(bench, &arrival);
        n++;
    }

    return n;
}


/* A slot whose connection can take a stream; others are parked there. */
static bench_slot_t *
bench_start_slot(bench_t *bench)
{
    bench_slot_t  *slot;

    while ((slot = bench_idle_pop(&bench->idle)) != NULL) {

        if (bench->protocol->can_call(slot->conn)) {
            return slot;
        }

        bench_conn_park(slot);
    }

    return NULL;
}


static void
bench_start_arm(bench_t *bench, uint64_t at_ns)
{
    struct itimerspec  when;

    memset(&when, 0, sizeof(when));
    when.it_value.tv_sec = (time_t) (at_ns / BENCH_NS_S);
    when.it_value.tv_nsec = (long) (at_ns % BENCH_NS_S);

    (void) timerfd_settime(bench->start_fd, TFD_TIMER_ABSTIME, &when, NULL);
}


void
bench_start_due(bench_t *bench)
{
    uint64_t       due_ns, now_ns;
    bench_slot_t  *slot;

    now_ns = bench_now_ns();

    for ( ;; ) {
        due_ns = bench_start_next_ns(bench);

        if (due_ns == BENCH_START_NEVER) {
            return;
        }

        if (due_ns > now_ns) {
            bench_start_arm(bench, due_ns);
            return;
        }

        slot = bench_start_slot(bench);

        if (slot == NULL) {
            return;     /* called again when a stream ends */
        }

        bench_start_pass(bench, &bench->arrival);

        if (bench_stream_start(slot, due_ns > 0 ? due_ns : now_ns) != 0) {
            bench_run_abort(bench, "out of memory");
            return;
        }
    }
}


static void
bench_start_on_timer(struct ev_loop *loop, ev_io *w, int revents)
{
    uint64_t  fired;
    bench_t  *bench;

    bench = w->data;

    if (read(bench->start_fd, &fired, sizeof(fired)) == sizeof(fired)) {
        bench_start_due(bench);
    }
}


int
bench_start_init(bench_t *bench)
{
    bench->start_fd = timerfd_create(CLOCK_MONOTONIC,
                                     TFD_NONBLOCK|TFD_CLOEXEC);

    if (bench->start_fd < 0) {
        return -1;
    }

    ev_io_init(&bench->start_timer, bench_start_on_timer, bench->start_fd,
               EV_READ);
    bench->start_timer.data = bench;
    ev_io_start(bench->loop, &bench->start_timer);

    return 0;
}


void
bench_start_done(bench_t *bench)
{
    if (bench->start_fd >= 0) {
        ev_io_stop(bench->loop, &bench->start_timer);
        close(bench->start_fd);
    }
}
