
/*
 * Weighted scorers: the sum of several scores, each times its share of the
 * weight.
 *
 *     rank_i = 0 + clamp(score_1,i) x w_1 + clamp(score_2,i) x w_2 + ...
 *
 * in the order in which the scorers were named; the weights are divided by
 * their sum first.  Doubles throughout, one rounding for each operation, so
 * that equal facts give equal sums.
 */

#ifndef LLMGW_WEIGHTED_H
#define LLMGW_WEIGHTED_H

#include "core/policy/score.h"


/* The most scorers that a table may have; each is named at most once. */
#define LLMGW_WEIGHTS_MAX  16

typedef struct {
    const llmgw_scorer_t  *scorer;
    double                 given;       /* as it was written */
    double                 share;       /* of the sum */
} llmgw_weight_t;

typedef struct {
    uint32_t        n;
    unsigned        needs;              /* of all scorers in it */
    llmgw_weight_t  weights[LLMGW_WEIGHTS_MAX];
} llmgw_weighted_t;

/*
 * Profiles have names, which stand where "NAME:WEIGHT,..." may.
 *
 *     default  prefix-affinity:1,active-requests:1
 *     blis     prefix-affinity:3,queue-depth:2,kv-utilization:2
 *     llm-d    precise-prefix-cache:2,queue-depth:1,kv-utilization:1
 */

/*
 * Reads a profile's name or "NAME:WEIGHT,NAME:WEIGHT", of scorers in a table
 * that has all of core's and LLMGW_WEIGHTS_MAX at most.  Spaces around a part
 * are allowed; a name is named once; a weight is finite and above 0.
 *
 * Returns 0; or -1, with what is wrong in error[], which is always ended by a
 * NUL: "unknown scorer \"x\"".  *weighted changes with 0 only.
 */
int llmgw_weighted_parse(llmgw_weighted_t *weighted,
    const llmgw_scorer_t *const *scorers, const char *text, size_t len,
    char *error, size_t error_size);

/* Sets ranks[i] for all candidates; scores: memory for as many doubles. */
void llmgw_weighted_rank(const llmgw_weighted_t *weighted,
    const llmgw_scoring_t *scoring, double *ranks, double *scores);

#endif /* LLMGW_WEIGHTED_H */
