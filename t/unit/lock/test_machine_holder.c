
/* How holders end, hang and come back, in fake time. */

#include "t/unit/lock/scene.h"


static void
begin_as(scene_t *s, int is_kill)
{
    machine_settings_t  settings;

    settings = scene_settings;
    settings.is_kill = is_kill;
    scene_begin(s, &settings, 0, 1);
}


static void
pong(scene_t *s, scene_peer_t *p, llmgw_group_state_t state,
    uint64_t progress, uint64_t streams)
{
    machine_pong(&s->m, p->engine, state, progress, streams);
}


/* A holder is gone when its connection and its three processes have ended, in
   whichever order. */
static void
gone_is_the_connection_and_every_process(void **state)
{
    int            i, at, is_main;
    scene_t       *s = *state;
    scene_peer_t  *a, *b;

    for (at = 0; at < 4; at++) {
        a = scene_holder(s, "a");
        assert_int_equal(machine_process_add(a->engine), MACHINE_OK);
        assert_int_equal(machine_process_add(a->engine), MACHINE_OK);
        b = scene_waiter(s, "b");
        is_main = 1;

        for (i = 0; i < 4; i++) {
            assert_int_equal(b->offered, 0);
            scene_pass(s, 100);

            if (i == at) {
                machine_closed(&s->m, s->m.groups[0].holder);

            } else {
                machine_process_gone(&s->m, s->m.groups[0].holder, is_main);
                is_main = 0;
            }
        }

        assert_true(b->offered > 0);
        assert_int_equal(scene_group(s)->last_gone_ms, 300);
        scene_pass(s, 50);
        scene_take(s, b);
        assert_int_equal(scene_group(s)->last_grant_ms, 350);

        machine_process_gone(&s->m, b->engine, 1);
        scene_close(s, b);
    }
}


static void
workers_of_a_dead_engine_are_killed_where_that_is_allowed(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_holder(s, "a");
    machine_process_add(a->engine);
    machine_process_gone(&s->m, a->engine, 1);
    assert_int_equal(s->nkilled, 1);
    assert_int_equal(s->told[MACHINE_KILLED], 0);

    machine_done(&s->m);
    begin_as(s, 0);
    a = scene_holder(s, "a");
    machine_process_add(a->engine);
    machine_process_gone(&s->m, a->engine, 1);
    assert_int_equal(s->nkilled, 1);
}


static void
a_holder_that_comes_back_in_time_is_granted_again(void **state)
{
    uint64_t          epoch;
    scene_t          *s = *state;
    scene_peer_t     *a, *b;
    machine_claim_t   claim;

    a = scene_holder(s, "a");
    b = scene_waiter(s, "b");
    epoch = a->granted;
    pong(s, a, LLMGW_GROUP_ACTIVE, 0, 0);
    scene_close(s, a);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)), "lost");
    scene_pass(s, 9900);
    assert_int_equal(machine_window_ms(&s->m, scene_group(s)), 100);

    claim = scene_claim("a");
    claim.epoch = epoch - 1;
    assert_int_equal(scene_come(s, a, &claim), MACHINE_BAD_EPOCH);
    claim.epoch = epoch;
    claim.pid++;
    assert_int_equal(scene_come(s, a, &claim), MACHINE_HELD);
    claim.pid--;
    assert_int_equal(scene_come(s, a, &claim), MACHINE_OK);
    assert_int_equal(a->granted, epoch);
    assert_true(a->is_regrant);
    assert_int_equal(a->engine->nprocesses, 1);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)), "active");

    scene_pass(s, 9900);
    assert_int_equal(s->nkilled, 0);
    assert_int_equal(b->offered, 0);
    assert_int_equal(b->position, 1);
}


/* The holder's older connection has not even ended. */
static void
a_holder_may_come_back_before_its_connection_has_ended(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *a, *again;
    machine_claim_t   claim;

    a = scene_holder(s, "a");
    claim = scene_claim("a");
    claim.epoch = a->granted;
    again = &s->peers[30];
    assert_int_equal(scene_come(s, again, &claim), MACHINE_OK);
    assert_true(a->is_dropped);
    assert_true(again->is_regrant);
}


