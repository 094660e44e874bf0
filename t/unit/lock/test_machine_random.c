
/*
 * Random schedules of engines and services that die, stop, and lose each
 * other, in fake time.  Engines obey the protocol and take the lock file as
 * real ones do; what is asserted concerns engines, and not the machine:
 *
 *   one        no two engines live that were granted; if the state file was
 *              deleted, the second one fails to lock the lock file, and ends
 *   gone       at a grant every process of each earlier holder is dead
 *   epochs     a grant's epoch is above all before, whatever was deleted
 *   progress   once nothing fails any more, one of the live engines serves
 *
 * The two keys guard each other here: a machine that forgets one of them is
 * still saved by the other.  test_machine*.c test each by itself.
 *
 * LLMGW_SIM_SEEDS sets how many schedules there are.
 */

#include "t/unit/lock/scene.h"
#include "common/rnd.h"


#define ENGINES    5
#define PROCESSES  3        /* at most, of an engine */
#define STEPS      1500

typedef struct {
    scene_peer_t     peer;          /* what the service sends to it */
    int              is_up;         /* its main process runs */
    int              is_stopped;
    int              is_connected;
    int              nprocesses;    /* not dead yet */
    int              is_main_dead;
    unsigned         nworkers;      /* that the service knows of */
    int              has_lock;      /* until its last process is dead */
    uint64_t         epoch;         /* that it was granted; 0: none */
    uint64_t         lives;         /* its nonce */
} engine_t;

typedef struct {
    scene_t   s;                    /* first, as the machine's data */
    rnd_t     rnd;
    int       is_service_up;
    int       is_file_kept;         /* the state file was never deleted */
    engine_t  engines[ENGINES];
    uint64_t  greatest;             /* the greatest epoch granted */
    unsigned  ngrants;
    uint64_t  kept_epoch;           /* the state file */
    machine_claim_t  kept;          /* epoch 0: no holder */
    int       kept_index;
} world_t;


static unsigned
draw(world_t *w, unsigned n)
{
    return (unsigned) (rnd_next(&w->rnd) % n);
}


static int
is_all_dead(const engine_t *e)
{
    return !e->is_up && e->nprocesses == 0;
}


/* --- what the machine asks for */

static machine_file_t
world_file(void *data, const char *group)
{
    int       i;
    world_t  *w = data;

    for (i = 0; i < ENGINES; i++) {
        if (w->engines[i].has_lock) {
            return MACHINE_FILE_HELD;
        }
    }

    return MACHINE_FILE_FREE;
}


static int
world_keep(void *data)
{
    world_t                 *w = data;
    const machine_group_t   *g;

    g = &w->s.m.groups[0];
    w->kept_epoch = w->s.m.epoch;
    memset(&w->kept, 0, sizeof(w->kept));

    if (g->holder != NULL) {
        w->kept = g->holder->claim;
    }

    return 0;
}


static void
world_granted(void *data, machine_engine_t *e, int is_regrant)
{
    int        i;
    world_t   *w = data;
    engine_t  *one, *other;

    scene_granted(&w->s, e, 1);

    if (is_regrant) {
        return;
    }

    w->ngrants++;
    assert_true(e->claim.epoch > w->greatest);
    w->greatest = e->claim.epoch;
    one = (engine_t *) ((char *) e->peer - offsetof(engine_t, peer));

    for (i = 0; i < ENGINES; i++) {
        other = &w->engines[i];

        assert_true(other == one || other->epoch == 0 || is_all_dead(other));
    }
}


static void
world_kill(void *data, machine_engine_t *e)
{
    int        i;
    world_t   *w = data;

    for (i = 0; i < ENGINES; i++) {
        if (w->engines[i].lives == strtoull(e->claim.nonce, NULL, 16)) {
            w->engines[i].is_up = 0;
        }
    }
}


static void
world_drop(void *data, machine_engine_t *e)
{
    engine_t  *engine;

    engine = (engine_t *) ((char *) e->peer - offsetof(engine_t, peer));
    engine->peer.engine = NULL;
    engine->is_connected = 0;
    e->peer = NULL;
}


static void
world_forget(void *data, machine_engine_t *e)
{
    int       i;
    world_t  *w = data;

    for (i = 0; i < ENGINES; i++) {
        if (w->engines[i].peer.engine == e) {
            w->engines[i].peer.engine = NULL;
        }
    }
}


static const machine_ops_t  world_ops = {
    scene_mono_us, scene_wall_us, world_file, world_keep, scene_queued,
    scene_offer, world_granted, scene_refused, scene_ping, world_kill,
    world_drop, world_forget, scene_tell, scene_given_up
};


/* --- engines */

