
/*
 * The pick.  pick.h says what is picked; this is how it is found fast.
 *
 * One round looks at the peers of one state: the living, and then, if none
 * of them is left, the suspects.  A round walks the ring first.  Nearly
 * always one of the first points is good; but when most peers are full or
 * over the bound, a walk over 150 points of each of 10000 peers would take
 * milliseconds to learn that nobody has room.  So after WALK_POINTS points the
 * round looks at each peer once: that tells whether anybody passes tier 1 at
 * all, who would be tier 2's choice, and what the others lack.  The walk goes
 * on only when two or more pass, and then it ends, in the mean, after as many
 * points as there are peers to each that passes.
 *
 * The walk keeps no set of the peers that it has seen.  Refusing one again
 * costs less than looking it up.
 *
 * The bound (Mirrokni, Thorup, Zadimoghaddam, 2018) counts the request that
 * is to be placed and is rounded up: with T in flight on peers of total
 * weight W, a peer of weight w may come to hold
 *
 *     ceil(factor x (T + 1) x w / W)
 *
 * requests, this one included.  So a peer that holds `load` passes when
 * load + 1 <= ceil(x), and as load is whole, when load < x.  An idle peer
 * always passes, since x > 0; with a factor of at least 1 some peer always
 * does.  T and W are those of the round's own state, and are added up, over
 * all peers, only when a peer with room has min_load or more.
 */

#include "core/policy/pick.h"


/*
 * With a factor of 1.25 at least a fifth of the weight is below the bound, so
 * that fewer than one walk in a million gets here for the bound's sake.
 */
#define WALK_POINTS  64


typedef struct {
    const llmgw_pick_pool_t  *pool;
    const llmgw_pick_key_t   *key;
    llmgw_peer_state_t        state;        /* of the peers of this round */
    size_t                    first;        /* position of the key's point */
    int                       have_mean;
    double                    load_side;    /* 1000 W */
    double                    mean_side;    /* 1000 factor (T + 1) */
} pick_round_t;

/* What a look at each peer of the round's state has found. */
typedef struct {
    size_t    nusable;
    size_t    nfresh;           /* not excluded */
    int       has_let;          /* one of them by its breaker */
    int       has_spare;        /* one that is excluded would be eligible */
    size_t    nopen;            /* not excluded, with room, but not let */
    uint32_t  open;             /* the one of those to be forced */
    uint64_t  open_retry_ms;
    size_t    nbelow;           /* on the ring, eligible, within the bound */
    uint32_t  below;            /* the last of those */
    size_t    neligible;
    uint32_t  least;            /* the least loaded of those */
    uint64_t  least_load;
    uint64_t  least_weight;
    uint64_t  least_lot;
} pick_survey_t;


/* The sum is held at 32 bits, so that load x weight never overflows. */
static uint64_t
peer_load(const llmgw_pick_peer_t *peer)
{
    uint64_t  load;

    load = peer->foreign;

    if (peer->counts != NULL) {
        load += __atomic_load_n(&peer->counts->in_flight, __ATOMIC_RELAXED);
    }

    return load < UINT32_MAX ? load : UINT32_MAX;
}


static uint64_t
peer_weight(const llmgw_pick_peer_t *peer)
{
    return peer->weight == 0 ? 1 : peer->weight;
}


static int
peer_has_room(const llmgw_pick_peer_t *peer, uint64_t now_ms)
{
    uint32_t  in_flight;

    if (now_ms < peer->full_until_ms) {
        return 0;
    }

    if (peer->max_capacity == 0 || peer->counts == NULL) {
        return 1;
    }

    in_flight = __atomic_load_n(&peer->counts->in_flight, __ATOMIC_RELAXED);

    return in_flight < peer->max_capacity;
}


/* A closed circuit, which is nearly always, costs no call. */
static int
peer_is_let(const llmgw_pick_pool_t *pool, const llmgw_pick_peer_t *peer,
    uint64_t now_ms)
{
    return peer->breaker == NULL
           || peer->breaker->state == LLMGW_BREAKER_CLOSED
           || pool->breaker_conf == NULL
           || llmgw_breaker_allows(peer->breaker, pool->breaker_conf, now_ms);
}


/* A handful at most: as many as a request has tries. */
static int
key_excludes(const llmgw_pick_key_t *key, const llmgw_pick_peer_t *peers,
    uint32_t peer)
{
    size_t  i;

    if (key->resumes && peers[peer].resume_group != key->resume_group) {
        return 1;
    }

    for (i = 0; i < key->nexcluded; i++) {
        if (key->excluded[i] == peer) {
            return 1;
        }
    }

    return 0;
}


