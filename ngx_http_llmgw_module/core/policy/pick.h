
/*
 * The pick: which replica gets the next attempt.
 *
 * Tier 1, affinity (ring_walk.c).  Clockwise on the ring from the key: the
 * first peer that is eligible and not over the load bound, load <= load_factor
 * x mean load.  The bound is ignored for peers with less than min_load, since
 * with little traffic the mean says nothing.
 *
 * Where the pool's policy reads the fleet, tier 1 is the highest rank among the
 * eligible instead (ranked.h).  round.h has both.
 *
 * Tier 2, least connections.  The least load / weight among the eligible, ties
 * at random.
 *
 * Suspects are tried, through both tiers, only when no living peer is left
 * apart from capacity: where living peers are merely full, the request waits.
 * A living peer with an open circuit does not count as left: it must not keep
 * suspects from serving.
 *
 * A standby of a group is never picked, as long as the view is fresh.  One that
 * may have become active since is the last choice, behind suspects.  If no peer
 * is eligible, llmgw_pick_waits() tells whether a standby may be active soon.
 *
 * A stream that has delivered tokens continues only within the resume group of
 * the peer that served it: peers of other groups are excluded for it.
 *
 * Peers that are not usable, or that their breakers do not admit, count in no
 * mean.  The bound counts the request that is to be placed, is rounded up, and
 * is scaled by each peer's share of the weight; the mean is that of the
 * living, or, where suspects are tried, of the suspects.
 *
 * If no peer is eligible, the first of these that holds says why.
 *
 *     SKIPPABLE as FULL, but an excluded peer lacks nothing: other requests,
 *               which do not exclude it, need not wait
 *     PUSHED    among the living, or among the suspects where no living one is
 *               left, some peer has capacity, but has told this request to
 *               come later, and none lacks nothing but capacity
 *     FULL      among the living, or among the suspects where no living one is
 *               left, some peer lacks nothing but capacity: wait for it
 *     OPEN      some peer lacks nothing but its breaker's consent: one attempt
 *               may be forced through, the others wait
 *     FULL_OPEN some peer lacks both
 *     EXCLUDED  all, living and suspect, were tried
 *     NONE      there is neither a living peer nor a suspect, and no LAST one
 *
 * OPEN names the peer to be forced.  The living come before the suspects.  A
 * peer that is being probed comes before all others: its breaker refuses to be
 * forced, so a pool is probed by one attempt at a time.  Then comes the peer
 * whose cooldown ends first.
 */

#ifndef LLMGW_PICK_H
#define LLMGW_PICK_H

#include "core/policy/peer.h"


typedef enum {
    LLMGW_ROUTE_AFFINITY = 0,   /* the peer of the key's first point */
    LLMGW_ROUTE_SPILL,          /* a later one on the ring */
    LLMGW_ROUTE_LEAST_CONN,
    LLMGW_ROUTE_POLICY,         /* by its rank */
    LLMGW_ROUTE_COLD            /* by its rank; nothing of the prompt is there,
                                   as far as the policy knows */
} llmgw_route_t;

typedef struct {
    uint32_t       peer;
    llmgw_route_t  route;
} llmgw_picked_t;

typedef enum {
    LLMGW_PICK_OK = 0,
    LLMGW_PICK_SKIPPABLE,
    LLMGW_PICK_PUSHED,
    LLMGW_PICK_FULL,
    LLMGW_PICK_OPEN,            /* picked->peer may be forced */
    LLMGW_PICK_FULL_OPEN,
    LLMGW_PICK_EXCLUDED,
    LLMGW_PICK_NONE
} llmgw_pick_rc_t;


/* The word in logs. */
const char *llmgw_route_name(llmgw_route_t route);


/* *picked changes with OK and OPEN only. */
llmgw_pick_rc_t llmgw_pick(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key, llmgw_picked_t *picked);

/*
 * To be called after EXCLUDED or NONE.  FULL: some standby could serve that
 * request once it is active.  SKIPPABLE: the same, and other requests, which
 * exclude fewer peers, need not wait for it.  NONE: there is no such standby.
 */
llmgw_pick_rc_t llmgw_pick_waits(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key);

#endif /* LLMGW_PICK_H */
