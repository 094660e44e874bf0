
/*
 * Makes one equation of each request, and finds the latency model that fits
 * them best.
 */

#include "sim/live/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/live/clock.h"
#include "sim/report/figure/json.h"

/*
 * Tokens of one step arrive at nearly the same time.  A request's interval is
 * shifted by this part of its mean step, so that no step's tokens are at its
 * edge.  It is less than half, because steps without a prompt are shorter than
 * the mean.
 */
#define EDGE  0.2

/* With fewer requests there is no fit. */
#define LEAST_REQUESTS  20
#define LEAST_IDLE      10

/* Rounds of estimating times; after few, only the third digit changes. */
#define GUESSES         12

/* Below 0 by fewer standard errors, a coefficient may be 0. */
#define LIKELY_ERRORS   2

typedef struct {
    live_served_t  *served;         /* sorted by time of sending */
    size_t          n;
    int64_t        *firsts;         /* ascending: times of first tokens */
    double         *prompts;        /* prompt tokens up to each of firsts[]; the
                                       first item is 0 */
    int64_t        *times;          /* times of later tokens, by request */
    int64_t        *decoded;        /* the same, ascending */
    size_t          ntimes;
    live_row_t     *rows;
    live_clock_t    clock;
    int             guessed;        /* some times are estimated */
} fitter_t;


static int
served_order(const void *a, const void *b)
{
    const live_served_t  *x, *y;

    x = a;
    y = b;

    return x->send_us < y->send_us ? -1 : x->send_us > y->send_us;
}


static int
first_order(const void *a, const void *b)
{
    const live_served_t  *x, *y;

    x = a;
    y = b;

    return x->first_us < y->first_us ? -1 : x->first_us > y->first_us;
}


static int
time_order(const void *a, const void *b)
{
    const int64_t  *x, *y;

    x = a;
    y = b;

    return *x < *y ? -1 : *x > *y;
}


/* How many of the times, which are ascending, are not after at_us. */
static size_t
count_until(const int64_t *times, size_t n, int64_t at_us)
{
    size_t  low, high, middle;

    low = 0;
    high = n;

    while (low < high) {
        middle = low + (high - low) / 2;

        if (times[middle] <= at_us) {
            low = middle + 1;

        } else {
            high = middle;
        }
    }

    return low;
}


static int
is_served(const work_record_t *r)
{
    return strcmp(r->status->text, "ok") == 0 && r->output_tokens > 0
           && r->first_chunk_us >= r->send_us && r->send_us > 0
           && r->last_chunk_us >= r->first_chunk_us;
}


static uint32_t
prefilled(const work_record_t *r)
{
    return r->server_input_tokens > 0 && r->prefix_group->len == 0
           ? r->server_input_tokens : r->input_tokens;
}


/* Sets the times of the tokens after the first, if they are known. */
static void
add_decoded(fitter_t *f, live_served_t *s, const work_record_t *r,
    const work_itl_t *itl)
{
    size_t               n;
    uint32_t             i;
    const work_chunk_t  *chunks;

    n = 0;
    chunks = itl != NULL ? work_itl_of(itl, r->request_id, &n) : NULL;
    s->decoded = f->ntimes;
    s->is_known = n == r->output_tokens;
    f->ntimes += r->output_tokens - 1;
    f->guessed |= !s->is_known;

    for (i = 1; s->is_known && i < r->output_tokens; i++) {
        f->times[s->decoded + i - 1] = chunks[i].at_us;
    }
}


/*
 * Estimates the times of other tokens: each request's are spread evenly over
 * the steps that the engine made from its first token to its last.
 */
