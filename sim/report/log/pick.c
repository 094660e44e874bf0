
/*
 * Repeats a choice that core's pick made: by the ring with bounded load, or,
 * with any policy, a choice that no rank decided.
 *
 * The log has load and eligibility of each replica.  What made a replica
 * ineligible is reproduced in the peers that are passed to the pick: an
 * excluded one gets another resume group, one that was full or pushed the
 * request back is marked as full, and one whose circuit refused gets a breaker
 * that is open or being probed.
 */

#include <stdlib.h>
#include <string.h>

#include "core/policy/ranked.h"
#include "sim/report/log/replay.h"


#define PICK_GROUP  1                   /* of replicas not excluded */
#define PICK_NOW    1

static const llmgw_full_t  pick_full = { .until_ms = UINT64_MAX };

static const llmgw_breaker_conf_t  pick_breakers = {
    .window_ms = 10000, .cooldown_ms = 60000, .max_cooldown_ms = 60000,
    .min_requests = 1, .error_permille = 1, .probes = 1, .enabled = 1
};


static int
pick_grow(report_replay_t *r, uint32_t n)
{
    if (n > r->max_peers) {
        free(r->peers);
        free(r->counts);
        free(r->breakers);
        r->peers = calloc(n, sizeof(*r->peers));
        r->counts = calloc(n, sizeof(*r->counts));
        r->breakers = calloc(n, sizeof(*r->breakers));
        r->max_peers = r->peers == NULL || r->counts == NULL
                       || r->breakers == NULL ? 0 : n;
    }

    return n <= r->max_peers ? 0 : -1;
}


/* Makes a breaker that refuses at PICK_NOW. */
static void
pick_breaker(const report_log_candidate_t *c, llmgw_breaker_t *breaker)
{
    memset(breaker, 0, sizeof(*breaker));

    breaker->since_ms = PICK_NOW;

    if (c->has_retry && c->retry_ms == 0) {
        breaker->state = LLMGW_BREAKER_HALF_OPEN;
        breaker->probing = pick_breakers.probes;
        return;
    }

    breaker->state = LLMGW_BREAKER_OPEN;
    breaker->cooldown_ms = c->has_retry ? (uint64_t) c->retry_ms
                                        : pick_breakers.cooldown_ms;
}


static void
pick_peer(report_replay_t *r, const report_log_entry_t *e, uint32_t i)
{
    llmgw_pick_peer_t             *peer;
    const report_log_candidate_t  *c;

    c = &e->candidates[i];
    peer = &r->peers[i];
    memset(peer, 0, sizeof(*peer));

    r->counts[i].in_flight = (uint32_t) e->facts[i].in_flight;
    peer->counts = &r->counts[i];
    peer->foreign = c->foreign;
    peer->weight = c->weight;
    peer->state = (uint8_t) c->state;
    peer->resume_group = c->lacks == LLMGW_LACKS_TRUST ? 0 : PICK_GROUP;
    peer->full = c->lacks == LLMGW_LACKS_CAPACITY
                 || c->lacks == LLMGW_LACKS_TIME ? &pick_full : NULL;

    if (c->is_open) {
        pick_breaker(c, &r->breakers[i]);
        peer->breaker = &r->breakers[i];
    }
}


/*
 * Whether the log has all that the pick read.  A choice that was forced because
 * all circuits were open needs the times of all circuits.
 */
static int
pick_has_all(const report_log_entry_t *e)
{
    int                            is_forced;
    uint32_t                       i;
    const report_log_candidate_t  *c;

    if (e->n == 0 || e->n != e->of || !e->has_random) {
        return 0;
    }

    is_forced = e->candidates[e->chosen].has_failed;

    for (i = 0; i < e->n; i++) {
        c = &e->candidates[i];

        if (!c->has_pick || c->weight == 0
            || (is_forced && c->is_open && !c->has_retry))
        {
            return 0;
        }
    }

    return 1;
}


static uint32_t
pick_ask(const llmgw_pick_pool_t *pool, const report_log_entry_t *e)
{
    llmgw_picked_t    picked;
    llmgw_pick_rc_t   rc;
    llmgw_pick_key_t  key = { .hash = e->key, .random = e->random,
                              .now_ms = PICK_NOW, .resumes = 1,
                              .resume_group = PICK_GROUP };

    rc = llmgw_pick(pool, &key, &picked);

    if (rc == LLMGW_PICK_OPEN && e->candidates[e->chosen].has_failed) {
        return picked.peer;
    }

    return rc == LLMGW_PICK_OK ? picked.peer : LLMGW_RANK_NONE;
}


static uint32_t
pick_by_ring(llmgw_pick_pool_t *pool, const report_replay_t *r,
    const report_log_entry_t *e)
{
    llmgw_pick_sums_t  sums;

    pool->ring = r->ring.whole;
    pool->load_factor_permille = e->pool->ring.load_factor_permille;
    pool->min_load = e->pool->ring.min_load;

    if (e->has_sums) {
        sums = e->sums;
        sums.now_ms = PICK_NOW;
        sums.state = LLMGW_PEER_ALIVE;
        pool->sums = &sums;
    }

    return pick_ask(pool, e);
}


/* Picks without ranks, since no candidate with a rank was available. */
static uint32_t
pick_without_ranks(llmgw_pick_pool_t *pool, const report_log_entry_t *e)
{
    llmgw_ranked_t  ranked;

    llmgw_ranked_init(&ranked, LLMGW_PEER_ALIVE, NULL, NULL, 0, NULL);
    pool->ranked = &ranked;

    return pick_ask(pool, e);
}


report_replay_rc_t
report_replay_pick(report_replay_t *replay, const report_log_entry_t *entry,
    uint32_t *best)
{
    int                 is_ring;
    uint32_t            i;
    llmgw_pick_pool_t   pool;
    report_replay_rc_t  rc;

    is_ring = entry->pool->how == REPORT_LOG_BY_RING;

    if (!pick_has_all(entry) || (is_ring && !entry->has_key)) {
        return REPORT_REPLAY_LACKS;
    }

    if (pick_grow(replay, entry->n) != 0
        || report_replay_grow(replay, entry->n) != 0)
    {
        return REPORT_REPLAY_NO_MEMORY;
    }

    rc = is_ring ? report_ring_build(&replay->ring, entry) : REPORT_REPLAYED;

    if (rc != REPORT_REPLAYED) {
        return rc;
    }

    memset(&pool, 0, sizeof(pool));
    pool.peers = replay->peers;
    pool.npeers = entry->n;
    pool.breaker_conf = &pick_breakers;

    for (i = 0; i < entry->n; i++) {
        pick_peer(replay, entry, i);
        pool.nstandbys += replay->peers[i].state == LLMGW_PEER_LAST;
    }

    *best = is_ring ? pick_by_ring(&pool, replay, entry)
                    : pick_without_ranks(&pool, entry);

    for (i = 0; i < entry->n; i++) {
        replay->ranks[i] = i == *best;
    }

    return REPORT_REPLAYED;
}


void
report_pick_done(report_replay_t *replay)
{
    report_ring_free(&replay->ring);
    free(replay->peers);
    free(replay->counts);
    free(replay->breakers);
}
