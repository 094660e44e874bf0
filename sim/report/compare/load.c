
/*
 * Requests at a replica over time: to each column a request adds the share of
 * it that it spent there.
 */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "sim/report/compare/load.h"


/* The time from a request's routing to its end; 0: it was at no replica. */
static int
load_span(const report_run_t *run, size_t i, double *from, double *to)
{
    int64_t                 arrival;
    const fleet_outcome_t  *o;

    o = &run->result->outcomes[i];
    arrival = work_at(run->work, i)->arrival_us;

    if (o->replica == FLEET_NONE || o->replica >= run->result->nreplicas) {
        return 0;
    }

    *from = (double) (o->route_us >= 0 ? o->route_us : arrival);
    *to = report_has_e2e(o) ? (double) (arrival + o->e2e_us)
          : o->end_us >= 0 ? (double) o->end_us
                           : (double) run->result->clock_us;

    return *to > *from;
}


static void
load_add(report_load_t *load, uint32_t replica, double from, double to)
{
    double  width, left, right;
    size_t  col;

    width = load->end_us / REPORT_LOAD_COLS;
    col = (size_t) (from / width);

    for ( ; col < REPORT_LOAD_COLS && (double) col * width < to; col++) {
        left = fmax(from, (double) col * width);
        right = fmin(to, (double) (col + 1) * width);
        load->values[replica / load->replicas * REPORT_LOAD_COLS + col]
            += (right - left) / width;
    }
}


int
report_load_init(report_load_t *load, const report_run_t *run)
{
    size_t    i, row, n;
    double    from, to;
    uint32_t  replicas;

    memset(load, 0, sizeof(*load));
    replicas = run->result->nreplicas;

    load->replicas = (replicas + REPORT_LOAD_ROWS - 1) / REPORT_LOAD_ROWS;
    load->rows = (replicas + load->replicas - 1) / load->replicas;
    load->values = calloc(load->rows * REPORT_LOAD_COLS, sizeof(double));

    if (load->values == NULL) {
        return -1;
    }

    for (i = 0; i < run->result->n; i++) {
        if (load_span(run, i, &from, &to)) {
            load->end_us = fmax(load->end_us, to);
        }
    }

    for (i = 0; i < run->result->n; i++) {
        if (load_span(run, i, &from, &to)) {
            load_add(load, run->result->outcomes[i].replica, from, to);
        }
    }

    for (i = 0; i < load->rows * REPORT_LOAD_COLS; i++) {
        row = i / REPORT_LOAD_COLS;
        n = replicas - row * load->replicas;
        load->values[i] /= (double) (n < load->replicas ? n
                                                        : load->replicas);
    }

    return 0;
}


void
report_load_done(report_load_t *load)
{
    free(load->values);
    memset(load, 0, sizeof(*load));
}