static void
guess_decoded(fitter_t *f)
{
    size_t          i;
    double          from, to;
    uint32_t        k;
    live_served_t  *s;

    for (i = 0; i < f->n; i++) {
        s = &f->served[i];

        if (s->is_known || s->tokens < 2) {
            continue;
        }

        from = live_clock_steps(&f->clock, s->first_us);
        to = live_clock_steps(&f->clock, s->last_us);

        for (k = 1; k < s->tokens; k++) {
            f->times[s->decoded + k - 1]
                = live_clock_time(&f->clock, from + (to - from) * k
                                             / (s->tokens - 1));
        }
    }
}


static void
sort_decoded(fitter_t *f)
{
    memcpy(f->decoded, f->times, f->ntimes * sizeof(f->times[0]));
    qsort(f->decoded, f->ntimes, sizeof(f->decoded[0]), time_order);
}


static int
fitter_init(fitter_t *f, const work_trace_t *trace, const work_itl_t *itl)
{
    size_t                i, tokens;
    live_served_t        *s;
    const work_record_t  *r;

    memset(f, 0, sizeof(*f));
    tokens = 0;

    for (i = 0; i < trace->n; i++) {
        tokens += trace->records[i].output_tokens;
    }

    f->served = calloc(trace->n + 1, sizeof(*f->served));
    f->firsts = calloc(trace->n + 1, sizeof(*f->firsts));
    f->prompts = calloc(trace->n + 1, sizeof(*f->prompts));
    f->rows = calloc(trace->n + 1, sizeof(*f->rows));
    f->times = calloc(tokens + 1, sizeof(*f->times));
    f->decoded = calloc(tokens + 1, sizeof(*f->decoded));

    if (f->served == NULL || f->firsts == NULL || f->prompts == NULL
        || f->rows == NULL || f->times == NULL || f->decoded == NULL)
    {
        return -1;
    }

    for (i = 0; i < trace->n; i++) {
        r = &trace->records[i];

        if (is_served(r)) {
            s = &f->served[f->n++];
            s->send_us = r->send_us;
            s->first_us = r->first_chunk_us;
            s->last_us = r->last_chunk_us;
            s->tokens = r->output_tokens;
            s->prompt = prefilled(r);
            add_decoded(f, s, r, itl);
        }
    }

    qsort(f->served, f->n, sizeof(f->served[0]), first_order);

    for (i = 0; i < f->n; i++) {
        f->firsts[i] = f->served[i].first_us;
        f->prompts[i + 1] = f->prompts[i] + f->served[i].prompt;
    }

    qsort(f->served, f->n, sizeof(f->served[0]), served_order);

    return live_clock_init(&f->clock, f->served, f->n);
}


static void
fitter_done(fitter_t *f)
{
    free(f->served);
    free(f->firsts);
    free(f->prompts);
    free(f->rows);
    free(f->times);
    free(f->decoded);
    live_clock_done(&f->clock);
}


/* Makes the equation of one request. */
static void
make_row(const fitter_t *f, const live_served_t *s, live_row_t *row)
{
    int64_t  edge, from, to;

    row->y = (double) (s->last_us - s->first_us);
    edge = (int64_t) (EDGE * row->y / (s->tokens - 1));
    from = s->first_us + edge;
    to = s->last_us + edge;

    row->x[0] = s->tokens - 1;
    row->x[1] = f->prompts[count_until(f->firsts, f->n, to)]
                - f->prompts[count_until(f->firsts, f->n, from)];
    row->x[2] = (double) (count_until(f->decoded, f->ntimes, to)
                          - count_until(f->decoded, f->ntimes, from));
}


/*
 * Fits alpha to requests that were alone from their sending to their first
 * token: their time without the step is the waiting.
 */
