
/*
 * Scorers: each gives every candidate a score from 0 to 1, more is better.
 *
 * A scorer is one file in scorer/ with one function, which reads the request
 * and the candidates and fills an array.  It is pure: memory across requests is
 * an argument, and changes only when the choice is known (rank.h).  A table
 * lists the scorers that may be named.
 *
 * Names and formulas are those of inference-sim (BLIS, Apache-2.0), which
 * follows llm-d and the Gateway API Inference Extension; scores are equal to
 * its own in every bit, so quotients and differences are taken of the same
 * numbers in the same order, in doubles, and the code is compiled with
 * -ffp-contract=off.  "min-max" is (max - x) / (max - min), 1 where all are
 * equal.
 *
 *     prefix-affinity       matched blocks / blocks of the prompt, by the
 *                           router's own index (prefix/index.h); no block: 0
 *     precise-prefix-cache  min-max of what the replicas' caches hold, more is
 *                           better
 *     no-hit-lru            something cached anywhere: 0.5 for all; nothing:
 *                           1 to 0 by how long a candidate has gone without a
 *                           cold request (cold.h)
 *     queue-depth           min-max of queue_depth
 *     kv-utilization        1 - kv_utilization
 *     load-balance          1 / (1 + load)
 *     effective-load        min-max of load
 *     active-requests       none in flight: 1; else (max - x) / max
 *     running-requests      min-max of batch_size
 */

#ifndef LLMGW_SCORE_H
#define LLMGW_SCORE_H

#include <stddef.h>

#include "core/policy/candidate.h"
#include "core/policy/cold.h"


/*
 * A scorer's inputs beyond load, so that callers need not compute the others.
 */
#define LLMGW_NEEDS_MATCHED  0x01   /* scoring.matched */
#define LLMGW_NEEDS_CACHED   0x02   /* candidate.cached */
#define LLMGW_NEEDS_COLD     0x04   /* scoring.cold */

/* A request and those that may serve it.  Read only. */
typedef struct {
    const llmgw_candidate_t  *candidates;
    uint32_t                  n;
    uint32_t                  nblocks;  /* full blocks of the prompt */
    const uint64_t           *blocks;   /* their hashes, chained */
    const uint32_t           *matched;  /* by number of replica: blocks from
                                           the first on that the router has
                                           sent there (prefix/index.h) */
    llmgw_cold_t             *cold;     /* scratch words in it are written */
} llmgw_scoring_t;

typedef struct {
    const char  *name;                  /* with '-' between words */
    unsigned     needs;
    void       (*score)(const llmgw_scoring_t *scoring, double *scores);
} llmgw_scorer_t;


/* scorer/NAME.c each */
extern const llmgw_scorer_t  llmgw_scorer_prefix_affinity;
extern const llmgw_scorer_t  llmgw_scorer_precise_prefix_cache;
extern const llmgw_scorer_t  llmgw_scorer_no_hit_lru;
extern const llmgw_scorer_t  llmgw_scorer_queue_depth;
extern const llmgw_scorer_t  llmgw_scorer_kv_utilization;
extern const llmgw_scorer_t  llmgw_scorer_load_balance;
extern const llmgw_scorer_t  llmgw_scorer_effective_load;
extern const llmgw_scorer_t  llmgw_scorer_active_requests;
extern const llmgw_scorer_t  llmgw_scorer_running_requests;

/* The beginning of a table, which NULL ends. */
#define LLMGW_SCORERS                                                         \
    &llmgw_scorer_active_requests, &llmgw_scorer_effective_load,              \
    &llmgw_scorer_kv_utilization, &llmgw_scorer_load_balance,                 \
    &llmgw_scorer_no_hit_lru, &llmgw_scorer_precise_prefix_cache,             \
    &llmgw_scorer_prefix_affinity, &llmgw_scorer_queue_depth,                 \
    &llmgw_scorer_running_requests

/* The table that nginx uses. */
extern const llmgw_scorer_t *const  llmgw_scorers[];

/*
 * Finds a scorer by its name, with '-' or '_' between words; NULL: the table
 * has none.
 */
const llmgw_scorer_t *llmgw_scorer_find(const llmgw_scorer_t *const *scorers,
    const char *name, size_t len);

/* 1: nothing of the prompt is in any candidate's cache. */
int llmgw_scoring_is_cold(const llmgw_scoring_t *scoring);

#endif /* LLMGW_SCORE_H */
