
/*
 * Facts: what a replica says of itself, how old it is, and what of it a
 * decision reads.
 *
 * A gateway knows two things.  What it has in flight itself is exact at any
 * moment.  What waits and runs in a replica, and how full its KV cache is, is
 * the replica's report, which is up to a second old.  From these a decision's
 * candidates are made:
 *
 *   in_flight       own, exact
 *   queue_depth     waiting + since, at least 0
 *   batch_size      running, and what `since` takes below 0; at least 0
 *   kv_utilization  of all KV blocks, 0 to 1
 *
 * where since = in flight now - in flight then.  Queue and batch are carried on
 * from the report by what the gateway itself has sent and seen end since:
 * otherwise all requests between two reports would go to the replica that had
 * the shortest queue in the last one.  What was sent waits first; what has
 * ended is made up for out of the queue, as engines do, and then the batch.
 *
 * A fact that was never heard, or is older than LLMGW_FACTS_MS, reads as the
 * mean of those that are known: as 0 it would send everything to the replica
 * whose agent has died, and as the worst nothing.  Where nobody tells its
 * queue, as with static addresses, the load that the gateway counts stands for
 * it; batch and KV cache are 0 where nobody tells them.
 *
 * Pure: the clock is an argument.
 */

#ifndef LLMGW_FACTS_H
#define LLMGW_FACTS_H

#include "core/policy/candidate.h"
#include "core/policy/peer.h"


#define LLMGW_FACTS_MS  2000        /* an older report is unknown */

#define LLMGW_FACT_RUNNING  1       /* bits of `reported` */
#define LLMGW_FACT_WAITING  2
#define LLMGW_FACT_KV       4

/* Of a peer. */
typedef struct {
    uint64_t  reported_ms;          /* when it was reported; 0: never */
    uint32_t  replica;              /* the candidate's number */
    uint32_t  active;               /* requests there, of all gateways */
    uint32_t  in_flight;            /* then; see llmgw_facts_update() */
    uint32_t  running;
    uint32_t  waiting;
    uint16_t  kv_permille;
    uint16_t  reported;             /* which of the last three */
} llmgw_facts_t;

typedef struct {
    const llmgw_pick_pool_t  *pool;
    const llmgw_facts_t      *facts;        /* of its peers */
    uint64_t                  clock_ms;     /* by the clock of reported_ms */
} llmgw_fleet_t;


/*
 * The facts were read; sets what was in flight when they were reported.  Where
 * no other gateway is known to have requests there (foreign: of high_water.h),
 * that is `active`, exactly.  Otherwise it is in_flight, the gateway's own
 * count at this moment, but no more than `active`: what is on its way to the
 * replica was not there.
 *
 * Nothing changes if *before has the same reported_ms: it is the same report.
 */
void llmgw_facts_update(llmgw_facts_t *facts, const llmgw_facts_t *before,
    uint32_t in_flight, uint32_t foreign);

/* Which facts are known, as bits of `reported`. */
static inline unsigned
llmgw_facts_known(const llmgw_facts_t *facts, uint64_t clock_ms)
{
    return facts->reported_ms != 0

    && clock_ms < facts->reported_ms + LLMGW_FACTS_MS ? facts->reported : 0;
}

/*
 * Sets *candidate to what is known of it, with the gateway's own count as it is
 * now; what is not known is 0.
 */
void llmgw_facts_carry(const llmgw_facts_t *facts, unsigned known,
    uint32_t in_flight, llmgw_candidate_t *candidate);

/*
 * The candidates of a request: all peers that are alive and not excluded; where
 * there is none, the suspects; where there is none either, those that have been
 * tried, since a claim may start over.  Returns how many, and sets *state to
 * theirs.
 *
 * candidates and peers: memory for as many as the pool has.  peers[i] becomes
 * the index of candidates[i] in the pool; both ascend.  candidates[i].cached
 * is 0.
 */
uint32_t llmgw_facts_candidates(const llmgw_fleet_t *fleet,
    const llmgw_pick_key_t *key, llmgw_candidate_t *candidates,
    uint32_t *peers, llmgw_peer_state_t *state);

#endif /* LLMGW_FACTS_H */
