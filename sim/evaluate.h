
/*
 * Many runs at once: each in a process of its own, on all cores, so that a run
 * that fails does not stop the others.  A result has what a search needs.
 */

#ifndef SIM_EVALUATE_H
#define SIM_EVALUATE_H

#include "sim/report/fitness.h"
#include "sim/variant.h"


typedef struct {
    int       failed;
    char      error[256];
    int64_t   completed;
    double    attained[REPORT_MAX_TARGETS];     /* of requests, by target */
    double    goodput;                          /* over all targets */
    double    fitness;
    double    ttft_p99_ms;
    double    e2e_p99_ms;
} evaluation_t;

typedef struct {
    variant_source_t        *source;
    const report_fitness_t  *fitness;           /* not computed if n is 0 */
    int                      jobs;              /* runs at one time */

    /* Called after each run; may be NULL. */
    void                   (*done)(void *data);
    void                    *data;
} evaluate_t;


/*
 * Runs settings[0..n-1]; evaluations[i] is the result of settings[i], in
 * whatever order the runs end.  0, or -1 with errno if no process could be
 * created.
 */
int evaluate(const evaluate_t *e, const sim_settings_t *settings, size_t n,
    evaluation_t *evaluations);

/* Cores that this process may use. */
int evaluate_cores(void);

#endif /* SIM_EVALUATE_H */
