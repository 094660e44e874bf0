
/*
 * Policies that read the fleet: each ranks all candidates of a request, more
 * is better, and the best that is eligible is chosen.
 *
 * Ranking is apart from eligibility, as in round.h, and apart from what is
 * remembered: llmgw_rank() changes nothing, so it needs no lock; whoever
 * chooses goes through the candidates in the order of their ranks
 * (llmgw_rank_best(), or order.h for all of them), and says with
 * llmgw_rank_note() which it was.  Only then the prefix index, the memory of
 * cold requests and round robin's turn move on.
 *
 *     round-robin     the position whose turn it is, then the next
 *     least-loaded    the least load: queue, batch and in flight
 *     always-busiest  the most load; to see what a bad policy does
 *     weighted        scorers by weight (weighted.h)
 *     affinity        the ring with bounded load, as pick.h has it, by what is
 *                     in flight: its choice before all others.  nginx asks
 *                     llmgw_pick() itself and needs no ranks; this is for those
 *                     that compare policies
 *
 * Ties go to the first candidate, or by a number that the caller gives.
 */

#ifndef LLMGW_RANK_H
#define LLMGW_RANK_H

#include "core/policy/pick.h"
#include "core/prefix/index.h"
#include "core/policy/weighted.h"


#define LLMGW_RANK_REASON_BYTES  64
#define LLMGW_RANK_NONE          UINT32_MAX

typedef enum {
    LLMGW_RANK_ROUND_ROBIN = 0,
    LLMGW_RANK_LEAST_LOADED,
    LLMGW_RANK_ALWAYS_BUSIEST,
    LLMGW_RANK_WEIGHTED,
    LLMGW_RANK_AFFINITY
} llmgw_rank_policy_t;

/* For affinity: a ring whose nodes are the replicas by their numbers. */
typedef struct {
    const llmgw_ring_t     *ring;
    llmgw_pick_peer_t      *peers;      /* memory for as many as it has nodes */
    uint32_t                load_factor_permille;
    uint32_t                min_load;
} llmgw_rank_ring_t;

typedef struct {
    llmgw_rank_policy_t    policy;
    llmgw_weighted_t       weighted;    /* of LLMGW_RANK_WEIGHTED */
    llmgw_prefix_index_t  *index;       /* where it needs LLMGW_NEEDS_MATCHED */
    llmgw_cold_t          *cold;        /* where it needs LLMGW_NEEDS_COLD */
    llmgw_rank_ring_t      ring;        /* of LLMGW_RANK_AFFINITY */
    uint64_t               turn;        /* choices of round robin so far */
} llmgw_ranker_t;


/* By its name, with '-' or '_' between words: 0; -1: there is none. */
int llmgw_rank_policy(const char *name, size_t len,
    llmgw_rank_policy_t *policy);

const char *llmgw_rank_policy_name(llmgw_rank_policy_t policy);

/* What of a scoring it reads: LLMGW_NEEDS_..., to be filled before. */
unsigned llmgw_rank_needs(const llmgw_ranker_t *ranker);

/* Sets ranks[i] for all candidates; scores: memory for as many doubles. */
void llmgw_rank(const llmgw_ranker_t *ranker, const llmgw_scoring_t *scoring,
    double *ranks, double *scores);

/*
 * The position of the highest rank, LLMGW_RANK_NONE if n is 0.  Of equal ones
 * the first, or, where random is not NULL, one of them by that number.
 */
uint32_t llmgw_rank_best(const double *ranks, uint32_t n,
    const uint64_t *random);

/* The request goes to candidates[chosen]. */
void llmgw_rank_note(llmgw_ranker_t *ranker, const llmgw_scoring_t *scoring,
    uint32_t chosen);

/*
 * Why candidates[chosen] was, in BLIS's words, before llmgw_rank_note():
 * "weighted-scoring (score=0.850)".
 */
void llmgw_rank_reason(const llmgw_ranker_t *ranker,
    const llmgw_scoring_t *scoring, const double *ranks, uint32_t chosen,
    char reason[LLMGW_RANK_REASON_BYTES]);

#endif /* LLMGW_RANK_H */
