
/*
 * search from the inside: search.c reads options and prints results,
 * search_try.c runs the simulations.
 */

#ifndef SEARCH_INNER_H
#define SEARCH_INNER_H

#include "sim/evaluate.h"
#include "sim/report/progress.h"


#define SEARCH_TRIES  512           /* in one search */
#define SEARCH_BYTES  512           /* of the text of scorers */

typedef struct {
    variant_common_t   common;
    int                json;
    char              *replicas;
    char              *weights;
    char              *goodput;
    char              *fitness;
    int64_t            tries;
    int64_t            jobs;
} search_options_t;

/* Settings that were tried, and their result. */
typedef struct {
    int64_t            replicas;
    double             weights[LLMGW_WEIGHTS_MAX];
    char               scorers[SEARCH_BYTES];
    evaluation_t       got;
} search_try_t;

typedef struct {
    const search_options_t  *options;
    variant_source_t         source;
    evaluate_t               evaluate;
    report_fitness_t         fitness;
    report_progress_t        progress;
    uint64_t                 done;

    double                   wanted[REPORT_MAX_TARGETS];    /* shares */
    const char              *names[LLMGW_WEIGHTS_MAX];
    size_t                   nnames;

    search_try_t            *tries;
    size_t                   ntries;
    size_t                   best;          /* SIZE_MAX: none yet */
    char                     error[VARIANT_ERROR_BYTES];
} search_t;


/* Sets s->error from a format with one %s, and returns -1. */
int search_refuse(search_t *s, const char *what, const char *text);

/* Whether a result reaches every wanted share. */
int search_keeps(const search_t *s, const evaluation_t *got);

/*
 * Each sets s->best to the best try, or leaves it at SIZE_MAX if none keeps the
 * promise.  0, or -1 and s->error.
 */
int search_replicas(search_t *s);
int search_weights(search_t *s);

#endif /* SEARCH_INNER_H */
