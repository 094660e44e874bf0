
/*
 * Tries numbers of replicas, or weights.
 */

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/rnd.h"
#include "sim/search_inner.h"


#define SEARCH_CUTS    4            /* numbers tried in a round */
#define SEARCH_STEPS   20           /* rounds of doubling and halving */
#define SEARCH_WEIGHT  8            /* random weights are 0 to this */


int
search_keeps(const search_t *s, const evaluation_t *got)
{
    size_t  i;

    for (i = 0; i < s->source.targets.n; i++) {
        if (s->wanted[i] > 0 && !(got->attained[i] >= s->wanted[i])) {
            return 0;
        }
    }

    return 1;
}


static int
search_try(search_t *s, size_t n)
{
    size_t           i;
    evaluation_t    *got;
    sim_settings_t  *settings;

    got = calloc(n, sizeof(*got));
    settings = calloc(n, sizeof(*settings));

    if (got == NULL || settings == NULL) {
        free(got);
        free(settings);
        return search_refuse(s, "%s", "no memory");
    }

    for (i = 0; i < n; i++) {
        settings[i] = s->options->common.settings;

        if (s->nnames > 0) {
            settings[i].routing = "weighted";
            settings[i].scorers = s->tries[s->ntries + i].scorers;

        } else {
            settings[i].replicas = s->tries[s->ntries + i].replicas;
        }
    }

    if (evaluate(&s->evaluate, settings, n, got) != 0) {
        search_refuse(s, "cannot start a simulation: %s", strerror(errno));
    }

    for (i = 0; i < n; i++) {
        s->tries[s->ntries + i].got = got[i];

        if (got[i].failed && s->error[0] == '\0') {
            search_refuse(s, "%s", got[i].error);
        }
    }

    s->ntries += n;
    free(got);
    free(settings);

    return s->error[0] == '\0' ? 0 : -1;
}


/* --- the least number of replicas */

/*
 * low does not keep the promise; high does, or is one more than the greatest
 * number.  The numbers cut the range between them into parts whose sizes differ
 * by one at most.
 */
static int
search_round(search_t *s, int64_t *low, int64_t *high)
{
    size_t         i, n, first;
    search_try_t  *t;

    first = s->ntries;
    n = (size_t) (*high - *low - 1);
    n = n < SEARCH_CUTS ? n : SEARCH_CUTS;

    if (first + n > SEARCH_TRIES) {
        return search_refuse(s, "%s", "the range is too wide");
    }

    for (i = 0; i < n; i++) {
        s->tries[first + i].replicas = *low + (*high - *low)
                                       * (int64_t) (i + 1) / (int64_t) (n + 1);
    }

    if (search_try(s, n) != 0) {
        return -1;
    }

    for (i = 0; i < n; i++) {
        t = &s->tries[first + i];

        if (search_keeps(s, &t->got)) {
            s->best = first + i;
            *high = t->replicas;
            return 0;
        }

        *low = t->replicas;
    }

    return 0;
}


static int
search_compare(const void *a, const void *b)
{
    const search_try_t  *x = a, *y = b;

    return (x->replicas > y->replicas) - (x->replicas < y->replicas);
}


/*
 * Sorts tries, so that neighbours can be compared; the round of a try is not
 * shown.
 */
static void
search_sort(search_t *s)
{
    size_t   i;
    int64_t  best;

    best = s->best == SIZE_MAX ? -1 : s->tries[s->best].replicas;
    qsort(s->tries, s->ntries, sizeof(search_try_t), search_compare);

    for (i = 0; i < s->ntries; i++) {
        if (s->tries[i].replicas == best) {
            s->best = i;
        }
    }
}


int
search_replicas(search_t *s)
{
    char     *end;
    double    rounds;
    int64_t   low, high;

    low = strtoll(s->options->replicas, &end, 10);
    high = *end == '-' ? strtoll(end + 1, &end, 10) : -1;

    if (*end != '\0' || low < 1 || high < low || high > FLEET_REPLICAS_MAX) {
        return search_refuse(s, "--replicas: \"%s\" is not MIN-MAX, 1 to"
                                " 65535", s->options->replicas);
    }

    rounds = ceil(log((double) (high - low + 2)) / log(SEARCH_CUTS + 1));
    report_progress_init(&s->progress, "searching",
                         (uint64_t) (rounds * SEARCH_CUTS));
    low--;
    high++;

    while (high - low > 1) {
        if (search_round(s, &low, &high) != 0) {
            return -1;
        }
    }

    search_sort(s);

    return 0;
}


