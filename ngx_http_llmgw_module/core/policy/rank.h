
/*
 * Policies that read the fleet: each ranks all candidates of a request, more
 * is better, and the best that is eligible is chosen.
 *
 * Ranking is apart from eligibility, as in round.h, and apart from what is
 * remembered: llmgw_rank() changes nothing, so it needs no lock.  The caller
 * takes the best candidate that is eligible (ranked.h), and only then updates
 * the policy's memory: the prefix index, the list of cold requests, the turn.
 *
 *     round-robin     the position whose turn it is, then the next
 *     least-loaded    the least load: queue, batch and in flight
 *     weighted        scorers by weight (weighted.h)
 *     affinity        no ranks: llmgw_pick() asks the ring with bounded load
 */

#ifndef LLMGW_RANK_H
#define LLMGW_RANK_H

#include "core/policy/weighted.h"


#define LLMGW_RANK_NONE  UINT32_MAX

typedef enum {
    LLMGW_RANK_ROUND_ROBIN = 0,
    LLMGW_RANK_LEAST_LOADED,
    LLMGW_RANK_WEIGHTED,
    LLMGW_RANK_AFFINITY
} llmgw_rank_policy_t;

typedef struct {
    llmgw_rank_policy_t  policy;
    llmgw_weighted_t     weighted;      /* of LLMGW_RANK_WEIGHTED */
    uint64_t             turn;          /* choices of round robin so far */
} llmgw_ranker_t;


/*
 * Finds a policy by its name, with '-' or '_' between words.  0; -1: there is
 * none.
 */
int llmgw_rank_policy(const char *name, size_t len,
    llmgw_rank_policy_t *policy);

const char *llmgw_rank_policy_name(llmgw_rank_policy_t policy);

/* The name in directives and on pages; only for policies that nginx has. */
const char *llmgw_rank_policy_word(llmgw_rank_policy_t policy);

/*
 * Which inputs of a scoring the policy reads, LLMGW_NEEDS_...; the caller fills
 * them before llmgw_rank().
 */
unsigned llmgw_rank_needs(const llmgw_ranker_t *ranker);

/*
 * Sets ranks[i] for all candidates, with affinity for none; scores: memory for
 * as many doubles.
 */
void llmgw_rank(const llmgw_ranker_t *ranker, const llmgw_scoring_t *scoring,
    double *ranks, double *scores);

#endif /* LLMGW_RANK_H */
