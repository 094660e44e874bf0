
/*
 * Least squares with few unknowns that outliers do not sway.
 *
 * Iteratively reweighted least squares with Huber's weights (Huber, Robust
 * Statistics, 1981; k = 1.345, the scale from the median absolute residual):
 * a stalled step or a lost packet counts little, and without any the result is
 * that of least squares.
 */

#ifndef LIVE_SOLVE_H
#define LIVE_SOLVE_H

#include <stddef.h>


#define LIVE_UNKNOWNS  3

typedef struct {
    double  x[LIVE_UNKNOWNS];
    double  y;
} live_row_t;

typedef struct {
    double  b[LIVE_UNKNOWNS];           /* y = sum of b x */
    double  error[LIVE_UNKNOWNS];       /* standard errors */
    double  scale;                      /* of the residuals */
    double  r2;
} live_solution_t;

/*
 * Solves for the x[i] of each row whose bit 1 << i is in unknowns; b and error
 * of the others are 0.  0, or -1: no memory, too few rows, or rows that do not
 * determine the unknowns.
 */
int live_solve(const live_row_t *rows, size_t n, unsigned unknowns,
    live_solution_t *solution);

#endif /* LIVE_SOLVE_H */
