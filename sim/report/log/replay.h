
/*
 * Repeats a logged decision by core's functions, from the logged facts.  If the
 * choice is another one, the log does not explain it.
 */

#ifndef REPORT_LOG_REPLAY_H
#define REPORT_LOG_REPLAY_H

#include "sim/report/log/read.h"


/* A ring, kept as long as the replicas stay the same. */
typedef struct {
    llmgw_ring_t        *whole;     /* NULL: none */
    llmgw_ring_node_t   *nodes;     /* with copies of the ids */
    char                *ids;
    uint32_t             n;
    uint32_t             vnodes;
} report_ring_t;

/* Memory for one decision at a time.  Zeroed: empty. */
typedef struct {
    uint32_t         max;
    double          *ranks;         /* by position: as core computed them */
    double          *scores;
    uint32_t        *matched;
    llmgw_cold_t    *cold;

    /* for choices of the pick */
    uint32_t              max_peers;
    llmgw_pick_peer_t    *peers;
    llmgw_peer_counts_t  *counts;
    llmgw_breaker_t      *breakers;
    report_ring_t         ring;
} report_replay_t;

typedef enum {
    REPORT_REPLAYED = 0,
    REPORT_REPLAY_LACKS,            /* the log lacks candidates, or something
                                       that the policy reads */
    REPORT_REPLAY_NO_MEMORY
} report_replay_rc_t;


/*
 * Repeats the choice by the pool's own policy.  *best is a position, or
 * LLMGW_RANK_NONE if the policy finds none.
 */
report_replay_rc_t report_replay_own(report_replay_t *replay,
    const report_log_entry_t *entry, uint32_t *best);

/*
 * Ranks the candidates by `policy`, which need not be the pool's.  *best is the
 * position that it chooses among the available ones.
 */
report_replay_rc_t report_replay(report_replay_t *replay,
    const report_log_entry_t *entry, const fleet_policy_t *policy,
    uint32_t *best);

/* Provides memory for n candidates.  0, or -1. */
int report_replay_grow(report_replay_t *replay, uint32_t n);

/*
 * pick.c: repeats a choice by the pool's ring; or, for a pool with a policy, a
 * choice that no rank decided.
 */
report_replay_rc_t report_replay_pick(report_replay_t *replay,
    const report_log_entry_t *entry, uint32_t *best);
void report_pick_done(report_replay_t *replay);

/* ring.c: builds the ring, unless the candidates are those of the last call. */
report_replay_rc_t report_ring_build(report_ring_t *ring,
    const report_log_entry_t *entry);
void report_ring_free(report_ring_t *ring);

void report_replay_done(report_replay_t *replay);

#endif /* REPORT_LOG_REPLAY_H */
