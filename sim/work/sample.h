
/*
 * Random numbers of a workload: lengths of prompts and answers, gaps between
 * arrivals, times to think.  Samples follow BLIS's distributions; the numbers
 * themselves come from our own generator, so a seed gives the same workload
 * here every time, and another one than there.
 *
 * Sources: exponential, Weibull and Pareto by inversion; normal by Marsaglia
 * and Bray's polar method (SIAM Review 6, 1964); gamma by Marsaglia and Tsang
 * (ACM TOMS 26, 2000), below shape 1 with a power of a uniform number.
 */

#ifndef WORK_SAMPLE_H
#define WORK_SAMPLE_H

#include <stddef.h>
#include <stdint.h>

#include "common/rnd.h"
#include "sim/work/arena.h"
#include "sim/work/error.h"
#include "sim/work/yaml.h"


typedef enum {
    WORK_SAMPLE_CONSTANT = 0,
    WORK_SAMPLE_GAUSSIAN,           /* cut to min .. max */
    WORK_SAMPLE_EXPONENTIAL,
    WORK_SAMPLE_LOGNORMAL,          /* of ln x: mean a, deviation b */
    WORK_SAMPLE_PARETO_LOGNORMAL,   /* with chance e Pareto(c, d) instead */
    WORK_SAMPLE_EMPIRICAL
} work_sample_kind_t;

/* Whole numbers, at least 1. */
typedef struct {
    work_sample_kind_t   kind;
    double               a;         /* value, or mean */
    double               b;         /* deviation */
    double               c;         /* Pareto: alpha */
    double               d;         /* and its least value */
    double               e;         /* and its share */
    double               min;       /* 0: none */
    double               max;
    const int64_t       *values;    /* of EMPIRICAL, ascending */
    const double        *shares;    /* up to each value, the last 1 */
    size_t               nvalues;
} work_sample_t;

/* No sample is larger: a prompt's length, or a time to think in us. */
#define WORK_SAMPLE_MAX  (INT64_C(1) << 40)

/* A distribution as a specification says it. */
typedef struct {
    work_yaml_t           at;
    const char           *type;
    work_yaml_numbers_t   params;
    const char           *file;
} work_dist_t;

extern const work_yaml_field_t  work_dist_keys[];

/*
 * Reads a distribution of a specification; 0, or -1 and *error with file and
 * line.
 */
int work_sample_make(work_sample_t *sample, const work_dist_t *dist,
    const char *file, work_arena_t *arena, work_error_t *error);

/*
 * A time to think in us, from an option's value: "lognormal:mu=2,sigma=0.6,
 * min=3s,max=30s" (of ln seconds) or "constant:value=500ms"; without a unit
 * milliseconds.  0, or -1 and *what, the reason.
 */
int work_sample_think(work_sample_t *sample, const char *text,
    const char **what);

int64_t work_sample(const work_sample_t *sample, rnd_t *rnd);

/* 0 <= x < 1, with 53 bits. */
double work_uniform(rnd_t *rnd);
double work_exponential(rnd_t *rnd);        /* mean 1 */
double work_normal(rnd_t *rnd);             /* mean 0, deviation 1 */
double work_gamma(rnd_t *rnd, double shape);  /* mean shape */

#endif /* WORK_SAMPLE_H */
