
/*
 * What the lock service's machine needs around it: clocks that only tests
 * advance, a lock file, a disk, and the lines sent to each connection.
 */

#ifndef T_UNIT_LOCK_SCENE_H
#define T_UNIT_LOCK_SCENE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "lock/machine.h"


#define SCENE_WALL_US    1700000000000000ULL
#define SCENE_PEERS      80
#define SCENE_TICK_MS    50
#define SCENE_STEP_MS    100

typedef struct {
    machine_engine_t  *engine;      /* NULL: the machine forgot it */
    unsigned           position;
    uint64_t           offered;     /* epoch of the last offer; 0: none */
    unsigned           noffers;
    uint64_t           granted;     /* 0: none */
    int                is_regrant;
    int                refused;     /* machine_rc_t of the last one */
    unsigned           npings;
    int                is_dropped;
} scene_peer_t;

typedef struct {
    machine_t        m;
    uint64_t         mono_us;
    uint64_t         wall_us;
    machine_file_t   file;
    int              disk_fails;
    unsigned         nkeeps;
    uint64_t         kept_epoch;        /* this epoch and holder are on disk */
    char             kept_holder[MACHINE_ID_BYTES];
    unsigned         nkilled;
    unsigned         nforgotten;
    unsigned         told[MACHINE_UNKNOWN + 1];
    uint64_t         given_up;          /* the last epoch given up; 0: none */
    scene_peer_t     peers[SCENE_PEERS];
} scene_t;


static uint64_t
scene_mono_us(void *data)
{
    return ((scene_t *) data)->mono_us;
}


static uint64_t
scene_wall_us(void *data)
{
    return ((scene_t *) data)->wall_us;
}


static machine_file_t
scene_file(void *data, const char *group)
{
    return ((scene_t *) data)->file;
}


static int
scene_keep(void *data)
{
    size_t    i;
    scene_t  *s = data;

    s->nkeeps++;

    if (s->disk_fails) {
        return -1;
    }

    s->kept_epoch = s->m.epoch;
    s->kept_holder[0] = '\0';

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        if (s->m.groups[i].holder != NULL) {
            strcpy(s->kept_holder, s->m.groups[i].holder->claim.engine);
        }
    }

    return 0;
}


static void
scene_queued(void *data, machine_engine_t *e, unsigned position)
{
    ((scene_peer_t *) e->peer)->position = position;
}


static void
scene_offer(void *data, machine_engine_t *e)
{
    ((scene_peer_t *) e->peer)->offered = e->claim.epoch;
    ((scene_peer_t *) e->peer)->noffers++;
}


/* When a grant is sent, it must be on disk. */
static void
scene_granted(void *data, machine_engine_t *e, int is_regrant)
{
    scene_t  *s = data;

    if (!s->disk_fails && !is_regrant) {
        assert_string_equal(s->kept_holder, e->claim.engine);
        assert_true(s->kept_epoch >= e->claim.epoch);
    }

    ((scene_peer_t *) e->peer)->granted = e->claim.epoch;
    ((scene_peer_t *) e->peer)->is_regrant = is_regrant;
}


static void
scene_refused(void *data, machine_engine_t *e, machine_rc_t why)
{
    ((scene_peer_t *) e->peer)->refused = (int) why;
}


static void
scene_ping(void *data, machine_engine_t *e)
{
    ((scene_peer_t *) e->peer)->npings++;
}


static void
scene_kill(void *data, machine_engine_t *e)
{
    ((scene_t *) data)->nkilled++;
}


static void
scene_drop(void *data, machine_engine_t *e)
{
    ((scene_peer_t *) e->peer)->is_dropped = 1;
    ((scene_peer_t *) e->peer)->engine = NULL;
    e->peer = NULL;
}


static void
scene_forget(void *data, machine_engine_t *e)
{
    size_t    i;
    scene_t  *s = data;

    s->nforgotten++;

    for (i = 0; i < SCENE_PEERS; i++) {
        if (s->peers[i].engine == e) {
            s->peers[i].engine = NULL;
        }
    }
}


static void
scene_tell(void *data, machine_event_t event, const machine_group_t *g,
    const machine_engine_t *e, const char *text)
{
    ((scene_t *) data)->told[event]++;
}