static machine_claim_t
engine_claim(const world_t *w, const engine_t *e)
{
    machine_claim_t  claim = { 0 };

    strcpy(claim.group, "g");
    snprintf(claim.engine, sizeof(claim.engine), "e%d",
             (int) (e - w->engines));
    snprintf(claim.nonce, sizeof(claim.nonce), "%016llx",
             (unsigned long long) e->lives);
    claim.pid = (pid_t) e->lives;
    claim.epoch = e->epoch;
    claim.last_epoch = e->epoch;
    claim.waking_timeout_ms = 60000;
    claim.can_be_killed = 1;

    return claim;
}


static machine_engine_t *
engine_known(world_t *w, const engine_t *e)
{
    machine_group_t   *g;
    machine_engine_t  *known;

    g = &w->s.m.groups[0];

    if (g->holder != NULL
        && strtoull(g->holder->claim.nonce, NULL, 16) == e->lives)
    {
        return g->holder;
    }

    for (known = g->queue; known != NULL; known = known->next) {
        if (strtoull(known->claim.nonce, NULL, 16) == e->lives) {
            return known;
        }
    }

    return NULL;
}


static void
engine_start(world_t *w, engine_t *e)
{
    uint64_t  lives;

    lives = w->s.mono_us + (uint64_t) (e - w->engines) + 1;
    memset(e, 0, sizeof(engine_t));
    e->is_up = 1;
    e->nprocesses = 1 + (int) draw(w, PROCESSES);
    e->lives = lives;
}


static void
engine_connect(world_t *w, engine_t *e)
{
    int               i;
    machine_rc_t      rc;
    machine_claim_t   claim;

    claim = engine_claim(w, e);
    memset(&e->peer, 0, sizeof(scene_peer_t));
    rc = machine_acquire(&w->s.m, &e->peer, &claim, &e->peer.engine);

    if (rc != MACHINE_OK) {
        return;
    }

    e->is_connected = 1;

    for (i = (int) e->peer.engine->nprocesses; i < e->nprocesses; i++) {
        assert_int_equal(machine_process_add(e->peer.engine), MACHINE_OK);
    }

    e->nworkers = e->peer.engine->nprocesses - 1;
}


/* After GRANTED the engine takes the lock file, the second key, or it ends. */
static void
engine_wake(world_t *w, engine_t *e)
{
    e->epoch = e->peer.granted;

    if (!e->has_lock) {
        if (world_file(w, "g") == MACHINE_FILE_HELD) {
            assert_false(w->is_file_kept);
            e->is_up = 0;
            return;
        }

        e->has_lock = 1;
    }
}


/* Lets a running engine act. */
static void
engine_run(world_t *w, engine_t *e)
{
    if (!e->is_up || e->is_stopped || !w->is_service_up) {
        return;
    }

    if (!e->is_connected) {
        if (draw(w, 3) == 0) {
            engine_connect(w, e);
        }

        return;
    }

    if (e->peer.granted != 0 && !e->has_lock) {
        engine_wake(w, e);

    } else if (e->peer.offered != 0 && e->epoch == 0) {
        machine_heard(&w->s.m, e->peer.engine);
        machine_take(&w->s.m, e->peer.engine, e->peer.offered);
        e->peer.offered = 0;
    }

    if (e->is_connected && e->is_up) {
        machine_heard(&w->s.m, e->peer.engine);
        machine_pong(&w->s.m, e->peer.engine, e->has_lock
                     ? LLMGW_GROUP_ACTIVE : LLMGW_GROUP_STANDBY, 0, 0);
    }
}


static void
engine_disconnect(world_t *w, engine_t *e)
{
    machine_engine_t  *known;

    known = e->peer.engine;
    e->is_connected = 0;
    e->peer.engine = NULL;

    if (w->is_service_up && known != NULL) {
        machine_closed(&w->s.m, known);
    }
}


/* A dead engine's processes and connection end one by one, in any order. */
static void
engine_rot(world_t *w, engine_t *e)
{
    int                is_main;
    machine_engine_t  *known;

    if (e->is_up) {
        return;
    }

    if (e->is_connected && draw(w, 2) == 0) {
        engine_disconnect(w, e);
        return;
    }

    if (e->nprocesses > 0 && draw(w, 2) == 0) {
        e->nprocesses--;
        e->has_lock = e->has_lock && e->nprocesses > 0;
        is_main = !e->is_main_dead && (e->nprocesses == 0 || draw(w, 2) == 0);
        e->is_main_dead |= is_main;
        known = w->is_service_up ? engine_known(w, e) : NULL;

        /* A service that was restarted knows only the main process. */
        if (known != NULL && (is_main || e->nworkers > 0)) {
            e->nworkers -= !is_main;
            machine_process_gone(&w->s.m, known, is_main);
        }
    }
}


/* --- the service */

static void
service_stop(world_t *w)
{
    int  i;

    machine_done(&w->s.m);
    w->is_service_up = 0;

    for (i = 0; i < ENGINES; i++) {
        w->engines[i].is_connected = 0;
        w->engines[i].nworkers = 0;
        w->engines[i].peer.engine = NULL;
        w->engines[i].peer.offered = 0;

        /* A message that the old connection had not delivered is lost. */
        w->engines[i].peer.granted = 0;
    }
}


