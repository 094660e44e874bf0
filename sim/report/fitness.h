
/*
 * Fitness: one number for a run, from several figures by weight, for searches.
 *
 * Each figure is mapped to 0 .. 1: a time to 1 / (1 + ms), a rate x to x / (x +
 * 100 requests or 10,000 tokens a second).  The sum is not divided by the
 * weights.
 */

#ifndef REPORT_FITNESS_H
#define REPORT_FITNESS_H

#include <stddef.h>

#include "sim/report/summary.h"


#define REPORT_FITNESS_KEYS  8

typedef struct {
    double       weight[REPORT_FITNESS_KEYS];
    int          is_given[REPORT_FITNESS_KEYS];
    size_t       n;                         /* number of weights given */
} report_fitness_t;


/* Keys in ascending order. */
extern const char *const  report_fitness_keys[REPORT_FITNESS_KEYS];

/*
 * Reads weights, "p99_ttft:2,throughput:1".  0, or -1 with what is wrong in
 * error.
 */
int report_fitness_parse(report_fitness_t *fitness, const char *text,
    char *error, size_t size);

/* The figure that a key names, 0 to 1. */
double report_fitness_value(const report_summary_t *s, size_t key);

double report_fitness_score(const report_fitness_t *fitness,
    const report_summary_t *s);

#endif /* REPORT_FITNESS_H */
