
#include "sim/live/fit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/json.h"

/*
 * Tokens of one step come at nearly one time.  A window is moved by this part
 * of a step, so that none of them falls on its edge.
 */
#define EDGE  0.4

/* Fewer requests say nothing. */
#define LEAST_REQUESTS  20
#define LEAST_IDLE      10

/* A request that was served, as far as fitting asks. */
typedef struct {
    int64_t   send_us;
    int64_t   first_us;
    int64_t   last_us;
    uint32_t  tokens;
    uint32_t  prompt;               /* tokens to be prefilled */
} served_t;

typedef struct {
    served_t    *served;            /* by time of sending */
    size_t       n;
    int64_t     *firsts;            /* ascending: when prompts were done */
    double      *prompts;           /* prefilled up to each, beginning with 0 */
    int64_t     *decoded;           /* ascending: when tokens came */
    size_t       ndecoded;
    live_row_t  *rows;
} fitter_t;


static int
served_order(const void *a, const void *b)
{
    const served_t  *x, *y;

    x = a;
    y = b;

    return x->send_us < y->send_us ? -1 : x->send_us > y->send_us;
}


static int
first_order(const void *a, const void *b)
{
    const served_t  *x, *y;

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


/* How many of the times are at most that. */
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


/* When the tokens behind the first came, known or evenly spread. */
static void
add_decoded(fitter_t *f, const work_record_t *r, const work_itl_t *itl)
{
    size_t               n;
    double               step;
    uint32_t             i;
    const work_chunk_t  *chunks;

    n = 0;
    chunks = itl != NULL ? work_itl_of(itl, r->request_id, &n) : NULL;
    step = r->output_tokens > 1
           ? (double) (r->last_chunk_us - r->first_chunk_us)
             / (r->output_tokens - 1) : 0;

    for (i = 1; i < r->output_tokens; i++) {
        f->decoded[f->ndecoded++]
            = n == r->output_tokens ? chunks[i].at_us
              : r->first_chunk_us + (int64_t) (step * i);
    }
}


static int
fitter_init(fitter_t *f, const work_trace_t *trace, const work_itl_t *itl)
{
    size_t                i, tokens;
    served_t             *s;
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
    f->decoded = calloc(tokens + 1, sizeof(*f->decoded));

    if (f->served == NULL || f->firsts == NULL || f->prompts == NULL
        || f->rows == NULL || f->decoded == NULL)
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
            add_decoded(f, r, itl);
        }
    }

    qsort(f->decoded, f->ndecoded, sizeof(f->decoded[0]), time_order);
    qsort(f->served, f->n, sizeof(f->served[0]), first_order);

    for (i = 0; i < f->n; i++) {
        f->firsts[i] = f->served[i].first_us;
        f->prompts[i + 1] = f->prompts[i] + f->served[i].prompt;
    }

    qsort(f->served, f->n, sizeof(f->served[0]), served_order);

    return 0;
}


static void
fitter_done(fitter_t *f)
{
    free(f->served);
    free(f->firsts);
    free(f->prompts);
    free(f->rows);
    free(f->decoded);
}


/* The equation of one request. */
static void
make_row(const fitter_t *f, const served_t *s, live_row_t *row)
{
    int64_t  edge, from, to;

    row->y = (double) (s->last_us - s->first_us);
    edge = (int64_t) (EDGE * row->y / (s->tokens - 1));
    from = s->first_us + edge;
    to = s->last_us + edge;

    row->x[0] = s->tokens - 1;
    row->x[1] = f->prompts[count_until(f->firsts, f->n, to)]
                - f->prompts[count_until(f->firsts, f->n, from)];
    row->x[2] = (double) (count_until(f->decoded, f->ndecoded, to)
                          - count_until(f->decoded, f->ndecoded, from));
}


/*
 * Requests that were alone from their sending to their first token: what is
 * beyond their step is waiting.
 */
static void
fit_alpha(fitter_t *f, live_fit_t *fit)
{
    size_t           i;
    int64_t          busy_us;
    served_t        *s;
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

    /* A slope within its error is none; then prompts do not matter. */
    if (live_solve(f->rows, fit->idle, 2, &solution) != 0
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


int
live_fit(const work_trace_t *trace, const work_itl_t *itl, int64_t warm_up,
    live_fit_t *fit, work_error_t *error)
{
    int              rc;
    size_t           i;
    fitter_t         f;
    live_solution_t  solution;

    memset(fit, 0, sizeof(*fit));
    rc = fitter_init(&f, trace, itl) != 0
         ? work_fail(error, trace->data_file, 0, "no memory left") : 0;

    for (i = 0; rc == 0 && i < f.n; i++) {
        if (f.served[i].tokens > 1 && i >= (size_t) warm_up) {
            make_row(&f, &f.served[i], &f.rows[fit->requests++]);
        }
    }

    if (rc == 0 && fit->requests < LEAST_REQUESTS) {
        rc = work_fail(error, trace->data_file, 0, "%zu requests with two "
                       "tokens or more were served; a fit needs %d",
                       fit->requests, LEAST_REQUESTS);
    }

    if (rc == 0 && live_solve(f.rows, fit->requests, 3, &solution) != 0) {
        rc = work_fail(error, trace->data_file, 0, "the batches are too even "
                       "to tell the coefficients apart: vary rate and "
                       "lengths");
    }

    if (rc == 0) {
        memcpy(fit->beta, solution.b, sizeof(fit->beta));
        memcpy(fit->beta_error, solution.error, sizeof(fit->beta_error));
        fit->scale_us = solution.scale;
        fit->r2 = solution.r2;
        fit_alpha(&f, fit);
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

    fprintf(out, "--latency-model linear --beta-coeffs %.6g,%.6g,%.6g",
            fit->beta[0], fit->beta[1], fit->beta[2]);

    if (fit->idle > 0) {
        fprintf(out, " --alpha-coeffs %.6g,%.6g,0", fit->alpha[0],
                fit->alpha[1]);
    }

    fputc('\n', out);

    for (i = 0; i < 3; i++) {
        if (!(fit->beta_error[i] < 0.05 * fabs(fit->beta[i]))) {
            fprintf(out, "b%zu is uncertain: %.6g +- %.2g; observe more "
                    "requests, at rates that vary\n", i, fit->beta[i],
                    fit->beta_error[i]);
        }
    }
}
