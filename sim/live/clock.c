
/* Steps of the engine that was observed, by intervals between known tokens. */

#include "sim/live/clock.h"

#include <stdlib.h>


static int
tick_order(const void *a, const void *b)
{
    const live_tick_t  *x, *y;

    x = a;
    y = b;

    if (x->at_us != y->at_us) {
        return x->at_us < y->at_us ? -1 : 1;
    }

    return x->more - y->more;
}


int
live_clock_init(live_clock_t *clock, const live_served_t *served, size_t n)
{
    size_t        i;
    live_tick_t  *t;

    clock->n = 2 * n;
    clock->ticks = calloc(clock->n + 1, sizeof(*clock->ticks));

    if (clock->ticks == NULL) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        t = &clock->ticks[2 * i];
        t[0].at_us = served[i].first_us;
        t[0].prompt = served[i].prompt;
        t[0].more = 1;
        t[1].at_us = served[i].last_us;
        t[1].more = -1;
    }

    qsort(clock->ticks, clock->n, sizeof(clock->ticks[0]), tick_order);

    return 0;
}


void
live_clock_done(live_clock_t *clock)
{
    free(clock->ticks);
}


/*
 * The time that a prompt took is subtracted from the interval that ends with
 * its first token.  It may be longer than the interval, since the first tokens
 * of one step come one after another; the rest is then subtracted from the
 * intervals before.
 */
void
live_clock_set(live_clock_t *clock, const double beta[3])
{
    size_t        i;
    double        length, owed, left, least;
    int64_t       decoding;
    live_tick_t  *t;

    t = clock->ticks;
    owed = 0;
    least = beta[0] > 1 ? beta[0] : 1;

    /* From the last to the first: how much of an interval was prefill. */
    for (i = clock->n; i > 1; i--) {
        owed += beta[1] * t[i - 1].prompt;
        left = (double) (t[i - 1].at_us - t[i - 2].at_us);
        length = owed < left ? owed : left;
        owed -= length;
        t[i - 1].steps = left - length;
    }

    decoding = 0;

    for (i = 0; i < clock->n; i++) {
        length = least + (beta[2] > 0 ? beta[2] * (double) decoding : 0);
        t[i].steps = i == 0 ? 0 : t[i - 1].steps + t[i].steps / length;
        decoding += t[i].more;
    }
}


/* The last tick at or before a time, or, if by_steps, a number of steps. */
static size_t
tick_before(const live_clock_t *clock, int64_t at_us, double steps,
    int by_steps)
{
    int     is_before;
    size_t  low, high, middle;

    low = 0;
    high = clock->n - 1;

    while (low < high) {
        middle = low + (high - low + 1) / 2;
        is_before = by_steps ? clock->ticks[middle].steps <= steps
                             : clock->ticks[middle].at_us <= at_us;

        if (is_before) {
            low = middle;

        } else {
            high = middle - 1;
        }
    }

    return low;
}


double
live_clock_steps(const live_clock_t *clock, int64_t at_us)
{
    size_t              i;
    double              part;
    const live_tick_t  *t;

    i = tick_before(clock, at_us, 0, 0);
    t = &clock->ticks[i];

    if (i + 1 == clock->n || t[1].at_us == t[0].at_us) {
        return t[0].steps;
    }

    part = (double) (at_us - t[0].at_us) / (double) (t[1].at_us - t[0].at_us);

    return t[0].steps + part * (t[1].steps - t[0].steps);
}


int64_t
live_clock_time(const live_clock_t *clock, double steps)
{
    size_t              i;
    double              part;
    const live_tick_t  *t;

    i = tick_before(clock, 0, steps, 1);
    t = &clock->ticks[i];

    if (i + 1 == clock->n || !(t[1].steps > t[0].steps)) {
        return t[0].at_us;
    }

    part = (steps - t[0].steps) / (t[1].steps - t[0].steps);

    return t[0].at_us + (int64_t) (part * (double) (t[1].at_us - t[0].at_us));
}
