
/*
 * Compares what was observed with what was simulated, as BLIS's `calibrate`
 * does: the same figures, in the same order of operations, and the same JSON.
 *
 * A request is compared if both sides have its id and it is not one of the
 * warm_up first requests (its id is at least warm_up).  Observed times count
 * from the sending; simulated ones get the network's round trip and the time
 * that tokens of 4 bytes need.  MAPE is a mean over requests of |observed -
 * simulated| / observed, where observed is not 0.
 */

#ifndef LIVE_COMPARE_H
#define LIVE_COMPARE_H

#include <stdio.h>

#include "sim/live/sims.h"
#include "sim/report/figure/goodput.h"
#include "sim/work/trace/itl.h"
#include "sim/work/trace/trace.h"


typedef struct {
    int64_t            warm_up;
    int64_t            rtt_us;
    double             bandwidth_mbps;      /* 0: infinite */
    report_targets_t   targets;             /* for the goodput section */
    double             ttft_threshold;      /* greatest good MAPE of the TTFT */
    double             hit_rate;            /* simulated; negative: not given */
    double             hit_rate_tolerance;  /* in percentage points */
} live_compare_t;

typedef struct {
    double  *real;
    double  *sim;
    size_t   n;
} live_pairs_t;

typedef struct {
    double       mape;
    double       pearson;
    const char  *bias;          /* over-predict, under-predict, neutral, "" */
    const char  *quality;       /* excellent, good, fair, poor */
} live_quality_t;

/* Sums up at least one pair. */
void live_quality(const live_pairs_t *pairs, live_quality_t *quality);

/*
 * Writes the report as JSON.  itl may be NULL.  summary, if not NULL, gets
 * some lines of text.  0, or -1 and *error: no request can be compared.
 */
int live_compare(const live_compare_t *options, const work_trace_t *trace,
    const live_sims_t *sims, const work_itl_t *itl, FILE *out, FILE *summary,
    work_error_t *error);

#endif /* LIVE_COMPARE_H */
