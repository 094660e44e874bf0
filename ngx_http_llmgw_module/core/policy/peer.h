
/*
 * A pool as a policy sees it, and whether a peer of it is eligible.
 *
 * Eligible: the peer is in the state that this round looks at, is not excluded,
 * has capacity (fewer attempts in flight than max_capacity, and not marked
 * full), has not pushed the request back, and its breaker admits an attempt.  A
 * key may ask for unproven peers to be tried by one attempt at a time.  For a
 * stream that has delivered tokens, peers of other resume groups than that of
 * the peer that served it are excluded as well; for a request that names a
 * model which not all peers serve, those that do not; and for a request that
 * continues from state of a single peer, all others.  Eligibility is decided
 * only here; a policy only ranks the eligible peers.
 *
 * Everything here but `sums` and `ranked` is read, never written.  A caller
 * that wants pick and reservation to be one step holds the lock of the counts
 * around both; where peers have breakers it must hold that lock.
 */

#ifndef LLMGW_PEER_H
#define LLMGW_PEER_H

#include <stddef.h>
#include <stdint.h>

#include "core/breaker.h"
#include "core/full.h"
#include "core/models.h"
#include "core/ring/ring.h"


typedef enum {
    LLMGW_PEER_UNUSABLE = 0,    /* dead, left, not ready, draining, down */
    LLMGW_PEER_SUSPECT,         /* asked where none is alive */
    LLMGW_PEER_ALIVE,
    LLMGW_PEER_STANDBY,         /* may be active soon: waited for, not asked */
    LLMGW_PEER_LAST             /* a standby that may be active by now, as the
                                   view is too old to tell: asked if nothing
                                   else is left */
} llmgw_peer_state_t;

/* Counted by all workers; lives in shared memory, changes under its lock. */
typedef struct {
    uint32_t  in_flight;        /* attempts of all workers of this gateway */
} llmgw_peer_counts_t;

typedef struct {
    const llmgw_peer_counts_t  *counts;        /* NULL: count as zero */
    const llmgw_breaker_t      *breaker;       /* NULL: admits */
    const llmgw_full_t         *full;          /* NULL: never marked */
    uint64_t                    resume_group;  /* hash of its name */
    uint32_t                    foreign;       /* other gateways' in-flight */
    uint32_t                    weight;        /* >= 1 */
    uint32_t                    max_capacity;  /* 0: unlimited */
    uint8_t                     state;         /* llmgw_peer_state_t */
    uint8_t                     is_unproven;   /* it refused a connection, and
                                                  has not answered since */
    uint16_t                    models;        /* number of its list */
} llmgw_pick_peer_t;

/*
 * Load and weight of all admitted peers of a state, as the ring added them up
 * last.  Zeroed memory holds none.
 */
typedef struct {
    uint64_t  now_ms;
    uint64_t  load;
    uint64_t  weight;
    uint8_t   state;            /* llmgw_peer_state_t; UNUSABLE: none yet */
} llmgw_pick_sums_t;

typedef struct llmgw_ranked_s  llmgw_ranked_t;

typedef struct {
    const llmgw_ring_t          *ring;  /* a whole ring; its nodes are indexes
                                           of peers */
    const llmgw_pick_peer_t     *peers;
    const llmgw_breaker_conf_t  *breaker_conf;  /* NULL: all are admitted;
                                           not read where no peer has one */
    size_t                       npeers;    /* ring nodes >= npeers are
                                               skipped */
    size_t                       nstandbys; /* peers that are STANDBY or LAST */
    uint32_t                     load_factor_permille;  /* 0: no bound */
    uint32_t                     min_load;
    llmgw_pick_sums_t           *sums;  /* of these peers; NULL: none kept */
    llmgw_ranked_t              *ranked;    /* ranked.h; NULL: the ring
                                               chooses */
} llmgw_pick_pool_t;

/* Peers that asked the request to come later. */
typedef struct {
    const uint32_t  *peers;             /* indexes */
    size_t           npeers;
    uint64_t         until_ms;          /* of several, the first */
} llmgw_pushed_t;

typedef struct {
    uint64_t         hash;              /* of the key */
    const uint32_t  *excluded;          /* indexes of peers tried already */
    size_t           nexcluded;
    const llmgw_pushed_t     *pushed;   /* NULL: none */
    uint64_t         now_ms;
    uint64_t         random;            /* breaks ties */
    uint64_t         resume_group;      /* all others are excluded ... */
    int              resumes;           /* ... where this is set */
    const llmgw_model_set_t  *serving;  /* lists of models; peers with others
                                           are excluded; NULL: any serves */
    int              spares_unproven;   /* skips unproven peers that are being
                                           tried */
    uint32_t         only;              /* 1 + the index of the one peer that
                                           may serve; 0: any may */
} llmgw_pick_key_t;