static void
round_add_up(pick_round_t *round)
{
    size_t                    i;
    uint64_t                  load, weight;
    const llmgw_pick_peer_t  *peer;

    load = 0;
    weight = 0;

    for (i = 0; i < round->pool->npeers; i++) {
        peer = &round->pool->peers[i];

        if (peer->state == round->state
            && peer_is_let(round->pool, peer, round->key->now_ms))
        {
            load += peer_load(peer);
            weight += peer_weight(peer);
        }
    }

    round->load_side = 1000.0 * (double) weight;
    round->mean_side = (double) round->pool->load_factor_permille
                       * (double) (load + 1);
    round->have_mean = 1;
}


/*
 * In doubles, as the products may exceed 64 bits when a peer lies about its
 * load; below 2^53 they are exact.
 */
static int
round_is_below(pick_round_t *round, const llmgw_pick_peer_t *peer)
{
    uint64_t  load;

    load = peer_load(peer);

    if (round->pool->load_factor_permille == 0
        || load < round->pool->min_load)
    {
        return 1;
    }

    if (!round->have_mean) {
        round_add_up(round);
    }

    return (double) load * round->load_side
           < round->mean_side * (double) peer_weight(peer);
}


static int
round_passes(pick_round_t *round, uint32_t i)
{
    const llmgw_pick_peer_t  *peer;

    if (i >= round->pool->npeers) {
        return 0;
    }

    peer = &round->pool->peers[i];

    return peer->state == round->state
           && peer_has_room(peer, round->key->now_ms)
           && peer_is_let(round->pool, peer, round->key->now_ms)
           && !key_excludes(round->key, round->pool->peers, i)
           && round_is_below(round, peer);
}


static void
round_answer(const pick_round_t *round, uint32_t peer, llmgw_picked_t *picked)
{
    picked->peer = peer;
    picked->route = LLMGW_ROUTE_SPILL;

    if (peer == llmgw_ring_node(round->pool->ring, round->first)) {
        picked->route = LLMGW_ROUTE_AFFINITY;
    }
}


/* Looks at points `from` to `to` clockwise of the key's.  Returns 1: found. */
static int
round_walk(pick_round_t *round, size_t from, size_t to,
    llmgw_picked_t *picked)
{
    size_t               position, npoints;
    uint32_t             node;
    const llmgw_ring_t  *ring;

    ring = round->pool->ring;
    npoints = llmgw_ring_npoints(ring);

    for ( /* void */ ; from < to && from < npoints; from++) {
        position = round->first + from;

        if (position >= npoints) {
            position -= npoints;
        }

        node = llmgw_ring_node(ring, position);

        if (round_passes(round, node)) {
            round_answer(round, node, picked);
            return 1;
        }
    }

    return 0;
}


/*
 * Each peer draws its lot (splitmix64; Steele, Lea, Flood, 2014) from the
 * request's random number, and the lowest lot wins a tie: fair whatever the
 * number of ties, without knowing it before.
 */
static uint64_t
draw_lot(uint64_t random, uint32_t peer)
{
    uint64_t  x;

    x = random + ((uint64_t) peer + 1) * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;

    return x ^ x >> 31;
}


static void
survey_compare(pick_survey_t *survey, const llmgw_pick_peer_t *peer,
    uint32_t i, uint64_t random)
{
    uint64_t  load, weight, lot, mine, least;

    load = peer_load(peer);
    weight = peer_weight(peer);

    mine = load * survey->least_weight;
    least = survey->least_load * weight;

    if (survey->neligible++ != 0 && mine > least) {
        return;
    }

    lot = draw_lot(random, i);

    if (survey->neligible > 1 && mine == least && lot >= survey->least_lot) {
        return;
    }

    survey->least = i;
    survey->least_load = load;
    survey->least_weight = weight;
    survey->least_lot = lot;
}


static void
survey_note_open(pick_survey_t *survey, const llmgw_pick_pool_t *pool,
    uint32_t i)
{
    uint64_t                retry_ms;
    const llmgw_breaker_t  *breaker;

    breaker = pool->peers[i].breaker;
    retry_ms = 0;

    if (breaker->state == LLMGW_BREAKER_OPEN) {
        retry_ms = llmgw_breaker_retry_ms(breaker, pool->breaker_conf);
    }

    if (survey->nopen++ == 0 || retry_ms < survey->open_retry_ms) {
        survey->open = i;
        survey->open_retry_ms = retry_ms;
    }
}


