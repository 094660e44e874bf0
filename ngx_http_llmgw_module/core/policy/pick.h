
/*
 * The pick: which replica gets the next attempt.
 *
 * Tier 1, affinity.  Clockwise on the ring from the key: the first peer that
 * is eligible and not over the load bound, load <= load_factor x mean load
 * (consistent hashing with bounded loads; Mirrokni, Thorup, Zadimoghaddam,
 * 2018).  The bound is ignored for peers with less than min_load, since with
 * little traffic the mean says nothing.
 *
 * Tier 2, least connections.  The least load / weight among the eligible,
 * ties at random.
 *
 * Suspects are tried, through both tiers, only when no living peer is left
 * apart from capacity: living peers that are merely full mean waiting.  A
 * living peer with an open circuit is not left: it must not keep suspects
 * from serving.
 *
 * A stream that has delivered tokens is carried on only within the resume group
 * of the peer that served it: peers of other groups are excluded for it.
 *
 * Eligible: usable, not excluded, let through by its breaker, and with
 * capacity: in_flight below max_capacity (0: unlimited) and not marked full
 * at now_ms.  Peers that are not usable, or not let through, count in no mean.
 * The bound counts the request that is to be placed, is rounded up, and is
 * each peer's by its share of the weight; the mean is that of the living, or,
 * where suspects are tried, of the suspects.
 *
 * Nobody eligible: the first of these that holds says why.
 *
 *     ASIDE     as FULL, but somebody who is excluded lacks nothing: others,
 *               who do not exclude him, need not wait
 *     FULL      among the living, or among the suspects where no living one
 *               is left, somebody lacks nothing but capacity: wait for that
 *     OPEN      somebody lacks nothing but its breaker's leave: one attempt
 *               may be forced through, the others wait
 *     FULL_OPEN somebody lacks both
 *     EXCLUDED  all, living and suspect, were tried
 *     NONE      there is neither a living peer nor a suspect
 *
 * OPEN names the peer to be forced.  The living come before the suspects; the
 * one that is being probed before all others, so that, as its breaker refuses
 * to be forced, a pool is probed by one attempt at a time; then the one whose
 * cooldown ends first.
 *
 * The function reads the peers' counts and breakers and changes nothing.
 * Whoever wants pick and reservation to be one step holds the lock of the
 * counts around both; where there are breakers, the lock is a must.
 */

#ifndef LLMGW_PICK_H
#define LLMGW_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "core/breaker.h"
#include "core/ring/ring.h"


typedef enum {
    LLMGW_PEER_UNUSABLE = 0,    /* dead, left, not ready, draining, down */
    LLMGW_PEER_SUSPECT,         /* the last resort */
    LLMGW_PEER_ALIVE
} llmgw_peer_state_t;

/* Counted by all workers; lives in shared memory, changes under its lock. */
typedef struct {
    uint32_t  in_flight;        /* attempts of all workers of this gateway */
} llmgw_peer_counts_t;

typedef struct {
    const llmgw_peer_counts_t  *counts;        /* NULL: count as zero */
    const llmgw_breaker_t      *breaker;       /* NULL: lets through */
    uint64_t                    full_until_ms; /* the replica said: full */
    uint64_t                    resume_group;  /* hash of its name */
    uint32_t                    foreign;       /* other gateways' in-flight */
    uint32_t                    weight;        /* >= 1 */
    uint32_t                    max_capacity;  /* 0: unlimited */
    uint8_t                     state;         /* llmgw_peer_state_t */
} llmgw_pick_peer_t;

typedef struct {
    const llmgw_ring_t          *ring;  /* whole, its nodes index peers */
    const llmgw_pick_peer_t     *peers;
    const llmgw_breaker_conf_t  *breaker_conf;  /* NULL: all let through;
                                           not read where no peer has one */
    size_t                       npeers;    /* ring nodes >= npeers are
                                               skipped */
    uint32_t                     load_factor_permille;  /* 0: no bound */
    uint32_t                     min_load;
} llmgw_pick_pool_t;

typedef struct {
    uint64_t         hash;              /* of the key */
    const uint32_t  *excluded;          /* indexes of peers tried already */
    size_t           nexcluded;
    uint64_t         now_ms;
    uint64_t         random;            /* breaks ties */
    uint64_t         resume_group;      /* all others are excluded ... */
    int              resumes;           /* ... where this is set */
} llmgw_pick_key_t;

typedef enum {
    LLMGW_ROUTE_AFFINITY = 0,   /* the peer of the key's first point */
    LLMGW_ROUTE_SPILL,          /* a later one on the ring */
    LLMGW_ROUTE_LEAST_CONN
} llmgw_route_t;

typedef enum {
    LLMGW_PICK_OK = 0,
    LLMGW_PICK_ASIDE,
    LLMGW_PICK_FULL,
    LLMGW_PICK_OPEN,            /* picked->peer may be forced */
    LLMGW_PICK_FULL_OPEN,
    LLMGW_PICK_EXCLUDED,
    LLMGW_PICK_NONE
} llmgw_pick_rc_t;

typedef struct {
    uint32_t       peer;
    llmgw_route_t  route;
} llmgw_picked_t;


/* *picked changes with OK and OPEN only. */
llmgw_pick_rc_t llmgw_pick(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key, llmgw_picked_t *picked);

/* Neither marked full nor at its capacity. */
int llmgw_pick_peer_has_room(const llmgw_pick_peer_t *peer, uint64_t now_ms);

/* Its breaker, if it has one, would let an attempt through. */
int llmgw_pick_peer_is_let(const llmgw_pick_pool_t *pool,
    const llmgw_pick_peer_t *peer, uint64_t now_ms);

#endif /* LLMGW_PICK_H */