/* --- the best weights */

static double
search_score(const search_t *s, const evaluation_t *got)
{
    return s->fitness.n > 0 ? got->fitness : got->goodput;
}


/*
 * Whether a try is better: by its score, then by its speed, then by being
 * earlier.
 */
static int
search_is_better(const search_t *s, size_t i)
{
    double               x, y;
    const search_try_t  *a, *b;

    if (s->best == SIZE_MAX) {
        return 1;
    }

    a = &s->tries[i];
    b = &s->tries[s->best];
    x = search_score(s, &a->got);
    y = search_score(s, &b->got);

    return x != y ? x > y : a->got.e2e_p99_ms < b->got.e2e_p99_ms;
}


/*
 * Adds weights to those to be tried, unless they are there already; returns how
 * many there are.
 */
static size_t
search_add(search_t *s, size_t n, const double *weights)
{
    char          *p;
    size_t         i;
    search_try_t  *t;

    if (s->ntries + n == SEARCH_TRIES) {
        return n;
    }

    t = &s->tries[s->ntries + n];
    memcpy(t->weights, weights, sizeof(t->weights));
    t->replicas = s->options->common.settings.replicas;
    p = t->scorers;
    *p = '\0';

    for (i = 0; i < s->nnames; i++) {
        if (weights[i] > 0) {
            p += sprintf(p, "%s%s:%g", p == t->scorers ? "" : ",",
                         s->names[i], weights[i]);
        }
    }

    for (i = 0; i < s->ntries + n; i++) {
        if (strcmp(s->tries[i].scorers, t->scorers) == 0) {
            return n;
        }
    }

    return n + (t->scorers[0] != '\0');
}


/* Returns 1 if the best try has changed, else 0; -1: an error. */
static int
search_judge(search_t *s, size_t n)
{
    int     better;
    size_t  i, first;

    first = s->ntries;
    better = 0;

    if (n > 0 && search_try(s, n) != 0) {
        return -1;
    }

    for (i = first; i < first + n; i++) {
        if (search_is_better(s, i)) {
            s->best = i;
            better = 1;
        }
    }

    return better;
}


/* Adds equal weights, each weight alone, and random ones. */
static int
search_random(search_t *s)
{
    rnd_t   rnd;
    size_t  i, k, n;
    double  weights[LLMGW_WEIGHTS_MAX];

    rnd.state = (uint64_t) sim_seed(&s->options->common.settings);

    for (i = 0; i < LLMGW_WEIGHTS_MAX; i++) {
        weights[i] = i < s->nnames;
    }

    n = search_add(s, 0, weights);

    for (i = 0; s->nnames > 1 && i < s->nnames; i++) {
        memset(weights, 0, sizeof(weights));
        weights[i] = 1;
        n = search_add(s, n, weights);
    }

    for (k = 0; k < (size_t) s->options->tries; k++) {
        memset(weights, 0, sizeof(weights));

        for (i = 0; i < s->nnames; i++) {
            weights[i] = (double) rnd_below(&rnd, SEARCH_WEIGHT + 1);
        }

        n = search_add(s, n, weights);
    }

    return search_judge(s, n);
}


static int
search_neighbours(search_t *s)
{
    size_t         i, n;
    double         weights[LLMGW_WEIGHTS_MAX], was;
    search_try_t  *from;

    from = &s->tries[s->best];
    memcpy(weights, from->weights, sizeof(weights));
    n = 0;

    for (i = 0; i < s->nnames; i++) {
        was = weights[i];
        weights[i] = was > 0 ? 2 * was : 1;
        n = search_add(s, n, weights);
        weights[i] = was / 2;
        n = search_add(s, n, weights);
        weights[i] = was;
    }

    return search_judge(s, n);
}


int
search_weights(search_t *s)
{
    int     rc;
    size_t  step;

    report_progress_init(&s->progress, "searching",
                         (uint64_t) s->options->tries + 4 * s->nnames);
    rc = search_random(s);

    for (step = 0; rc > 0 && step < SEARCH_STEPS; step++) {
        rc = search_neighbours(s);
    }

    return rc < 0 ? -1 : 0;
}
