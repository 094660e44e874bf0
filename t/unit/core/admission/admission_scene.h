
/*
 * For the tests of admission: a pool of a few replicas, in memory that
 * processes share.
 */

#ifndef ADMISSION_SCENE_H
#define ADMISSION_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "core/admission/admission.h"
#include "t/unit/core/ring/ring_fleet.h"


#define PEERS     3
#define SLOTS     4
#define ROWS      4
#define WAITERS   12            /* entries of the queue */
#define CAPACITY  2             /* of each replica */
#define QUEUE     8             /* its size */

typedef struct {
    llmgw_admission_t       *shared;
    size_t                   bytes;
    llmgw_admission_view_t   view;
    llmgw_pick_peer_t        peers[PEERS];
    llmgw_place_t            places[PEERS];
    llmgw_breaker_conf_t     breaker_conf;
    llmgw_ring_t            *ring;
    uint64_t                 now_ms;
} scene_t;


static inline const char *
scene_id(uint32_t peer)
{
    static const char  *ids[] = { "r0", "r1", "r2", "r3", "r4" };

    return ids[peer];
}


/* Sets up a slot as a worker does for a replica of its view. */
static inline void
scene_attach(scene_t *scene, uint32_t peer)
{
    uint32_t       i;
    llmgw_slot_t  *slot;

    i = llmgw_slots_attach(scene->shared, scene_id(peer), 2, scene->now_ms);
    assert_int_not_equal(i, LLMGW_NO_SLOT);

    slot = llmgw_slot(scene->shared, i);
    scene->places[peer].slot = i;
    scene->places[peer].generation = slot->generation;
    scene->peers[peer].counts = &slot->counts;
    scene->peers[peer].breaker = &slot->breaker;
    scene->peers[peer].full = &slot->full;
}


/* The time until which that replica is marked full. */
static inline uint64_t *
scene_full(scene_t *scene, uint32_t peer)
{
    return &llmgw_slot(scene->shared,
                       scene->places[peer].slot)->full.until_ms;
}


static inline void
scene_make_ring(scene_t *scene)
{
    uint32_t           i;
    llmgw_ring_node_t  nodes[PEERS];

    for (i = 0; i < PEERS; i++) {
        nodes[i].id = scene_id(i);
        nodes[i].id_len = 2;
        nodes[i].weight = 1;
    }

    scene->ring = whole_ring(nodes, PEERS, 20, 1000);
}


static inline void
scene_init(scene_t *scene)
{
    uint32_t                i;
    void                   *memory;
    llmgw_admission_size_t  size = { ROWS, SLOTS, sizeof(llmgw_slot_t),
                                     WAITERS, 0 };

    memset(scene, 0, sizeof(scene_t));

    scene->bytes = llmgw_admission_bytes(&size);
    memory = mmap(NULL, scene->bytes, PROT_READ|PROT_WRITE,
                  MAP_SHARED|MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(memory, MAP_FAILED);

    scene->shared = llmgw_admission_init(memory, &size);
    scene->now_ms = 1000;

    scene->breaker_conf = (llmgw_breaker_conf_t) {
        .window_ms = 10000, .cooldown_ms = 500, .max_cooldown_ms = 4000,
        .min_requests = 2, .error_permille = 500, .probes = 1, .enabled = 1
    };

    for (i = 0; i < PEERS; i++) {
        scene->peers[i].weight = 1;
        scene->peers[i].max_capacity = CAPACITY;
        scene->peers[i].state = LLMGW_PEER_ALIVE;
        scene_attach(scene, i);
    }

    scene_make_ring(scene);

    scene->view.pick.ring = scene->ring;
    scene->view.pick.peers = scene->peers;
    scene->view.pick.npeers = PEERS;
    scene->view.pick.breaker_conf = &scene->breaker_conf;
    scene->view.pick.load_factor_permille = 1250;
    scene->view.pick.min_load = 8;
    scene->view.places = scene->places;
    scene->view.queue_size = QUEUE;
    scene->view.hedge_budget_permille = 1000;
}


static inline void
scene_done(scene_t *scene)
{
    free(scene->ring);
    (void) munmap(scene->shared, scene->bytes);
}


static inline int
scene_setup(void **state)
{
    static scene_t  scene;

    scene_init(&scene);
    *state = &scene;

    return 0;
}


static inline int
scene_teardown(void **state)
{
    scene_done(*state);

    return 0;
}

/* A test with a new scene of its own. */
#define SCENE_TEST(name)                                                      \
    cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)


static inline llmgw_admission_self_t
scene_self(const scene_t *scene, uint32_t row)
{
    return (llmgw_admission_self_t) { scene->shared, row, 100 + row };
}


/* A claim by number; neighbouring numbers are far apart on the ring. */
static inline llmgw_claim_t
scene_claim(uint64_t number)
{
    return (llmgw_claim_t) { .hash = number * 0x9e3779b97f4a7c15ull,
                             .entry = LLMGW_QUEUE_NONE };
}


/* Makes the claim, or asks whether it is granted; details in *answer. */
static inline llmgw_admission_rc_t
scene_ask(const scene_t *scene, uint32_t row, llmgw_claim_t *claim,
    llmgw_lease_t *lease, llmgw_admission_answer_t *answer)
{
    llmgw_admission_self_t  self = scene_self(scene, row);

    llmgw_admission_claim(&self, &scene->view, claim, lease, scene->now_ms,
                          claim->hash * 7919 + 1, answer);

    return answer->rc;
}


/* A new request of that row gets a lease, in *lease. */
static inline void
scene_lease(const scene_t *scene, uint32_t row, uint64_t number,
    llmgw_lease_t *lease)
{
    llmgw_claim_t             claim = scene_claim(number);
    llmgw_admission_answer_t  answer;

    assert_int_equal(scene_ask(scene, row, &claim, lease, &answer),
                     LLMGW_ADMISSION_LEASED);
}


/* A new request of that row is queued. */
static inline llmgw_claim_t
scene_wait(const scene_t *scene, uint32_t row, uint64_t number)
{
    llmgw_lease_t             lease = { .is_held = 0 };
    llmgw_claim_t             claim = scene_claim(number);
    llmgw_admission_answer_t  answer;

    assert_int_equal(scene_ask(scene, row, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);

    return claim;
}


static inline llmgw_wake_t
scene_end(const scene_t *scene, uint32_t row, llmgw_lease_t *lease,
    llmgw_verdict_t verdict)
{
    llmgw_admission_end_t   end;
    llmgw_admission_self_t  self = scene_self(scene, row);

    llmgw_admission_end(&self, &scene->breaker_conf, lease, verdict,
                        scene->now_ms, &end);

    return end.wake;
}


static inline uint32_t
scene_in_flight(const scene_t *scene)
{
    uint32_t  i, n;

    n = 0;

    for (i = 0; i < scene->shared->nslots; i++) {
        n += llmgw_slot(scene->shared, i)->counts.in_flight;
    }

    return n;
}

#endif /* ADMISSION_SCENE_H */
