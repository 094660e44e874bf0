
/*
 * Estimates how many steps an engine had made by a given time, from the first
 * and last tokens of its requests and a guess of its coefficients.
 *
 * Between two such tokens the number of decoding requests is constant, and so
 * is the length of a step, but for those that prefilled the prompts whose first
 * tokens end the interval.
 */

#ifndef LIVE_CLOCK_H
#define LIVE_CLOCK_H

#include <stddef.h>
#include <stdint.h>


/* What fitting needs of a request that was served. */
typedef struct {
    int64_t   send_us;
    int64_t   first_us;
    int64_t   last_us;
    size_t    decoded;              /* index of its second token's time */
    uint32_t  tokens;
    uint32_t  prompt;               /* tokens to be prefilled */
    int       is_known;             /* its tokens' times are known */
} live_served_t;

typedef struct {
    int64_t   at_us;
    double    steps;                /* steps made by then */
    uint32_t  prompt;               /* prompt whose first token comes here */
    int       more;                 /* change of decoding requests: 1 or -1 */
} live_tick_t;

typedef struct {
    live_tick_t  *ticks;            /* ascending; owned */
    size_t        n;
} live_clock_t;

/* 0, or -1: no memory. */
int live_clock_init(live_clock_t *clock, const live_served_t *served,
    size_t n);
void live_clock_done(live_clock_t *clock);

/* Recomputes the steps with these coefficients. */
void live_clock_set(live_clock_t *clock, const double beta[3]);

double live_clock_steps(const live_clock_t *clock, int64_t at_us);

/* The time at which that many steps had been made. */
int64_t live_clock_time(const live_clock_t *clock, double steps);

#endif /* LIVE_CLOCK_H */
