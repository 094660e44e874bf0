
/* A pool of peers, a request and its ring, for the tests of the pick. */

#ifndef PICK_SCENE_H
#define PICK_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/policy/pick.h"
#include "t/unit/core/ring/ring_fleet.h"


#define PEERS_MAX  64
#define NOBODY     UINT32_MAX

#define ALIVE     LLMGW_PEER_ALIVE
#define SUSPECT   LLMGW_PEER_SUSPECT
#define UNUSABLE  LLMGW_PEER_UNUSABLE

/* A pool, one request, and their state. */
typedef struct {
    llmgw_pick_pool_t     pool;
    llmgw_pick_key_t      key;
    llmgw_picked_t        picked;
    llmgw_ring_t         *ring;
    llmgw_pick_peer_t     peers[PEERS_MAX];
    llmgw_peer_counts_t   counts[PEERS_MAX];
    llmgw_full_t          fulls[PEERS_MAX];
    llmgw_breaker_t       breakers[PEERS_MAX];   /* no peer has one at first */
    llmgw_breaker_conf_t  breaker_conf;
    uint32_t              excluded[PEERS_MAX];
    uint32_t              pushed[PEERS_MAX];
    llmgw_pushed_t        told;             /* pushed[], for key.pushed */
    uint32_t              order[PEERS_MAX]; /* distinct, clockwise of key */
    size_t                norder;
} scene_t;


static inline llmgw_ring_t *
ring_of(size_t n, const llmgw_pick_peer_t *peers, uint32_t vnodes)
{
    char                ids[PEERS_MAX][16];
    size_t             i;
    llmgw_ring_node_t  nodes[PEERS_MAX];

    for (i = 0; i < n; i++) {
        nodes[i].id = ids[i];
        nodes[i].id_len = (size_t) snprintf(ids[i], sizeof(ids[i]), "r%d",
                                            (int) i + 1);
        nodes[i].weight = peers[i].weight;
    }

    return whole_ring(nodes, n, vnodes, 1000);
}


static inline void
scene_set_key(scene_t *scene, uint64_t hash)
{
    size_t    i, k, first, npoints;
    uint32_t  node;

    scene->key.hash = hash;
    scene->norder = 0;

    npoints = llmgw_ring_npoints(scene->ring);

    if (npoints == 0) {
        return;
    }

    first = llmgw_ring_find(scene->ring, hash);

    for (i = 0; i < npoints; i++) {
        node = llmgw_ring_node(scene->ring, (first + i) % npoints);

        for (k = 0; k < scene->norder; k++) {
            if (scene->order[k] == node) {
                break;
            }
        }

        if (k == scene->norder) {
            scene->order[scene->norder++] = node;
        }
    }
}


/* n live, idle peers of weight 1, without limits */
static inline void
scene_init(scene_t *scene, size_t n)
{
    size_t  i;

    memset(scene, 0, sizeof(scene_t));

    for (i = 0; i < n; i++) {
        scene->peers[i].counts = &scene->counts[i];
        scene->peers[i].full = &scene->fulls[i];
        scene->peers[i].weight = 1;
        scene->peers[i].state = ALIVE;
    }

    scene->ring = ring_of(n, scene->peers, 150);

    scene->pool.ring = scene->ring;
    scene->pool.peers = scene->peers;
    scene->pool.npeers = n;
    scene->pool.breaker_conf = &scene->breaker_conf;
    scene->pool.load_factor_permille = 1250;
    scene->pool.min_load = 8;

    scene->breaker_conf.cooldown_ms = 500;
    scene->breaker_conf.max_cooldown_ms = 4000;
    scene->breaker_conf.probes = 1;
    scene->breaker_conf.enabled = 1;

    scene->key.excluded = scene->excluded;
    scene->key.now_ms = 1000;
    scene->key.random = 1;

    scene_set_key(scene, 0x123456789abcdefull);
}


static inline void
scene_done(scene_t *scene)
{
    free(scene->ring);
}


/* Opens the peer's circuit at since_ms, with a cooldown of 500 ms. */
static inline void
scene_open(scene_t *scene, uint32_t peer, uint64_t since_ms)
{
    scene->peers[peer].breaker = &scene->breakers[peer];
    scene->breakers[peer].state = LLMGW_BREAKER_OPEN;
    scene->breakers[peer].since_ms = since_ms;
    scene->breakers[peer].cooldown_ms = scene->breaker_conf.cooldown_ms;
}


static inline void
scene_exclude(scene_t *scene, uint32_t peer)
{
    scene->excluded[scene->key.nexcluded++] = peer;
}


static inline void
assert_picks(scene_t *scene, uint32_t peer, llmgw_route_t route)
{
    scene->picked.peer = NOBODY;

    assert_int_equal(llmgw_pick(&scene->pool, &scene->key, &scene->picked),
                     LLMGW_PICK_OK);
    assert_int_equal(scene->picked.peer, peer);
    assert_int_equal(scene->picked.route, route);
}


static inline void
assert_refuses(scene_t *scene, llmgw_pick_rc_t rc)
{
    llmgw_picked_t  before = { NOBODY, LLMGW_ROUTE_SPILL };

    scene->picked = before;

    assert_int_equal(llmgw_pick(&scene->pool, &scene->key, &scene->picked),
                     rc);
    assert_int_equal(scene->picked.peer, before.peer);
    assert_int_equal(scene->picked.route, before.route);
}

#endif /* PICK_SCENE_H */