static void
fit_alpha(fitter_t *f, live_fit_t *fit)
{
    size_t           i;
    int64_t          busy_us;
    live_served_t   *s;
    live_row_t      *row;
    live_solution_t  solution;

    busy_us = 0;

    for (i = 0; i < f->n; i++) {
        s = &f->served[i];

        if (s->send_us >= busy_us
            && (i + 1 == f->n || f->served[i + 1].send_us >= s->first_us))
        {
            row = &f->rows[fit->idle++];
            row->x[0] = 1;
            row->x[1] = s->prompt;
            row->y = (double) (s->first_us - s->send_us) - fit->beta[0]
                     - fit->beta[1] * s->prompt;
        }

        busy_us = s->last_us > busy_us ? s->last_us : busy_us;
    }

    if (fit->idle < LEAST_IDLE) {
        fit->idle = 0;
        return;
    }

    /* A slope that is not significant is left out: waiting is then constant. */
    if (live_solve(f->rows, fit->idle, 1 | 2, &solution) != 0
        || solution.b[1] < 3 * solution.error[1])
    {
        if (live_solve(f->rows, fit->idle, 1, &solution) != 0) {
            fit->idle = 0;
            return;
        }
    }

    fit->alpha[0] = solution.b[0] > 0 ? solution.b[0] : 0;
    fit->alpha[1] = solution.b[1];
}


/*
 * Makes an equation of each request that has more than one token; returns how
 * many.
 */
static size_t
make_rows(fitter_t *f, int64_t warm_up)
{
    size_t  i, n;

    sort_decoded(f);
    n = 0;

    for (i = 0; i < f->n; i++) {
        if (f->served[i].tokens > 1 && i >= (size_t) warm_up) {
            make_row(f, &f->served[i], &f->rows[n++]);
        }
    }

    return n;
}


/* The coefficient that is below 0 by the most standard errors; LIVE_UNKNOWNS:
   none is. */
static size_t
most_negative(const double *b, const double *error)
{
    size_t  i, most;

    most = LIVE_UNKNOWNS;

    for (i = 0; i < LIVE_UNKNOWNS; i++) {
        if (b[i] < 0 && (most == LIVE_UNKNOWNS
                         || b[i] * error[most] < b[most] * error[i]))
        {
            most = i;
        }
    }

    return most;
}


/*
 * No engine has a cost below 0.  One that least squares finds to be below 0 by
 * no more than its error may cause is set to 0, and the others are computed
 * without it.  All keep the errors that they have without such knowledge.
 */
static int
solve_costs(const fitter_t *f, size_t n, live_solution_t *solution)
{
    size_t    i;
    double    error[LIVE_UNKNOWNS];
    unsigned  unknowns;

    unknowns = (1U << LIVE_UNKNOWNS) - 1;

    if (live_solve(f->rows, n, unknowns, solution) != 0) {
        return -1;
    }

    memcpy(error, solution->error, sizeof(error));

    while ((i = most_negative(solution->b, error)) != LIVE_UNKNOWNS
           && solution->b[i] > -LIKELY_ERRORS * error[i])
    {
        unknowns &= ~(1U << i);

        if (live_solve(f->rows, n, unknowns, solution) != 0) {
            return -1;
        }
    }

    memcpy(solution->error, error, sizeof(error));

    return 0;
}


/*
 * If times of tokens are estimated, a fit improves these estimates, and they
 * improve the next fit.
 */
static int
solve(fitter_t *f, int64_t warm_up, live_fit_t *fit,
    live_solution_t *solution)
{
    int     round, rounds;
    double  even[3] = { 1, 0, 0 };

    rounds = f->guessed ? GUESSES : 1;
    live_clock_set(&f->clock, even);

    for (round = 0; round < rounds; round++) {
        guess_decoded(f);
        fit->requests = make_rows(f, warm_up);

        if (solve_costs(f, fit->requests, solution) != 0) {
            return -1;
        }

        live_clock_set(&f->clock, solution->b);
    }

    return 0;
}


