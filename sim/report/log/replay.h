
/*
 * A logged decision, made once more by core's functions from the facts that
 * were logged: the same choice, or the log does not explain it.
 */

#ifndef REPORT_LOG_REPLAY_H
#define REPORT_LOG_REPLAY_H

#include "sim/report/log/read.h"


/* A ring, for as long as the replicas stay the same. */
typedef struct {
    llmgw_ring_t        *whole;     /* NULL: none */
    llmgw_ring_node_t   *nodes;     /* ids: copies */
    char                *ids;
    uint32_t             n;
    uint32_t             vnodes;
} report_ring_t;

/* Zeroed: empty.  Memory for one decision. */
typedef struct {
    uint32_t         max;
    double          *ranks;         /* as core made them, by position */
    double          *scores;
    uint32_t        *matched;
    llmgw_cold_t    *cold;

    /* for choices by the pick */
    uint32_t              max_peers;
    llmgw_pick_peer_t    *peers;
    llmgw_peer_counts_t  *counts;
    llmgw_breaker_t      *breakers;
    report_ring_t         ring;
} report_replay_t;

typedef enum {
    REPORT_REPLAYED = 0,
    REPORT_REPLAY_LACKS,            /* not all candidates, or not all that the
                                       policy reads */
    REPORT_REPLAY_NO_MEMORY
} report_replay_rc_t;


/*
 * As the pool's own policy chooses; *best is a position, or LLMGW_RANK_NONE:
 * it would have found none.
 */
report_replay_rc_t report_replay_own(report_replay_t *replay,
    const report_log_entry_t *entry, uint32_t *best);

/*
 * Ranks the candidates by `policy`, the pool's own or another one; *best is
 * the position that it chooses among those that could be chosen.
 */
report_replay_rc_t report_replay(report_replay_t *replay,
    const report_log_entry_t *entry, const fleet_policy_t *policy,
    uint32_t *best);

/* Memory for n candidates: 0, or -1. */
int report_replay_grow(report_replay_t *replay, uint32_t n);

/*
 * pick.c: the same by the ring of the pool, or, where it has a policy, a choice
 * that no rank decided.
 */
report_replay_rc_t report_replay_pick(report_replay_t *replay,
    const report_log_entry_t *entry, uint32_t *best);
void report_pick_done(report_replay_t *replay);

/* ring.c: built anew if the candidates are others than at the last call. */
report_replay_rc_t report_ring_build(report_ring_t *ring,
    const report_log_entry_t *entry);
void report_ring_free(report_ring_t *ring);

void report_replay_done(report_replay_t *replay);

#endif /* REPORT_LOG_REPLAY_H */
