
/*
 * What a simulation predicted for each request: the JSON that `replay
 * --results-path` writes, and BLIS's, too.
 */

#ifndef LIVE_SIMS_H
#define LIVE_SIMS_H

#include <stddef.h>
#include <stdint.h>

#include "sim/work/error.h"
#include "sim/work/name.h"


typedef struct {
    int64_t             id;
    double              ttft_us;
    double              e2e_us;
    int64_t             input_tokens;
    int64_t             output_tokens;
    const work_name_t  *slo_class;
    const work_name_t  *model;
    double              itl_mean_us;        /* 0: unknown */
} live_sim_t;

typedef struct {
    live_sim_t    *sims;                    /* ascending by id; owned */
    size_t         n;
    work_names_t   names;
} live_sims_t;

/* 0, or -1 and *error; live_sims_done() in both cases. */
int live_sims_read(live_sims_t *sims, const char *path, work_error_t *error);
void live_sims_done(live_sims_t *sims);

/* The last result with that id, or NULL. */
const live_sim_t *live_sims_find(const live_sims_t *sims, int64_t id);

/*
 * Reads "cache_hit_rate" from the JSON that `replay --metrics-path` writes.  1
 * and *rate; 0: it is not there; -1 and *error.
 */
int live_hit_rate_read(const char *path, double *rate, work_error_t *error);

#endif /* LIVE_SIMS_H */
