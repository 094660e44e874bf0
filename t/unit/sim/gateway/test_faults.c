
/*
 * Faults and an update concern the same replicas at the same time, at random.
 * After each event the replicas are what a naive model says: replica r is up
 * at t if no interval of a crash, a death or a restart covers t, and so on.
 */

#include <stdio.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sim/gateway/gateway_inner.h"


#define SECOND    1000000
#define SEEDS     400
#define FAULTS    10
#define REPLICAS  3
#define STALL_US  (3 * SECOND)          /* until its agent says so */
#define RUN_US    (16 * SECOND)

typedef struct {
    gateway_t         g;
    fleet_config_t    fleet;
    gateway_config_t  config;
    gateway_fault_t   faults[FAULTS];
    gateway_counts_t  counts;
    work_t            work;
    node_truth_t      nodes[REPLICAS];

    /* the naive model's facts */
    int64_t           drains_us[REPLICAS];      /* drained since then */
    int64_t           hangs_us[REPLICAS];       /* since; -1: it does not */
    uint32_t          next;
} scene_t;


static void
scene_init(scene_t *s, rnd_t *rnd)
{
    uint32_t          i;
    gateway_fault_t  *f;

    memset(s, 0, sizeof(*s));
    fleet_config_init(&s->fleet);
    gateway_config_init(&s->config);
    s->fleet.replicas = REPLICAS;
    s->fleet.horizon_us = RUN_US;
    s->config.gateways = 0;
    s->config.faults = s->faults;
    s->config.nfaults = FAULTS;

    for (i = 0; i < FAULTS; i++) {
        f = &s->faults[i];
        f->kind = (gateway_fault_kind_t) rnd_below(rnd, GATEWAY_FAULT_KINDS);
        f->replica = (uint32_t) rnd_below(rnd, REPLICAS);
        f->count = 1 + (uint32_t) rnd_below(rnd, REPLICAS - f->replica);
        f->at_us = (int64_t) rnd_below(rnd, 10 * SECOND);
        f->for_us = rnd_below(rnd, 6) == 0
                    ? 0 : 1 + (int64_t) rnd_below(rnd, 5 * SECOND);
        f->factor = f->kind == GATEWAY_SLOW ? 1 + (double) i : 0;
    }

    s->config.update.is_on = rnd_below(rnd, 2) == 0;
    s->config.update.at_us = (int64_t) rnd_below(rnd, 4 * SECOND);
    s->config.update.drain_us = 1 + (int64_t) rnd_below(rnd, 2 * SECOND);
    s->config.update.restart_us = 1 + (int64_t) rnd_below(rnd, 3 * SECOND);
    s->config.update.parallel = 1;

    work_init(&s->work);
    s->g.fleet = &s->fleet;
    s->g.config = &s->config;
    s->g.counts = &s->counts;
    s->g.nodes = s->nodes;
    assert_int_equal(loop_init(&s->g.loop, &s->work, REPLICAS), 0);

    for (i = 0; i < REPLICAS; i++) {
        s->nodes[i].gateway = &s->g;
        s->nodes[i].first = ATTEMPT_NONE;
        s->nodes[i].active = 1;         /* so a drain lasts its whole time */
        s->nodes[i].is_up = 1;
        s->nodes[i].slowness = 1;
        s->nodes[i].said.service = LLMGW_SERVICE_READY;
        s->nodes[i].model = model_replica_create(&s->fleet.model, NULL, NULL);
        assert_non_null(s->nodes[i].model);
        s->drains_us[i] = INT64_MAX;
        s->hangs_us[i] = -1;
    }

    faults_init(&s->g);
}


static void
scene_done(scene_t *s)
{
    uint32_t  i;

    for (i = 0; i < REPLICAS; i++) {
        model_replica_destroy(s->nodes[i].model);
    }

    loop_done(&s->g.loop);
    work_done(&s->work);
}


/* --- the naive model */

static int
fault_covers(const gateway_fault_t *f, uint32_t r, int64_t t)
{
    return f->replica <= r && r < f->replica + f->count && f->at_us <= t
           && (f->for_us == 0 || t < f->at_us + f->for_us);
}


static int
covers(const scene_t *s, gateway_fault_kind_t kind, uint32_t r, int64_t t)
{
    uint32_t  i;

    for (i = 0; i < FAULTS; i++) {
        if (s->faults[i].kind == kind && fault_covers(&s->faults[i], r, t)) {
            return 1;
        }
    }

    return 0;
}


static int
updates(const scene_t *s, uint32_t r, int64_t t)
{
    return s->drains_us[r] <= t
           && t - s->drains_us[r] < s->config.update.drain_us
                                    + s->config.update.restart_us;
}


static int
is_up(const scene_t *s, uint32_t r, int64_t t)
{
    return !covers(s, GATEWAY_CRASH, r, t) && !covers(s, GATEWAY_DIE, r, t)
           && !(updates(s, r, t)
                && t - s->drains_us[r] >= s->config.update.drain_us);
}


/*
 * Whether the replica was up all the time.  It goes down when a fault begins.
 */