/* Why a peer is not eligible: the first of these that holds. */
typedef enum {
    LLMGW_LACKS_NOTHING = 0,
    LLMGW_LACKS_STATE,          /* not in the state that is looked at */
    LLMGW_LACKS_TRUST,          /* excluded */
    LLMGW_LACKS_CAPACITY,
    LLMGW_LACKS_TIME,           /* it pushed the request back */
    LLMGW_LACKS_CIRCUIT         /* has capacity, but its breaker refuses */
} llmgw_lacks_t;


/* The sum is capped at 32 bits, so that load x weight never overflows. */
static inline uint64_t
llmgw_peer_load(const llmgw_pick_peer_t *peer)
{
    uint64_t  load;

    load = peer->foreign;

    if (peer->counts != NULL) {
        load += __atomic_load_n(&peer->counts->in_flight, __ATOMIC_RELAXED);
    }

    return load < UINT32_MAX ? load : UINT32_MAX;
}


static inline uint64_t
llmgw_peer_weight(const llmgw_pick_peer_t *peer)
{
    return peer->weight == 0 ? 1 : peer->weight;
}


/* Neither marked full nor at its capacity. */
static inline int
llmgw_peer_has_capacity(const llmgw_pick_peer_t *peer, uint64_t now_ms)
{
    uint32_t  in_flight;

    if (peer->full != NULL && llmgw_full_stands(peer->full, now_ms)) {
        return 0;
    }

    if (peer->max_capacity == 0 || peer->counts == NULL) {
        return 1;
    }

    in_flight = __atomic_load_n(&peer->counts->in_flight, __ATOMIC_RELAXED);

    return in_flight < peer->max_capacity;
}


/* 1: the key spares unproven peers, and this one is being tried already. */
static inline int
llmgw_peer_is_spared(const llmgw_pick_peer_t *peer,
    const llmgw_pick_key_t *key)
{
    return key->spares_unproven && peer->is_unproven && peer->counts != NULL
           && __atomic_load_n(&peer->counts->in_flight, __ATOMIC_RELAXED) != 0;
}


/* A closed circuit, nearly always the case, costs no call. */
static inline int
llmgw_peer_is_admitted(const llmgw_pick_pool_t *pool,
    const llmgw_pick_peer_t *peer, uint64_t now_ms)
{
    return peer->breaker == NULL
           || peer->breaker->state == LLMGW_BREAKER_CLOSED
           || pool->breaker_conf == NULL
           || llmgw_breaker_allows(peer->breaker, pool->breaker_conf, now_ms);
}


static inline int
llmgw_peer_serves(const llmgw_pick_peer_t *peer, const llmgw_model_set_t *set)
{
    return set == NULL || (set->words[peer->models / 64] >> peer->models % 64
                           & 1);
}


/* 1: it can continue the request's stream, and serves its model. */
static inline int
llmgw_peer_is_able(const llmgw_pick_peer_t *peer, const llmgw_pick_key_t *key)
{
    return (!key->resumes || peer->resume_group == key->resume_group)
           && llmgw_peer_serves(peer, key->serving);
}


/*
 * 1: not able, or tried already.  A request has tried only a handful of peers.
 */
static inline int
llmgw_peer_is_excluded(const llmgw_pick_pool_t *pool,
    const llmgw_pick_key_t *key, uint32_t i)
{
    size_t  k;

    if (!llmgw_peer_is_able(&pool->peers[i], key)
        || (key->only != 0 && key->only != i + 1))
    {
        return 1;
    }

    for (k = 0; k < key->nexcluded; k++) {
        if (key->excluded[k] == i) {
            return 1;
        }
    }

    return 0;
}


static inline int
llmgw_peer_is_pushed(const llmgw_pick_key_t *key, uint32_t i)
{
    size_t  k;

    if (key->pushed == NULL) {
        return 0;
    }

    for (k = 0; k < key->pushed->npeers; k++) {
        if (key->pushed->peers[k] == i) {
            return 1;
        }
    }

    return 0;
}


/* i < pool->npeers; state: the one that this round looks at */
static inline llmgw_lacks_t
llmgw_peer_lacks(const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key,
    llmgw_peer_state_t state, uint32_t i)
{
    const llmgw_pick_peer_t  *peer;

    peer = &pool->peers[i];

    if (peer->state != state) {
        return LLMGW_LACKS_STATE;
    }

    if (llmgw_peer_is_excluded(pool, key, i)) {
        return LLMGW_LACKS_TRUST;
    }

    if (!llmgw_peer_has_capacity(peer, key->now_ms)
        || llmgw_peer_is_spared(peer, key))
    {
        return LLMGW_LACKS_CAPACITY;
    }

    if (llmgw_peer_is_pushed(key, i)) {
        return LLMGW_LACKS_TIME;
    }

    return llmgw_peer_is_admitted(pool, peer, key->now_ms)
           ? LLMGW_LACKS_NOTHING : LLMGW_LACKS_CIRCUIT;
}

#endif /* LLMGW_PEER_H */
