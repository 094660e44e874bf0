
/*
 * Many runs at once: each in a process of its own, on all cores, so that one
 * that fails takes no other with it.  The results are those that a search needs
 * of a run.
 */

#ifndef SIM_EVALUATE_H
#define SIM_EVALUATE_H

#include "sim/report/fitness.h"
#include "sim/variant.h"


typedef struct {
    int       failed;
    char      error[256];
    int64_t   completed;
    double    attained[REPORT_MAX_TARGETS];     /* share, by target */
    double    goodput;                          /* of all of them */
    double    fitness;
    double    ttft_p99_ms;
    double    e2e_p99_ms;
} evaluation_t;

typedef struct {
    variant_source_t        *source;
    const report_fitness_t  *fitness;           /* n is 0: not wanted */
    int                      jobs;              /* at one time */

    /* Called when a run is done; may be NULL. */
    void                   (*done)(void *data);
    void                    *data;
} evaluate_t;


/*
 * Runs settings[0..n-1]; evaluations[i] is of settings[i], whatever the order
 * in which they end.  0, or -1 with errno: no process could be created.
 */
int evaluate(const evaluate_t *e, const sim_settings_t *settings, size_t n,
    evaluation_t *evaluations);

/* Cores that this process may use. */
int evaluate_cores(void);

#endif /* SIM_EVALUATE_H */