static int
was_up(const scene_t *s, uint32_t r, int64_t from, int64_t to)
{
    int64_t   t;
    uint32_t  i;

    for (i = 0; i < FAULTS; i++) {
        t = s->faults[i].at_us;

        if (t > from && t <= to && !is_up(s, r, t)) {
            return 0;
        }
    }

    t = s->drains_us[r];
    t = t == INT64_MAX ? t : t + s->config.update.drain_us;

    return is_up(s, r, from) && !(t > from && t <= to);
}


static int
hangs(const scene_t *s, uint32_t r, int64_t t)
{
    uint32_t                i;
    const gateway_fault_t  *f;

    for (i = 0; i < FAULTS; i++) {
        f = &s->faults[i];

        if (f->kind == GATEWAY_STALL && fault_covers(f, r, t)
            && was_up(s, r, f->at_us, t))
        {
            return 1;
        }
    }

    return 0;
}


static double
slowness(const scene_t *s, uint32_t r, int64_t t)
{
    double    factor;
    uint32_t  i;

    factor = 1;

    for (i = 0; i < FAULTS; i++) {
        if (s->faults[i].kind == GATEWAY_SLOW
            && fault_covers(&s->faults[i], r, t))
        {
            factor *= s->faults[i].factor;
        }
    }

    return factor;
}


/* The next replica that is up begins to drain. */
static void
update_one(scene_t *s, int64_t t)
{
    while (s->next < REPLICAS && !is_up(s, s->next, t)) {
        s->next++;
    }

    if (s->next < REPLICAS) {
        s->drains_us[s->next++] = t;
    }
}


static void
compare(scene_t *s, uint32_t r, uint32_t seed)
{
    int                  hung;
    double               slow;
    int64_t              t = s->g.loop.clock_us;
    const node_truth_t  *node = &s->nodes[r];

    hung = hangs(s, r, t);
    s->hangs_us[r] = !hung ? -1 : s->hangs_us[r] < 0 ? t : s->hangs_us[r];
    slow = slowness(s, r, t);

    if (node->is_up != is_up(s, r, t)
        || node->is_dead != covers(s, GATEWAY_DIE, r, t)
        || node->is_draining != (covers(s, GATEWAY_DRAIN, r, t)
                                 || updates(s, r, t))
        || node->hangs != hung
        || node->is_stalled != (hung && t - s->hangs_us[r] >= STALL_US)
        || node->slowness < slow * 0.999 || node->slowness > slow * 1.001)
    {
        fail_msg("seed %u: replica %u at %lld us: up %d dead %d drains %d "
                 "hangs %d stalled %d slow %g, not up %d dead %d drains %d "
                 "hangs %d since %lld slow %g", seed, r, (long long) t,
                 node->is_up, node->is_dead, node->is_draining, node->hangs,
                 node->is_stalled, node->slowness, is_up(s, r, t),
                 covers(s, GATEWAY_DIE, r, t),
                 covers(s, GATEWAY_DRAIN, r, t) || updates(s, r, t), hung,
                 (long long) s->hangs_us[r], slow);
    }
}


/* --- the run */

static void
turn(scene_t *s, const loop_event_t *e)
{
    switch (e->kind) {

    case EVENT_FAULT:
        faults_begin(&s->g, e->subject);
        return;

    case EVENT_FAULT_END:
        faults_end(&s->g, e->subject, e->detail, e->more);
        return;

    case EVENT_STALLED:
        faults_stalled(&s->g, e->subject, e->detail);
        return;

    case EVENT_UPDATE:
        update_one(s, e->key.at_us);
        update_first(&s->g);
        return;

    case EVENT_UPDATE_LATE:
        update_judge(&s->g, e->subject, 1);
        return;

    case EVENT_UPDATE_RESTARTED:
        update_one(s, e->key.at_us);
        update_restarted(&s->g, e->subject);
        return;

    default:
        fail_msg("event %d", e->kind);
    }
}


/* Whether more is due now: a fault of several replicas has an end for each. */
static int
is_due(const scene_t *s)
{
    const heap_key_t  *next = heap_first(&s->g.loop.heap);

    return next != NULL && next->at_us == s->g.loop.clock_us;
}


static void
a_replica_is_what_the_faults_that_have_it_make_of_it(void **state)
{
    rnd_t         rnd;
    scene_t       s;
    uint32_t      r, seed;
    loop_event_t  e;

    for (seed = 1; seed <= SEEDS; seed++) {
        rnd.state = seed;
        scene_init(&s, &rnd);

        while (s.g.loop.heap.n > 0) {
            e = *(const loop_event_t *) heap_first(&s.g.loop.heap);
            heap_drop(&s.g.loop.heap);
            s.g.loop.clock_us = e.key.at_us;
            turn(&s, &e);

            for (r = 0; r < REPLICAS && !is_due(&s); r++) {
                compare(&s, r, seed);
            }
        }

        assert_false(s.g.failed);
        scene_done(&s);
    }
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        cmocka_unit_test(a_replica_is_what_the_faults_that_have_it_make_of_it)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