static void
a_lost_holder_is_killed_when_its_window_is_over(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *a, *b;
    machine_claim_t   claim;

    a = scene_holder(s, "a");
    b = scene_waiter(s, "b");
    claim = scene_claim("a");
    claim.epoch = a->granted;
    scene_close(s, a);
    scene_pass(s, 9950);
    assert_int_equal(s->nkilled, 0);
    scene_pass(s, 50);
    assert_int_equal(s->nkilled, 1);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)), "fenced");

    /* No waiter is granted before the holder is gone, and it may not come
       back. */

    assert_int_equal(scene_come(s, a, &claim), MACHINE_HELD);
    scene_pass(s, 59000);
    assert_int_equal(b->offered, 0);
    assert_int_equal(s->nkilled, 1);
    scene_pass(s, 1000);
    assert_int_equal(s->nkilled, 2);
    assert_int_equal(s->told[MACHINE_KILLED], 2);

    machine_process_gone(&s->m, s->m.groups[0].holder, 1);
    assert_true(b->offered > 0);
}


static void
where_nobody_may_be_killed_nobody_is_granted(void **state)
{
    int               i;
    scene_t          *s = *state;
    scene_peer_t     *a, *b;
    machine_claim_t   claim;

    for (i = 0; i < 2; i++) {
        machine_done(&s->m);
        begin_as(s, i);
        claim = scene_claim("a");
        claim.can_be_killed = !i;
        a = &s->peers[0];
        assert_int_equal(scene_come(s, a, &claim), MACHINE_OK);
        scene_take(s, a);
        b = scene_waiter(s, "b");

        scene_pass(s, 10000);
        assert_string_equal(machine_group_state(&s->m, scene_group(s)),
                            "alarm");
        scene_pass(s, 3600000);
        assert_int_equal(s->nkilled, 0);
        assert_int_equal(b->offered, 0);
        assert_in_range(s->told[MACHINE_BLOCKED], 60 * (i + 1),
                        62 * (i + 1));

        pong(s, a, LLMGW_GROUP_ACTIVE, 0, 0);
        scene_pass(s, 50);
        assert_string_equal(machine_group_state(&s->m, scene_group(s)),
                            "active");
        assert_int_equal(s->told[MACHINE_RECOVERED], i + 1);

        machine_process_gone(&s->m, a->engine, 1);
        scene_close(s, a);
        assert_true(b->offered > 0);
    }
}


static void
a_holder_without_a_sign_hangs(void **state)
{
    int            i;
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_holder(s, "a");

    for (i = 0; i < 10; i++) {
        scene_pass(s, 9900);
        pong(s, a, LLMGW_GROUP_ACTIVE, 0, 0);
    }

    assert_int_equal(a->npings, 99);
    assert_int_equal(s->nkilled, 0);
    scene_pass(s, 10000);
    assert_int_equal(s->nkilled, 1);
}


static void
a_holder_whose_streams_stand_hangs(void **state)
{
    int            i;
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_holder(s, "a");

    for (i = 0; i < 30; i++) {      /* without streams none moves */
        pong(s, a, LLMGW_GROUP_ACTIVE, 5, 0);
        scene_pass(s, 1000);
    }

    for (i = 0; i < 30; i++) {
        pong(s, a, LLMGW_GROUP_ACTIVE, 6 + i / 9, 2);
        scene_pass(s, 1000);
    }

    assert_int_equal(s->nkilled, 0);

    for (i = 0; i < 11; i++) {
        pong(s, a, LLMGW_GROUP_ACTIVE, 9, 2);
        scene_pass(s, 1000);
    }

    assert_int_equal(s->nkilled, 1);
}


static void
a_holder_has_its_own_time_to_wake(void **state)
{
    int            i;
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_holder(s, "a");

    for (i = 0; i < 60; i++) {
        pong(s, a, LLMGW_GROUP_WAKING, 0, 0);
        scene_pass(s, 1000);
    }

    scene_pass(s, 950);
    assert_int_equal(s->nkilled, 0);
    scene_pass(s, 50);
    assert_int_equal(s->nkilled, 1);
    machine_process_gone(&s->m, a->engine, 1);
    scene_close(s, a);

    a = scene_waiter(s, "a");
    pong(s, a, LLMGW_GROUP_ACTIVE, 0, 0);       /* before its grant */
    scene_take(s, a);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)),
                        "waking");
    pong(s, a, LLMGW_GROUP_ACTIVE, 0, 0);

    for (i = 0; i < 200; i++) {     /* an active holder stays active */
        pong(s, a, LLMGW_GROUP_WAKING, 0, 0);
        scene_pass(s, 1000);
    }

    assert_int_equal(s->nkilled, 1);
    assert_int_equal(s->told[MACHINE_ACTIVE], 1);
}


