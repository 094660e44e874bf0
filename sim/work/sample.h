
/*
 * Random numbers of a workload: lengths of prompts and answers, gaps between
 * arrivals, times to think.  Samples follow BLIS's distributions; the numbers
 * themselves come from our own generator, so a seed always gives the same
 * workload here, but not BLIS's.
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
    WORK_SAMPLE_PARETO_LOGNORMAL,   /* or, with probability e, Pareto(c, d) */
    WORK_SAMPLE_EMPIRICAL
} work_sample_kind_t;

/* A distribution of whole numbers, at least 1. */
typedef struct {
    work_sample_kind_t   kind;
    double               a;         /* value or mean */
    double               b;         /* deviation */
    double               c;         /* Pareto: alpha */
    double               d;         /* Pareto: least value */
    double               e;         /* probability of Pareto */
    double               min;       /* 0: none */
    double               max;
    const int64_t       *values;    /* EMPIRICAL: its values, ascending */
    const double        *shares;    /* cumulative; the last is 1 */
    size_t               nvalues;
} work_sample_t;

/* The largest sample: of a prompt's length, or a think time in us. */
#define WORK_SAMPLE_MAX  (INT64_C(1) << 40)

/* A distribution as a specification gives it. */
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
 * Reads a distribution of think times in us from an option's value:
 * "lognormal:mu=2,sigma=0.6,min=3s,max=30s" (of ln seconds) or
 * "constant:value=500ms"; a time without a unit is in ms.  0, or -1 and *what,
 * the reason.
 */
int work_sample_think(work_sample_t *sample, const char *text,
    const char **what);

int64_t work_sample(const work_sample_t *sample, rnd_t *rnd);

/* uniform in 0 <= x < 1, with 53 bits */
double work_uniform(rnd_t *rnd);
double work_exponential(rnd_t *rnd);        /* mean 1 */
double work_normal(rnd_t *rnd);             /* mean 0, deviation 1 */
double work_gamma(rnd_t *rnd, double shape);  /* mean shape */

#endif /* WORK_SAMPLE_H */
