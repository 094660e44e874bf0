
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
 * Streams that start at equal intervals remain in phase while they run: with a
 * gateway that distributes them round robin, all streams of a replica, or of a
 * connection, then send their tokens at the same moments.  With --poisson the
 * time from one start to the next is drawn from the exponential distribution of
 * the same mean, and slots are taken in random order.
 */

#include <math.h>

#include "client/bench_inner.h"


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


/*
 * When the next start is due.  bench_start_pass() advances to the start after
 * it.
 */
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
        uniform = ((double) (rnd_next(&arrival->random) >> 11) + 1)
                  * 0x1p-53;
        arrival->poisson_ns -= log(uniform) * bench_start_step_ns(bench);
    }
}


uint64_t
bench_start_next(void *data)
{
    uint64_t                k;
    const bench_t          *bench;
    const bench_options_t  *o;

    bench = data;
    o = &bench->options;
    k = bench->arrival.k;

    if (bench_start_is_done(bench)) {
        return PACE_NEVER;
    }

    if (o->rate > 0) {
        return bench_start_at(bench, &bench->arrival);
    }

    if (o->is_lockstep) {
        return k % bench->nslots == 0 && bench->nrunning > 0
               ? PACE_NEVER : 0;
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


/*
 * An idle slot whose connection can take a stream; slots of other connections
 * are parked.
 */
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


int
bench_start(void *data, uint64_t due_ns)
{
    bench_t       *bench;
    bench_slot_t  *slot;

    bench = data;
    slot = bench_start_slot(bench);

    if (slot == NULL) {
        return -1;
    }

    bench_start_pass(bench, &bench->arrival);

    if (bench_stream_start(slot, due_ns) != 0) {
        bench_run_abort(bench, "out of memory");
        return -1;
    }

    return 0;
}