/* The service was stopped, or waited for fsync: what engines sent meanwhile is
   read before any is found silent. */
static void
time_in_which_the_service_did_not_run_counts_for_nobody(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a, *b;

    a = scene_holder(s, "a");
    s->mono_us += 3600ULL * 1000000;
    machine_tick(&s->m);
    assert_int_equal(s->nkilled, 0);
    pong(s, a, LLMGW_GROUP_ACTIVE, 0, 0);
    scene_pass(s, 9950);
    assert_int_equal(s->nkilled, 0);

    machine_process_gone(&s->m, a->engine, 1);
    scene_close(s, a);
    b = scene_waiter(s, "b");
    s->mono_us += 3600ULL * 1000000;
    machine_tick(&s->m);
    scene_take(s, b);
    assert_int_equal(b->granted, b->offered);
}


static void
the_end_of_a_holder_is_kept_soon(void **state)
{
    unsigned       nkeeps;
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_holder(s, "a");
    assert_string_equal(s->kept_holder, "a");
    machine_process_gone(&s->m, a->engine, 1);
    scene_close(s, a);
    scene_pass(s, MACHINE_RETRY_MS + 50);
    assert_string_equal(s->kept_holder, "");

    nkeeps = s->nkeeps;
    scene_pass(s, 60000);
    assert_int_equal(s->nkeeps, nkeeps);
}


static void
a_released_group_waits_for_the_end_of_its_engine(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a, *b;

    a = scene_holder(s, "a");
    b = scene_waiter(s, "b");
    pong(s, a, LLMGW_GROUP_ACTIVE, 1, 1);
    machine_release(&s->m, a->engine);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)),
                        "released");
    scene_pass(s, 5000);
    machine_release(&s->m, a->engine);
    assert_int_equal(b->offered, 0);
    assert_int_equal(s->told[MACHINE_RELEASED], 1);
    scene_pass(s, 4950);
    assert_int_equal(s->nkilled, 0);
    scene_pass(s, 50);
    assert_int_equal(s->nkilled, 1);

    scene_close(s, a);
    machine_process_gone(&s->m, s->m.groups[0].holder, 1);
    assert_true(b->offered > 0);
}


/* A waiter does not count as a standby while it loads or wakes, stands still,
   has missed an offer, or has been one for less than a second. */
static void
standbys_are_waiters_that_said_so_of_late(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *b, *c;
    machine_group_t  *g;

    scene_holder(s, "a");
    g = scene_group(s);
    assert_int_equal(machine_standbys(&s->m, g), 0);
    b = scene_waiter(s, "b");
    c = scene_waiter(s, "c");
    assert_int_equal(machine_standbys(&s->m, g), 0);
    pong(s, b, LLMGW_GROUP_STANDBY, 0, 0);
    pong(s, c, LLMGW_GROUP_INIT, 0, 0);
    scene_pass(s, MACHINE_KNOWN_MS - 1);
    assert_int_equal(machine_standbys(&s->m, g), 0);
    scene_pass(s, 1);
    assert_int_equal(machine_standbys(&s->m, g), 1);
    scene_pass(s, 1000);
    pong(s, c, LLMGW_GROUP_STANDBY, 0, 0);
    assert_int_equal(machine_standbys(&s->m, g), 1);
    scene_pass(s, 1000);
    assert_int_equal(machine_standbys(&s->m, g), 1);
    pong(s, b, LLMGW_GROUP_STANDBY, 0, 0);
    assert_int_equal(machine_standbys(&s->m, g), 2);
    scene_close(s, b);
    c->engine->is_silent = 1;
    assert_int_equal(machine_standbys(&s->m, g), 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(gone_is_the_connection_and_every_process),
        TEST(workers_of_a_dead_engine_are_killed_where_that_is_allowed),
        TEST(a_holder_that_comes_back_in_time_is_granted_again),
        TEST(a_holder_may_come_back_before_its_connection_has_ended),
        TEST(a_lost_holder_is_killed_when_its_window_is_over),
        TEST(where_nobody_may_be_killed_nobody_is_granted),
        TEST(a_holder_without_a_sign_hangs),
        TEST(a_holder_whose_streams_stand_hangs),
        TEST(a_holder_has_its_own_time_to_wake),
        TEST(time_in_which_the_service_did_not_run_counts_for_nobody),
        TEST(the_end_of_a_holder_is_kept_soon),
        TEST(standbys_are_waiters_that_said_so_of_late),
        TEST(a_released_group_waits_for_the_end_of_its_engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