static void
scene_given_up(void *data, uint64_t epoch)
{
    ((scene_t *) data)->given_up = epoch;
}


static const machine_ops_t  scene_ops = {
    scene_mono_us, scene_wall_us, scene_file, scene_keep, scene_queued,
    scene_offer, scene_granted, scene_refused, scene_ping, scene_kill,
    scene_drop, scene_forget, scene_tell, scene_given_up
};

static const machine_settings_t  scene_settings = {
    .reconnect_window_ms = 10000,
    .hang_timeout_ms = 10000,
    .take_timeout_ms = 1000,
    .ping_interval_ms = 1000,
    .step_max_ms = SCENE_STEP_MS,
    .is_kill = 1
};


/* Lets time pass; the machine is called as often as its server
   would call it. */
static inline void
scene_pass(scene_t *s, uint64_t ms)
{
    uint64_t  step;

    for ( /* void */ ; ms > 0; ms -= step) {
        step = ms < SCENE_TICK_MS ? ms : SCENE_TICK_MS;
        s->mono_us += step * 1000;
        s->wall_us += step * 1000;
        machine_tick(&s->m);
    }
}


static inline machine_claim_t
scene_claim(const char *engine)
{
    machine_claim_t  claim = { 0 };

    strcpy(claim.group, "g");
    strcpy(claim.engine, engine);
    snprintf(claim.nonce, sizeof(claim.nonce), "%016x", (unsigned) engine[0]);
    claim.pid = 1000 + engine[0];
    claim.start_ticks = 7;
    claim.waking_timeout_ms = 60000;
    claim.can_be_killed = 1;

    return claim;
}


/* A new connection acquires; if it is accepted, its process is counted. */
static inline machine_rc_t
scene_come(scene_t *s, scene_peer_t *peer, const machine_claim_t *claim)
{
    machine_rc_t  rc;

    memset(peer, 0, sizeof(scene_peer_t));
    rc = machine_acquire(&s->m, peer, claim, &peer->engine);

    if (rc == MACHINE_OK && peer->engine->nprocesses == 0) {
        assert_int_equal(machine_process_add(peer->engine), MACHINE_OK);
    }

    return rc;
}


static inline scene_peer_t *
scene_waiter(scene_t *s, const char *engine)
{
    scene_peer_t     *peer;
    machine_claim_t   claim;

    peer = &s->peers[engine[0] - 'a'];
    claim = scene_claim(engine);
    assert_int_equal(scene_come(s, peer, &claim), MACHINE_OK);

    return peer;
}


static inline void
scene_take(scene_t *s, scene_peer_t *peer)
{
    machine_take(&s->m, peer->engine, peer->offered);
}


static inline scene_peer_t *
scene_holder(scene_t *s, const char *engine)
{
    scene_peer_t  *peer;

    peer = scene_waiter(s, engine);
    scene_take(s, peer);
    assert_true(peer->granted != 0);

    return peer;
}


static inline void
scene_close(scene_t *s, scene_peer_t *peer)
{
    machine_engine_t  *e;

    e = peer->engine;
    peer->engine = NULL;
    machine_closed(&s->m, e);
}


static inline void
scene_begin(scene_t *s, const machine_settings_t *settings, uint64_t epoch,
    int is_known)
{
    machine_init(&s->m, settings, &scene_ops, s, epoch, is_known);
}


static inline machine_group_t *
scene_group(scene_t *s)
{
    return &s->m.groups[0];
}

static inline int
scene_setup(void **state)
{
    scene_t  *s;

    s = calloc(1, sizeof(scene_t));
    s->mono_us = 5000000;
    s->wall_us = SCENE_WALL_US;
    scene_begin(s, &scene_settings, 0, 1);
    *state = s;

    return 0;
}


static inline int
scene_teardown(void **state)
{
    scene_t  *s;

    s = *state;
    machine_done(&s->m);
    free(s);

    return 0;
}


#define TEST(name)                                                            \
    cmocka_unit_test_setup_teardown(name, scene_setup, scene_teardown)

#endif /* T_UNIT_LOCK_SCENE_H */
