
/*
 * The linear latency model of the engine that was observed.
 *
 *     step    = b0 + b1 x prefilled tokens + b2 x decoded tokens
 *     waiting = a0 + a1 x prompt's tokens, before the first step
 *
 * A request with n tokens waits n - 1 steps between its first and its last.
 * In that time the engine prefilled the prompts whose first tokens came in it,
 * and decoded all other tokens that came in it, of all requests.  So each
 * request gives one equation
 *
 *     last - first = b0 (n - 1) + b1 prefilled + b2 decoded
 *
 * in which the jitter of the clock stands once, however many steps there were.
 * a0 and a1 come from requests that found the engine idle: they include the
 * network's round trip, and what each token costs besides.
 *
 * All requests must have been served by one replica, and their load must have
 * varied: batches of one size do not tell b0 from b2.  Prefixes of groups are
 * taken as cached.
 */

#ifndef LIVE_FIT_H
#define LIVE_FIT_H

#include <stdio.h>

#include "sim/live/solve.h"
#include "sim/work/trace/itl.h"
#include "sim/work/trace/trace.h"


typedef struct {
    double   beta[3];               /* us; us a token */
    double   beta_error[3];         /* standard errors */
    double   alpha[2];
    size_t   requests;              /* equations */
    size_t   idle;                  /* requests that gave alpha; 0: none */
    double   scale_us;              /* of what is left unexplained */
    double   r2;
} live_fit_t;

/*
 * itl, which may be NULL, says when each token came; without it that is guessed
 * (clock.h), which is worse the more the load varies.  0, or -1 and *error: too
 * few requests, too even ones, or a coefficient below 0.
 */
int live_fit(const work_trace_t *trace, const work_itl_t *itl,
    int64_t warm_up, live_fit_t *fit, work_error_t *error);

/* As JSON, and as the options that simulate it. */
void live_fit_write(const live_fit_t *fit, FILE *out);
void live_fit_say(const live_fit_t *fit, FILE *out);

#endif /* LIVE_FIT_H */
