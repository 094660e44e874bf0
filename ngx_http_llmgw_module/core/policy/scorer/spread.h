
/*
 * min-max over a number of each candidate, inlined for each scorer: the
 * compiler sees which field is read.
 */

#ifndef LLMGW_SPREAD_H
#define LLMGW_SPREAD_H

#include "core/policy/score.h"


typedef int64_t (*spread_number_pt)(const llmgw_candidate_t *candidate);


static inline void
spread_extremes(const llmgw_scoring_t *scoring, spread_number_pt number,
    int64_t *min, int64_t *max)
{
    int64_t   x;
    uint32_t  i;

    *min = INT64_MAX;
    *max = 0;

    for (i = 0; i < scoring->n; i++) {
        x = number(&scoring->candidates[i]);
        *min = x < *min ? x : *min;
        *max = x > *max ? x : *max;
    }
}


static inline void
spread_all(const llmgw_scoring_t *scoring, double *scores, double score)
{
    uint32_t  i;

    for (i = 0; i < scoring->n; i++) {
        scores[i] = score;
    }
}


/* (max - x) / (max - min): the least number scores 1 */
static inline void
spread_least(const llmgw_scoring_t *scoring, double *scores,
    spread_number_pt number)
{
    int64_t   min, max;
    uint32_t  i;

    spread_extremes(scoring, number, &min, &max);

    if (max == min) {
        spread_all(scoring, scores, 1);
        return;
    }

    for (i = 0; i < scoring->n; i++) {
        scores[i] = (double) (max - number(&scoring->candidates[i]))
                    / (double) (max - min);
    }
}


/* (x - min) / (max - min): the highest number scores 1 */
static inline void
spread_most(const llmgw_scoring_t *scoring, double *scores,
    spread_number_pt number)
{
    int64_t   min, max;
    uint32_t  i;

    spread_extremes(scoring, number, &min, &max);

    if (max == min) {
        spread_all(scoring, scores, 1);
        return;
    }

    for (i = 0; i < scoring->n; i++) {
        scores[i] = (double) (number(&scoring->candidates[i]) - min)
                    / (double) (max - min);
    }
}

#endif /* LLMGW_SPREAD_H */
