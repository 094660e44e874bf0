
/*
 * The pick.  pick.h has the rules.
 *
 * A round looks at the peers of one state: the living; if none of them is left,
 * the suspects; then the standbys that may be active by now.  Its order of
 * preference (round.h) answers nearly always.  Otherwise the round surveys all
 * peers: which of the eligible ones comes first in that order, which has the
 * least load, and what the others lack.
 */

#include "core/policy/draw.h"
#include "core/policy/round.h"


/* The eligible peer with the least load for its weight. */
typedef struct {
    uint32_t  peer;
    uint64_t  load;
    uint64_t  weight;
    uint64_t  draw;
} least_t;

/* The result of looking at each peer of the round's state. */
typedef struct {
    size_t    nusable;
    size_t    nfresh;           /* peers that are not excluded */
    size_t    neligible;
    least_t   least;            /* of the eligible peers */
    int       has_admitted;     /* some breaker of a peer that is not excluded
                                   admits */
    int       has_pushed;       /* some peer lacks only time */
    int       has_spare;        /* some excluded peer would be eligible
                                   otherwise */
    size_t    nopen;            /* not excluded, with capacity, circuit
                                   refuses */
    uint32_t  open;             /* the one of these to be forced */
    uint64_t  open_retry_ms;
} survey_t;


const char *
llmgw_route_name(llmgw_route_t route)
{
    static const char *const  names[] = {
        [LLMGW_ROUTE_AFFINITY] = "affinity",
        [LLMGW_ROUTE_SPILL] = "spill",
        [LLMGW_ROUTE_LEAST_CONN] = "least_conn",
        [LLMGW_ROUTE_POLICY] = "policy",
        [LLMGW_ROUTE_COLD] = "cold"
    };

    return names[route];
}


static int
order_first(llmgw_round_t *round, llmgw_picked_t *picked)
{
    return round->pool->ranked == NULL ? llmgw_walk_first(round, picked)
                                       : llmgw_find_first(round, picked);
}


static void
order_note(llmgw_round_t *round, uint32_t peer)
{
    if (round->pool->ranked == NULL) {
        llmgw_walk_note(round, peer);

    } else {
        llmgw_find_note(round, peer);
    }
}


static int
order_best(llmgw_round_t *round, llmgw_picked_t *picked)
{
    return round->pool->ranked == NULL ? llmgw_walk_best(round, picked)
                                       : llmgw_find_best(round, picked);
}


/* Breaks ties by lots, drawn from the request's random number. */
static void
least_compare(least_t *least, const llmgw_round_t *round, uint32_t i,
    int is_first)
{
    uint64_t                  load, weight, draw, mine, best;
    const llmgw_pick_peer_t  *peer;

    peer = &round->pool->peers[i];
    load = llmgw_peer_load(peer);
    weight = llmgw_peer_weight(peer);

    mine = load * least->weight;
    best = least->load * weight;

    if (!is_first && mine > best) {
        return;
    }

    draw = llmgw_draw(round->key->random, i);

    if (!is_first && mine == best && draw >= least->draw) {
        return;
    }

    *least = (least_t) { i, load, weight, draw };
}


static void
survey_note_open(survey_t *survey, const llmgw_pick_pool_t *pool, uint32_t i)
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


/* Notes why a peer of the round's state is not eligible. */
static inline void
survey_note_lack(survey_t *survey, const llmgw_round_t *round,
    uint32_t i, llmgw_lacks_t lacks)
{
    int                       is_admitted;
    const llmgw_pick_peer_t  *peer;

    if (lacks == LLMGW_LACKS_CIRCUIT) {
        survey->nfresh++;
        survey_note_open(survey, round->pool, i);
        return;
    }

    if (lacks == LLMGW_LACKS_TIME) {
        survey->nfresh++;
    }

    if (lacks == LLMGW_LACKS_CAPACITY) {
        survey->nfresh++;

        if (survey->has_admitted) {
            return;     /* nothing to learn: spares the breaker's cache line */
        }
    }

    peer = &round->pool->peers[i];
    is_admitted = llmgw_peer_is_admitted(round->pool, peer,
                                         round->key->now_ms);

    if (lacks == LLMGW_LACKS_CAPACITY) {
        survey->has_admitted = is_admitted;
        return;
    }

    survey->has_pushed |= lacks == LLMGW_LACKS_TIME && is_admitted;
    survey->has_spare |= is_admitted
                         && llmgw_peer_has_capacity(peer, round->key->now_ms);
}


static void
survey_note_eligible(survey_t *survey, llmgw_round_t *round, uint32_t i)
{
    least_compare(&survey->least, round, i, survey->neligible == 0);
    order_note(round, i);

    survey->nfresh++;
    survey->neligible++;
    survey->has_admitted = 1;
}


