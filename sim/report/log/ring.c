
/*
 * A choice by the ring with bounded load, made once more.
 *
 * The ring is a function of ids, weights and vnodes, which the log has; so are
 * load and eligibility of each replica.  What made a replica ineligible is
 * made again in the peers that the pick is asked with: one that was excluded
 * belongs to another resume group, one that was full has said so, and one
 * whose circuit refused has an open breaker.
 */

#include <stdlib.h>
#include <string.h>

#include "sim/report/log/replay.h"


#define RING_GROUP  1                   /* of those not excluded */
#define RING_NOW    1

static const llmgw_breaker_conf_t  ring_breakers = {
    .window_ms = 10000, .cooldown_ms = 60000, .max_cooldown_ms = 60000,
    .min_requests = 1, .error_permille = 1, .probes = 1, .enabled = 1
};

static const llmgw_breaker_t  ring_open = {
    .state = LLMGW_BREAKER_OPEN, .since_ms = RING_NOW, .cooldown_ms = 60000
};


static void
ring_free(report_ring_t *ring)
{
    free(ring->whole);
    free(ring->nodes);
    free(ring->ids);
    memset(ring, 0, sizeof(*ring));
}


static int
ring_is_of(const report_ring_t *ring, const report_log_entry_t *e)
{
    uint32_t  i;

    if (ring->whole == NULL || ring->n != e->n
        || ring->vnodes != e->pool->ring.vnodes)
    {
        return 0;
    }

    for (i = 0; i < e->n; i++) {
        if (ring->nodes[i].weight != e->candidates[i].weight
            || strcmp(ring->nodes[i].id, e->candidates[i].id) != 0)
        {
            return 0;
        }
    }

    return 1;
}


static int
ring_nodes(report_ring_t *ring, const report_log_entry_t *e)
{
    char      *id;
    uint32_t   i;

    ring->n = e->n;
    ring->vnodes = e->pool->ring.vnodes;
    ring->nodes = calloc(e->n, sizeof(*ring->nodes));
    ring->ids = calloc(e->n, REPORT_LOG_NAME_BYTES);

    if (ring->nodes == NULL || ring->ids == NULL) {
        return -1;
    }

    for (i = 0; i < e->n; i++) {
        id = ring->ids + (size_t) i * REPORT_LOG_NAME_BYTES;
        memcpy(id, e->candidates[i].id, REPORT_LOG_NAME_BYTES);
        ring->nodes[i].id = id;
        ring->nodes[i].id_len = strlen(id);
        ring->nodes[i].weight = e->candidates[i].weight;
    }

    return 0;
}


static report_replay_rc_t
ring_build(report_ring_t *ring, const report_log_entry_t *e)
{
    void                *builder;
    llmgw_ring_bytes_t   bytes;

    if (ring_is_of(ring, e)) {
        return REPORT_REPLAYED;
    }

    ring_free(ring);

    if (ring_nodes(ring, e) != 0) {
        return REPORT_REPLAY_NO_MEMORY;
    }

    bytes = llmgw_ring_bytes(NULL, ring->nodes, ring->n, ring->vnodes);

    if (bytes.ring == 0) {
        return REPORT_REPLAY_LACKS;
    }

    ring->whole = malloc(bytes.ring);
    builder = malloc(bytes.builder);

    if (ring->whole == NULL || builder == NULL) {
        free(builder);
        ring_free(ring);
        return REPORT_REPLAY_NO_MEMORY;
    }

    llmgw_ring_init(ring->whole, builder, NULL, NULL, ring->nodes, ring->n,
                    ring->vnodes);

    while (!llmgw_ring_build(ring->whole, SIZE_MAX)) {
        /* void */
    }

    free(builder);

    return REPORT_REPLAYED;
}


static int
ring_grow(report_replay_t *r, uint32_t n)
{
    if (n > r->max_peers) {
        free(r->peers);
        free(r->counts);
        r->peers = calloc(n, sizeof(*r->peers));
        r->counts = calloc(n, sizeof(*r->counts));
        r->max_peers = r->peers == NULL || r->counts == NULL ? 0 : n;
    }

    return n <= r->max_peers ? 0 : -1;
}


static void
ring_peer(const report_log_candidate_t *c, const llmgw_candidate_t *facts,
    llmgw_pick_peer_t *peer, llmgw_peer_counts_t *counts)
{
    memset(peer, 0, sizeof(*peer));

    counts->in_flight = (uint32_t) facts->in_flight;
    peer->counts = counts;
    peer->foreign = c->foreign;
    peer->weight = c->weight;
    peer->state = (uint8_t) c->state;
    peer->resume_group = c->lacks == LLMGW_LACKS_TRUST ? 0 : RING_GROUP;
    peer->full_until_ms = c->lacks == LLMGW_LACKS_CAPACITY ? UINT64_MAX : 0;
    peer->breaker = c->is_open ? &ring_open : NULL;
}


static int
ring_has_all(const report_log_entry_t *e)
{
    uint32_t  i;

    if (e->n == 0 || e->n != e->of || !e->has_key || !e->has_random) {
        return 0;
    }

    for (i = 0; i < e->n; i++) {
        if (!e->candidates[i].has_ring || e->candidates[i].weight == 0) {
            return 0;
        }
    }

    return 1;
}


static uint32_t
ring_pick(report_replay_t *r, const report_log_entry_t *e)
{
    uint32_t            i;
    llmgw_picked_t      picked;
    llmgw_pick_sums_t   sums;
    llmgw_pick_key_t    key = { .hash = e->key, .random = e->random,
                                .now_ms = RING_NOW, .resumes = 1,
                                .resume_group = RING_GROUP };
    llmgw_pick_pool_t   pool = { .ring = r->ring.whole, .peers = r->peers,
                                 .npeers = e->n,
                                 .breaker_conf = &ring_breakers };

    pool.load_factor_permille = e->pool->ring.load_factor_permille;
    pool.min_load = e->pool->ring.min_load;

    for (i = 0; i < e->n; i++) {
        ring_peer(&e->candidates[i], &e->facts[i], &r->peers[i],
                  &r->counts[i]);
    }

    if (e->has_sums) {
        sums = e->sums;
        sums.now_ms = RING_NOW;
        sums.state = LLMGW_PEER_ALIVE;
        pool.sums = &sums;
    }

    return llmgw_pick(&pool, &key, &picked) == LLMGW_PICK_OK
           ? picked.peer : LLMGW_RANK_NONE;
}


report_replay_rc_t
report_replay_ring(report_replay_t *replay, const report_log_entry_t *entry,
    uint32_t *best)
{
    uint32_t            i;
    report_replay_rc_t  rc;

    if (!ring_has_all(entry)) {
        return REPORT_REPLAY_LACKS;
    }

    if (ring_grow(replay, entry->n) != 0
        || report_replay_grow(replay, entry->n) != 0)
    {
        return REPORT_REPLAY_NO_MEMORY;
    }

    rc = ring_build(&replay->ring, entry);

    if (rc != REPORT_REPLAYED) {
        return rc;
    }

    *best = ring_pick(replay, entry);

    for (i = 0; i < entry->n; i++) {
        replay->ranks[i] = i == *best;
    }

    return REPORT_REPLAYED;
}


void
report_ring_done(report_replay_t *replay)
{
    ring_free(&replay->ring);
    free(replay->peers);
    free(replay->counts);
}