/* Refuses a cost that solve_costs() has left below 0. */
static int
check_beta(const fitter_t *f, const live_fit_t *fit, const char *path,
    work_error_t *error)
{
    size_t  i;
    double  us, steps;

    static const char *const  names[3] = {
        "a step", "a prompt's token", "a decoded token"
    };

    us = steps = 0;

    for (i = 0; i < fit->requests; i++) {
        us += f->rows[i].y;
        steps += f->rows[i].x[0];
    }

    for (i = 0; i < 3; i++) {
        if (fit->beta[i] < 0) {
            return work_fail(error, path, 0, "the fit is of no use: %s would "
                             "take %.3g us (b%zu, +- %.2g). A token came each "
                             "%.3g ms; steps should be longer than 5 ms (a "
                             "larger model, fewer threads), the rate one at "
                             "which batches form and vary, and no prompt in "
                             "the engine's cache", names[i], fit->beta[i], i,
                             fit->beta_error[i], us / steps / 1000);
        }
    }

    return 0;
}


int
live_fit(const work_trace_t *trace, const work_itl_t *itl, int64_t warm_up,
    live_fit_t *fit, work_error_t *error)
{
    int              rc;
    fitter_t         f;
    live_solution_t  solution;

    memset(fit, 0, sizeof(*fit));

    if (fitter_init(&f, trace, itl) != 0) {
        rc = work_fail(error, trace->data_file, 0, "no memory left");

    } else if (make_rows(&f, warm_up) < LEAST_REQUESTS) {
        rc = work_fail(error, trace->data_file, 0, "a fit needs %d requests "
                       "that were served with two tokens or more",
                       LEAST_REQUESTS);

    } else if (solve(&f, warm_up, fit, &solution) != 0) {
        rc = work_fail(error, trace->data_file, 0, "the batches are too even "
                       "to tell the coefficients apart: vary rate and "
                       "lengths");

    } else {
        memcpy(fit->beta, solution.b, sizeof(fit->beta));
        memcpy(fit->beta_error, solution.error, sizeof(fit->beta_error));
        fit->scale_us = solution.scale;
        fit->r2 = solution.r2;
        rc = check_beta(&f, fit, trace->data_file, error);

        if (rc == 0) {
            fit_alpha(&f, fit);
        }
    }

    fitter_done(&f);

    return rc;
}


static void
write_doubles(report_json_t *j, const char *key, const double *values,
    size_t n)
{
    size_t  i;

    report_json_array(j, key);

    for (i = 0; i < n; i++) {
        report_json_double(j, NULL, values[i]);
    }

    report_json_end(j);
}


void
live_fit_write(const live_fit_t *fit, FILE *out)
{
    double         alpha[3];
    report_json_t  j;

    alpha[0] = fit->alpha[0];
    alpha[1] = fit->alpha[1];
    alpha[2] = 0;

    report_json_init(&j, out, 2);
    report_json_object(&j, NULL);
    report_json_string(&j, "latency_model", "linear");
    write_doubles(&j, "beta_coeffs", fit->beta, 3);
    write_doubles(&j, "beta_errors", fit->beta_error, 3);

    if (fit->idle > 0) {
        write_doubles(&j, "alpha_coeffs", alpha, 3);
    }

    report_json_uint(&j, "requests", fit->requests);
    report_json_uint(&j, "idle_requests", fit->idle);
    report_json_double(&j, "residual_us", fit->scale_us);
    report_json_double(&j, "r2", fit->r2);
    report_json_end(&j);
    fputc('\n', out);
}


void
live_fit_say(const live_fit_t *fit, FILE *out)
{
    size_t  i;

    fprintf(out, "--latency-model linear --beta-coeffs %.6g,%.6g,%.6g"
            " --alpha-coeffs %.6g,%.6g,0\n", fit->beta[0], fit->beta[1],
            fit->beta[2], fit->alpha[0], fit->alpha[1]);

    for (i = 0; i < 3; i++) {
        if (!(fit->beta_error[i] < 0.05 * fabs(fit->beta[i]))) {
            fprintf(out, "b%zu is uncertain: %.6g +- %.2g; observe more "
                    "requests, at rates that vary\n", i, fit->beta[i],
                    fit->beta_error[i]);
        }
    }
}