static void
round_survey(llmgw_round_t *round, survey_t *survey)
{
    uint32_t       i;
    llmgw_lacks_t  lacks;

    *survey = (survey_t) { 0 };

    for (i = 0; i < round->pool->npeers; i++) {
        lacks = llmgw_peer_lacks(round->pool, round->key, round->state, i);

        if (lacks == LLMGW_LACKS_STATE) {
            continue;
        }

        survey->nusable++;

        if (lacks == LLMGW_LACKS_NOTHING) {
            survey_note_eligible(survey, round, i);

        } else {
            survey_note_lack(survey, round, i, lacks);
        }
    }
}


/* Returns 1: *picked is set; 0: *survey has what each peer lacks. */
static int
round_pick(llmgw_round_t *round, survey_t *survey, llmgw_picked_t *picked)
{
    if (order_first(round, picked)) {
        return 1;
    }

    round_survey(round, survey);

    if (survey->neligible == 0) {
        return 0;
    }

    if (!order_best(round, picked)) {
        *picked = (llmgw_picked_t) { survey->least.peer,
                                     LLMGW_ROUTE_LEAST_CONN };
    }

    return 1;
}


/*
 * Whether some peer of the round's state may have capacity later.  has_spare:
 * some peer has it now, which others can use and this request cannot.
 */
static llmgw_pick_rc_t
pick_wait(const survey_t *survey, int has_spare)
{
    if (!survey->has_admitted) {
        return LLMGW_PICK_PUSHED;
    }

    return has_spare ? LLMGW_PICK_SKIPPABLE : LLMGW_PICK_FULL;
}


/* Only if there are standbys that may be active by now. */
static int
pick_last(llmgw_round_t *round, survey_t *last, llmgw_picked_t *picked)
{
    *last = (survey_t) { 0 };

    if (round->pool->nstandbys == 0) {
        return 0;
    }

    round->state = LLMGW_PEER_LAST;

    return round_pick(round, last, picked);
}


/* No peer is eligible, and none lacks only capacity. */
static llmgw_pick_rc_t
pick_refuse(const llmgw_round_t *round, const survey_t *alive,
    const survey_t *suspect, const survey_t *last, llmgw_picked_t *picked)
{
    if (alive->nopen != 0 || suspect->nopen != 0) {
        picked->peer = alive->nopen != 0 ? alive->open : suspect->open;
        picked->route = round->pool->ranked != NULL
                        ? LLMGW_ROUTE_LEAST_CONN
                        : llmgw_walk_route(round->pool, round->key,
                                           picked->peer);
        return LLMGW_PICK_OPEN;
    }

    if (alive->nfresh != 0 || suspect->nfresh != 0) {
        return LLMGW_PICK_FULL_OPEN;
    }

    if (alive->nusable != 0 || suspect->nusable != 0 || last->nusable != 0) {
        return LLMGW_PICK_EXCLUDED;
    }

    return LLMGW_PICK_NONE;
}


llmgw_pick_rc_t
llmgw_pick(const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key,
    llmgw_picked_t *picked)
{
    survey_t       alive, suspect, last;
    llmgw_round_t  round = { .pool = pool, .key = key,
                             .state = LLMGW_PEER_ALIVE };

    if (round_pick(&round, &alive, picked)) {
        return LLMGW_PICK_OK;
    }

    if (alive.has_admitted || alive.has_pushed) {
        return pick_wait(&alive, alive.has_spare);
    }

    round.state = LLMGW_PEER_SUSPECT;

    if (round_pick(&round, &suspect, picked)) {
        return LLMGW_PICK_OK;
    }

    if (suspect.has_admitted || suspect.has_pushed) {
        return pick_wait(&suspect, alive.has_spare || suspect.has_spare);
    }

    if (pick_last(&round, &last, picked)) {
        return LLMGW_PICK_OK;
    }

    return pick_refuse(&round, &alive, &suspect, &last, picked);
}


/* 1: a request that excludes fewer peers could have this one. */
static int
pick_is_spare(const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key,
    const llmgw_pick_peer_t *peer)
{
    return (peer->state == LLMGW_PEER_ALIVE
            || peer->state == LLMGW_PEER_SUSPECT)
           && llmgw_peer_has_capacity(peer, key->now_ms)
           && llmgw_peer_is_admitted(pool, peer, key->now_ms);
}


llmgw_pick_rc_t
llmgw_pick_waits(const llmgw_pick_pool_t *pool, const llmgw_pick_key_t *key)
{
    int                       has_standby, has_spare;
    size_t                    i;
    const llmgw_pick_peer_t  *peer;

    has_standby = 0;
    has_spare = 0;

    for (i = 0; pool->nstandbys != 0 && i < pool->npeers; i++) {
        peer = &pool->peers[i];

        if (peer->state == LLMGW_PEER_STANDBY
            || peer->state == LLMGW_PEER_LAST)
        {
            has_standby |= llmgw_peer_is_able(peer, key);

        } else {
            has_spare = has_spare || pick_is_spare(pool, key, peer);
        }
    }

    if (!has_standby) {
        return LLMGW_PICK_NONE;
    }

    return has_spare ? LLMGW_PICK_SKIPPABLE : LLMGW_PICK_FULL;
}
