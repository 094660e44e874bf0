
/*
 * The goodput half of a comparison: by class, how many requests kept their
 * targets in reality and in the simulation.
 */

#ifndef LIVE_GOODPUT_H
#define LIVE_GOODPUT_H

#include "sim/live/compare.h"
#include "sim/report/figure/json.h"


/* Writes the member "goodput"; nothing without targets. */
void live_goodput(report_json_t *j, const live_compare_t *options,
    const work_trace_t *trace, const live_sims_t *sims,
    const work_itl_t *itl);

#endif /* LIVE_GOODPUT_H */