/* Returns 1: the peer is eligible. */
static int
survey_note(pick_survey_t *survey, const pick_round_t *round, uint32_t i)
{
    int                       has_room;
    const llmgw_pick_peer_t  *peer;

    peer = &round->pool->peers[i];
    survey->nusable++;

    if (key_excludes(round->key, round->pool->peers, i)) {
        survey->has_spare |= peer_has_room(peer, round->key->now_ms)
                             && peer_is_let(round->pool, peer,
                                            round->key->now_ms);
        return 0;
    }

    survey->nfresh++;
    has_room = peer_has_room(peer, round->key->now_ms);

    if (!has_room && survey->has_let) {
        return 0;       /* nothing to learn: spares the breaker's cache line */
    }

    if (peer_is_let(round->pool, peer, round->key->now_ms)) {
        survey->has_let = 1;
        return has_room;
    }

    if (has_room) {
        survey_note_open(survey, round->pool, i);
    }

    return 0;
}


static void
round_survey(pick_round_t *round, size_t nring, pick_survey_t *survey)
{
    uint32_t                  i;
    const llmgw_pick_peer_t  *peer;

    *survey = (pick_survey_t) { 0 };

    for (i = 0; i < round->pool->npeers; i++) {
        peer = &round->pool->peers[i];

        if (peer->state != round->state || !survey_note(survey, round, i)) {
            continue;
        }

        survey_compare(survey, peer, i, round->key->random);

        if (i < nring && round_is_below(round, peer)) {
            survey->nbelow++;
            survey->below = i;
        }
    }
}


/* Returns 1: found; 0: *survey says what each lacks. */
static int
round_pick(pick_round_t *round, pick_survey_t *survey, llmgw_picked_t *picked)
{
    size_t               nring;
    const llmgw_ring_t  *ring;

    ring = round->pool->ring;
    nring = ring == NULL ? 0 : llmgw_ring_nnodes(ring);

    if (nring != 0) {
        round->first = llmgw_ring_find(ring, round->key->hash);

        if (round_walk(round, 0, WALK_POINTS, picked)) {
            return 1;
        }
    }

    round_survey(round, nring, survey);

    if (survey->neligible == 0) {
        return 0;
    }

    if (survey->nbelow == 1) {
        round_answer(round, survey->below, picked);
        return 1;
    }

    if (survey->nbelow > 1
        && round_walk(round, WALK_POINTS, SIZE_MAX, picked))
    {
        return 1;
    }

    picked->peer = survey->least;
    picked->route = LLMGW_ROUTE_LEAST_CONN;

    return 1;
}


static void
pick_open(const pick_round_t *round, const pick_survey_t *survey,
    llmgw_picked_t *picked)
{
    const llmgw_ring_t  *ring;

    ring = round->pool->ring;

    if (ring != NULL && survey->open < llmgw_ring_nnodes(ring)) {
        round_answer(round, survey->open, picked);
        return;
    }

    picked->peer = survey->open;
    picked->route = LLMGW_ROUTE_LEAST_CONN;
}


/* Nobody is eligible, and nobody lacks capacity alone. */
static llmgw_pick_rc_t
pick_refuse(const pick_round_t *round, const pick_survey_t *alive,
    const pick_survey_t *suspect, llmgw_picked_t *picked)
{
    if (alive->nopen != 0 || suspect->nopen != 0) {
        pick_open(round, alive->nopen != 0 ? alive : suspect, picked);
        return LLMGW_PICK_OPEN;
    }

    if (alive->nfresh != 0 || suspect->nfresh != 0) {
        return LLMGW_PICK_FULL_OPEN;
    }

    if (alive->nusable != 0 || suspect->nusable != 0) {
        return LLMGW_PICK_EXCLUDED;
    }

    return LLMGW_PICK_NONE;
}


llmgw_pick_rc_t
llmgw_pick(const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key,
    llmgw_picked_t *picked)
{
    pick_round_t   round;
    pick_survey_t  alive, suspect;

    round = (pick_round_t) { .pool = pool, .key = key,
                             .state = LLMGW_PEER_ALIVE };

    if (round_pick(&round, &alive, picked)) {
        return LLMGW_PICK_OK;
    }

    if (alive.has_let) {
        return alive.has_spare ? LLMGW_PICK_ASIDE : LLMGW_PICK_FULL;
    }

    round = (pick_round_t) { .pool = pool, .key = key,
                             .state = LLMGW_PEER_SUSPECT };

    if (round_pick(&round, &suspect, picked)) {
        return LLMGW_PICK_OK;
    }

    if (suspect.has_let) {
        return alive.has_spare || suspect.has_spare ? LLMGW_PICK_ASIDE
                                                    : LLMGW_PICK_FULL;
    }

    return pick_refuse(&round, &alive, &suspect, picked);
}


int
llmgw_pick_peer_has_room(const llmgw_pick_peer_t *peer, uint64_t now_ms)
{
    return peer_has_room(peer, now_ms);
}


int
llmgw_pick_peer_is_let(const llmgw_pick_pool_t *pool,
    const llmgw_pick_peer_t *peer, uint64_t now_ms)
{
    return peer_is_let(pool, peer, now_ms);
}
