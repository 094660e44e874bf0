
/* Weighted normal equations, solved again until the weights settle. */

#include "sim/live/solve.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/figure/stat.h"

#define ROUNDS   50
#define HUBER_K  1.345

/* A pivot below this, relative to its diagonal, is only rounding. */
#define LEAST_PIVOT  1e-9

typedef struct {
    double  a[LIVE_UNKNOWNS][2 * LIVE_UNKNOWNS];    /* normal | inverse */
    double  y[LIVE_UNKNOWNS];
} normal_t;


/* For an x that is no unknown, the equation is b = 0. */
static void
normal_sum(normal_t *m, const live_row_t *rows, const double *weights,
    size_t n, unsigned unknowns)
{
    size_t  r, i, j;

    memset(m, 0, sizeof(*m));

    for (i = 0; i < LIVE_UNKNOWNS; i++) {
        m->a[i][LIVE_UNKNOWNS + i] = 1;

        if (!(unknowns & 1U << i)) {
            m->a[i][i] = 1;
            continue;
        }

        for (r = 0; r < n; r++) {
            for (j = 0; j < LIVE_UNKNOWNS; j++) {
                if (unknowns & 1U << j) {
                    m->a[i][j] += weights[r] * rows[r].x[i] * rows[r].x[j];
                }
            }

            m->y[i] += weights[r] * rows[r].x[i] * rows[r].y;
        }
    }
}


/* Gauss and Jordan; the matrix is positive definite, so pivots stay put. */
static int
normal_invert(normal_t *m)
{
    size_t  i, j, r;
    double  pivot, factor, diagonal[LIVE_UNKNOWNS];

    for (i = 0; i < LIVE_UNKNOWNS; i++) {
        diagonal[i] = m->a[i][i];
    }

    for (i = 0; i < LIVE_UNKNOWNS; i++) {
        pivot = m->a[i][i];

        if (!(pivot > LEAST_PIVOT * diagonal[i])) {
            return -1;
        }

        for (j = 0; j < 2 * LIVE_UNKNOWNS; j++) {
            m->a[i][j] /= pivot;
        }

        for (r = 0; r < LIVE_UNKNOWNS; r++) {
            factor = m->a[r][i];

            for (j = 0; r != i && j < 2 * LIVE_UNKNOWNS; j++) {
                m->a[r][j] -= factor * m->a[i][j];
            }
        }
    }

    return 0;
}


static double
residual(const live_row_t *row, const double *b)
{
    size_t  i;
    double  y;

    y = row->y;

    for (i = 0; i < LIVE_UNKNOWNS; i++) {
        y -= row->x[i] * b[i];
    }

    return y;
}


/*
 * Computes the weights of the next round from the residuals; returns the
 * residuals' scale.
 */
static double
reweigh(const live_row_t *rows, size_t n, const double *b, double *weights,
    double *sorted)
{
    size_t  i;
    double  scale, size;

    for (i = 0; i < n; i++) {
        sorted[i] = fabs(residual(&rows[i], b));
    }

    report_sort(sorted, n);
    scale = report_percentile(sorted, n, 50) / 0.6745;

    for (i = 0; i < n; i++) {
        size = fabs(residual(&rows[i], b));
        weights[i] = size <= HUBER_K * scale ? 1 : HUBER_K * scale / size;
    }

    return scale;
}


/*
 * Computes standard errors from the weighted residuals, and the explained share
 * of the variance.
 */
static void
judge(const live_row_t *rows, const double *weights, size_t n,
    unsigned unknowns, const normal_t *m, live_solution_t *s)
{
    size_t  i, k;
    double  sum, total, mean, all, r;

    sum = total = mean = all = 0;

    for (i = 0; i < n; i++) {
        r = residual(&rows[i], s->b);
        sum += weights[i] * r * r;
        mean += weights[i] * rows[i].y;
        all += weights[i];
    }

    mean /= all;

    for (i = 0; i < n; i++) {
        total += weights[i] * (rows[i].y - mean) * (rows[i].y - mean);
    }

    s->r2 = total > 0 ? 1 - sum / total : 1;

    k = (size_t) __builtin_popcount(unknowns);

    for (i = 0; i < LIVE_UNKNOWNS; i++) {
        s->error[i] = unknowns & 1U << i
                      ? sqrt(fabs(m->a[i][LIVE_UNKNOWNS + i]) * sum
                             / (double) (n - k))
                      : 0;
    }
}


static int
solve(const live_row_t *rows, size_t n, unsigned unknowns, double *weights,
    double *sorted, live_solution_t *s)
{
    int       round;
    size_t    i, j;
    normal_t  m;

    for (i = 0; i < n; i++) {
        weights[i] = 1;
    }

    for (round = 0; round < ROUNDS; round++) {
        normal_sum(&m, rows, weights, n, unknowns);

        if (normal_invert(&m) != 0) {
            return -1;
        }

        for (i = 0; i < LIVE_UNKNOWNS; i++) {
            s->b[i] = 0;

            for (j = 0; j < LIVE_UNKNOWNS; j++) {
                s->b[i] += m.a[i][LIVE_UNKNOWNS + j] * m.y[j];
            }
        }

        s->scale = reweigh(rows, n, s->b, weights, sorted);
    }

    judge(rows, weights, n, unknowns, &m, s);

    return 0;
}


int
live_solve(const live_row_t *rows, size_t n, unsigned unknowns,
    live_solution_t *solution)
{
    int      rc;
    double  *weights, *sorted;

    if (n <= 2 * LIVE_UNKNOWNS) {
        return -1;
    }

    memset(solution, 0, sizeof(*solution));
    weights = calloc(n, sizeof(*weights));
    sorted = calloc(n, sizeof(*sorted));
    rc = weights == NULL || sorted == NULL ? -1
         : solve(rows, n, unknowns, weights, sorted, solution);
    free(weights);
    free(sorted);

    return rc;
}
