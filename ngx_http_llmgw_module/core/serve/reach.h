
/*
 * Reach: a replica as one process of a gateway sees it: whether it may be
 * asked, by gossip and by what became of connections to it, and which changes
 * in gossip move an attempt to another replica.
 *
 *     gossip says                   the pick sees
 *     ALIVE, READY                  ALIVE; while it backs off SUSPECT, or
 *                                   UNUSABLE where another one of its group
 *                                   may take over
 *     SUSPECT, READY                SUSPECT
 *     DEAD, READY                   UNUSABLE; SUSPECT while the gateway's agent
 *                                   is cut off from gossip
 *     a standby                     STANDBY; LAST while the view is too old to
 *                                   tell, or the agent is cut off
 *     anything else                 UNUSABLE
 *
 * Back-off: after a connection that was refused or timed out the replica is
 * left alone for 50 ms, and twice as long after each further one, up to 2 s.
 * Then the next stream that belongs to it tries.  An answer, another process
 * and another address end it.
 *
 * Gossip knows of some deaths before a socket does.  Streams that the replica
 * still serves stay, whatever gossip says; but not if a member of its group has
 * a greater epoch: the replica may have been frozen for a while, and must not
 * continue what its successor has taken over.
 */

#ifndef LLMGW_REACH_H
#define LLMGW_REACH_H

#include "core/policy/peer.h"
#include "core/serve/serve.h"
#include "core/standby.h"
#include "proto/members/members.h"


#define LLMGW_REACH_BACKOFF_MS      50
#define LLMGW_REACH_BACKOFF_MAX_MS  2000

/* Zeroed: nothing is known. */
typedef struct {
    uint64_t  suspect_ms;       /* since when it is not ALIVE; 0: it is */
    uint64_t  retry_ms;         /* no connection is tried before */
    uint32_t  backoff_ms;       /* the last back-off; 0: it has answered
                                   since */
} llmgw_reach_t;

/* What gossip and the configuration know of it. */
typedef struct {
    llmgw_liveness_t  liveness;         /* of its agent */
    llmgw_service_t   service;
    llmgw_standing_t  standing;         /* in its group */
    unsigned          is_barred:1;      /* not to be asked: it drains, or the
                                           configuration says so */
    unsigned          has_standby:1;       /* another one of its group may take
                                           over, and requests can wait for it */
    unsigned          is_isolated:1;    /* the gateway's agent is cut off from
                                           gossip */
    unsigned          is_stale:1;       /* that agent has not written for
                                           long */
} llmgw_reach_facts_t;


/* A view of the members was read. */
void llmgw_reach_update(llmgw_reach_t *reach, llmgw_liveness_t liveness,
    uint64_t now_ms);

/* The state by gossip alone; the state by gossip and by connections. */
llmgw_peer_state_t llmgw_reach_by_gossip(const llmgw_reach_facts_t *facts);
llmgw_peer_state_t llmgw_reach_state(const llmgw_reach_t *reach,
    const llmgw_reach_facts_t *facts, uint64_t now_ms);

/* A connection failed.  Returns how long the replica is left alone. */
uint32_t llmgw_reach_failed(llmgw_reach_t *reach, uint64_t now_ms);

/* The replica has answered, or is another process or at another address. */
void llmgw_reach_renewed(llmgw_reach_t *reach);

/* For how long no connection may be tried; 0: one may be. */
uint64_t llmgw_reach_wait_ms(const llmgw_reach_t *reach, uint64_t now_ms);

/*
 * 1: a connection that it refuses is no failure: it is a standby, or a standby
 * of its group is waited for.
 */
int llmgw_reach_is_absent(const llmgw_reach_facts_t *facts);

/* Why an attempt has to leave the replica; LLMGW_CAUSE_NONE: it stays. */
llmgw_cause_t llmgw_reach_leaves(const llmgw_reach_t *reach,
    const llmgw_reach_facts_t *facts, const llmgw_attempt_t *attempt);

#endif /* LLMGW_REACH_H */
