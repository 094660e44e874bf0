
/*
 * Facts: a replica's report, its age, and the values that a decision reads.
 *
 * A gateway knows two things.  The gateway's own requests in flight are known
 * exactly at any moment. The queue, the running requests and the KV cache of a
 * replica come from its report, which is up to a second old.  From these a
 * decision's candidates are made:
 *
 *   in_flight       own, exact
 *   queue_depth     waiting + since, at least 0
 *   batch_size      running, less what `since` takes the queue below 0; at
 *                   least 0
 *   kv_utilization  of all KV blocks, 0 to 1
 *
 * where since = in flight now - in flight then.  Queue and batch are carried on
 * from the report by what the gateway itself has sent and seen end since:
 * otherwise all requests between two reports would go to the replica that had
 * the shortest queue in the last one.  Requests sent since then count as
 * waiting; ended ones are subtracted from the queue first, since engines refill
 * the batch from it, and then from the batch.
 *
 * A fact that was never reported, or is older than LLMGW_FACTS_MS, reads as the
 * mean of the known ones: as 0 it would send everything to the replica whose
 * agent has died, and as the worst nothing.  If no replica reports its queue,
 * as with static addresses, the load that the gateway counts is used instead;
 * batch and KV cache are 0 if no replica reports them.
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

/* A peer's facts. */
typedef struct {
    uint64_t  reported_ms;          /* when it was reported; 0: never */
    uint32_t  replica;              /* the candidate's number */
    uint32_t  active;               /* requests there, of all gateways */
    uint32_t  in_flight;            /* at that time; see llmgw_facts_update() */
    uint32_t  running;
    uint32_t  waiting;
    uint16_t  kv_permille;
    uint16_t  reported;             /* bits: which of the last three */
} llmgw_facts_t;

typedef struct {
    const llmgw_pick_pool_t  *pool;
    const llmgw_facts_t      *facts;        /* of its peers */
    uint64_t                  clock_ms;     /* by the clock of reported_ms */
} llmgw_fleet_t;


/*
 * To be called when facts were read: sets the number of requests in flight at
 * the time of the report. If no other gateway is known to have requests there
 * (foreign: of high_water.h), that is `active`, exactly.  Otherwise it is
 * in_flight, the gateway's own count at this moment, but no more than `active`:
 * requests on their way had not arrived then.
 *
 * Nothing changes if *before has the same reported_ms, as it is the same report
 * then.
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
 * Fills *candidate with its known facts, and the gateway's current own count;
 * unknown facts are 0.
 */
void llmgw_facts_carry(const llmgw_facts_t *facts, unsigned known,
    uint32_t in_flight, llmgw_candidate_t *candidate);

/*
 * The candidates of a request: all peers that are alive and not excluded; if
 * there are none, the suspects; if there are none either, those that have been
 * tried, since a claim may start over.  Returns the number of candidates, and
 * sets *state to the state that all of them have.
 *
 * candidates and peers: memory for as many as the pool has.  peers[i] becomes
 * the index of candidates[i] in the pool; both ascend.  candidates[i].cached
 * is 0.
 */
uint32_t llmgw_facts_candidates(const llmgw_fleet_t *fleet,
    const llmgw_pick_key_t *key, llmgw_candidate_t *candidates,
    uint32_t *peers, llmgw_peer_state_t *state);

#endif /* LLMGW_FACTS_H */
