
/*
 * The linear latency model of the engine that was observed.
 *
 *     step    = b0 + b1 x prefilled tokens + b2 x decoded tokens
 *     waiting = a0 + a1 x prompt's tokens, before the first step
 *
 * A request with n tokens waits n - 1 steps between its first and its last.  In
 * that time the engine prefilled the prompts whose first tokens came in it, and
 * decoded all other tokens that came in it, of all requests.  Each request
 * gives one equation
 *
 *     last - first = b0 (n - 1) + b1 prefilled + b2 decoded
 *
 * in which the clock's jitter occurs once, however many steps there were.  a0
 * and a1 come from requests that found the engine idle: they include the
 * network's round trip, and the other costs of each token.
 *
 * All requests must have been served by one replica, and their load must have
 * varied: if all batches have one size, b0 and b2 cannot be told apart.
 * Prefixes of groups are taken as cached.
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
    size_t   requests;              /* equations used */
    size_t   idle;                  /* requests behind alpha; 0: none */
    double   scale_us;              /* scale of the residuals */
    double   r2;
} live_fit_t;

/*
 * Fits the model.  itl, which may be NULL, has the time of each token; without
 * it these times are estimated (clock.h), which is worse the more the load
 * varies.  A coefficient that is below 0 by less than two standard errors is
 * set to 0, and the fit is repeated without it.  This is done for one
 * coefficient at a time: the one with the most standard errors below 0.
 *
 * 0, or -1 and *error: there are too few requests, they are too much alike, or
 * a coefficient is below 0 by more.
 */
int live_fit(const work_trace_t *trace, const work_itl_t *itl,
    int64_t warm_up, live_fit_t *fit, work_error_t *error);

/*
 * The first writes a fit as JSON, the second as options of llmgw-sim that
 * simulate it.
 */
void live_fit_write(const live_fit_t *fit, FILE *out);
void live_fit_say(const live_fit_t *fit, FILE *out);

#endif /* LIVE_FIT_H */