static void
service_start(world_t *w)
{
    int                i;
    machine_engine_t  *e;

    machine_init(&w->s.m, &scene_settings, &world_ops, w, w->kept_epoch,
                 w->kept_epoch != 0);
    w->is_service_up = 1;

    for (i = 0; i < ENGINES && w->kept.epoch != 0; i++) {
        if (w->engines[i].lives == (uint64_t) w->kept.pid
            && !w->engines[i].is_main_dead)
        {
            e = machine_restore(&w->s.m, &w->kept);
            assert_non_null(e);
            machine_process_add(e);
            return;
        }
    }
}


static void
world_fail(world_t *w)
{
    engine_t  *e;

    e = &w->engines[draw(w, ENGINES)];

    switch (draw(w, 12)) {
    case 0:
        e->is_up = 0;
        break;
    case 1:
        e->is_stopped = 1;
        break;
    case 2:
    case 3:
        e->is_stopped = 0;
        break;
    case 4:
        if (e->is_connected && e->peer.granted == e->epoch) {
            engine_disconnect(w, e);
        }
        break;
    case 5:
        if (w->is_service_up && draw(w, 3) == 0) {
            service_stop(w);
        }
        break;
    case 6:
        if (!w->is_service_up && draw(w, 8) == 0) {
            memset(&w->kept, 0, sizeof(w->kept));
            w->kept_epoch = 0;
            w->is_file_kept = 0;

            /* Without the file only the clock can keep epochs growing. */
            w->s.wall_us = w->s.wall_us > w->greatest ? w->s.wall_us
                                                      : w->greatest;
        }
        break;
    case 7:
        if (w->is_file_kept) {
            w->s.wall_us -= 1000 * draw(w, 5000);
        }
        break;
    default:
        if (!w->is_service_up) {
            service_start(w);
        }
        break;
    }
}


static void
world_check(world_t *w)
{
    int  i, nlocked, ngranted;

    nlocked = 0;
    ngranted = 0;

    for (i = 0; i < ENGINES; i++) {
        nlocked += w->engines[i].is_up && w->engines[i].has_lock;
        ngranted += w->engines[i].is_up && w->engines[i].epoch != 0;
    }

    assert_true(nlocked <= 1);
    assert_true(!w->is_file_kept || ngranted <= 1);
}


static void
world_step(world_t *w, int has_faults)
{
    int  i;

    if (has_faults && draw(w, 4) == 0) {
        world_fail(w);
    }

    for (i = 0; i < ENGINES; i++) {
        engine_rot(w, &w->engines[i]);
        engine_run(w, &w->engines[i]);

        if (is_all_dead(&w->engines[i]) && !w->engines[i].is_connected
            && draw(w, 10) == 0)
        {
            engine_start(w, &w->engines[i]);
        }

        world_check(w);
    }

    w->s.mono_us += 1000 * (uint64_t) (1 + draw(w, 100));
    w->s.wall_us += 1000 * (uint64_t) (1 + draw(w, 100));

    if (w->is_service_up) {
        machine_tick(&w->s.m);
    }

    world_check(w);
}


static int
is_served(const world_t *w)
{
    int  i;

    for (i = 0; i < ENGINES; i++) {
        if (w->engines[i].is_up && w->engines[i].has_lock
            && w->engines[i].is_connected)
        {
            return 1;
        }
    }

    return 0;
}


static unsigned
run_schedule(uint64_t seed)
{
    int        i;
    world_t   *w;
    unsigned   ngrants;

    w = calloc(1, sizeof(world_t));
    w->s.mono_us = 1000000;
    w->s.wall_us = SCENE_WALL_US;
    w->is_file_kept = 1;
    w->rnd.state = seed;
    service_start(w);

    for (i = 0; i < STEPS; i++) {
        world_step(w, 1);
    }

    if (!w->is_service_up) {
        service_start(w);
    }

    for (i = 0; i < ENGINES; i++) {
        w->engines[i].is_stopped = 0;
    }

    for (i = 0; i < STEPS && !is_served(w); i++) {
        world_step(w, 0);
    }

    assert_true(is_served(w));
    machine_done(&w->s.m);
    ngrants = w->ngrants;
    free(w);

    return ngrants;
}


static void
never_two_whatever_fails(void **state)
{
    unsigned     i, n, ngrants;
    const char  *seeds;

    seeds = getenv("LLMGW_SIM_SEEDS");
    n = 50 * (seeds != NULL ? (unsigned) atoi(seeds) : 20);
    ngrants = 0;

    for (i = 1; i <= n; i++) {
        ngrants += run_schedule(i);
    }

    assert_true(ngrants > 5 * n);       /* the schedules had many grants */
    print_message("%u schedules, %u grants\n", n, ngrants);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(never_two_whatever_fails),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
