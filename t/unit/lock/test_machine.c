
/* Which waiter is granted, and when: queues, offers, epochs, in fake time. */

#include "t/unit/lock/scene.h"


static void
waiters_are_granted_in_their_order(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a, *b, *c;

    a = scene_waiter(s, "a");
    b = scene_waiter(s, "b");
    c = scene_waiter(s, "c");
    assert_int_equal(a->position, 1);
    assert_int_equal(b->position, 2);
    assert_int_equal(c->position, 3);
    assert_true(a->offered > SCENE_WALL_US);
    assert_int_equal(b->offered, 0);

    scene_take(s, a);
    assert_int_equal(a->granted, a->offered);
    assert_false(a->is_regrant);
    assert_int_equal(b->position, 1);
    assert_int_equal(c->position, 2);
    assert_int_equal(b->offered, 0);

    machine_process_gone(&s->m, a->engine, 1);
    assert_int_equal(b->offered, 0);
    scene_close(s, a);
    assert_true(b->offered > a->granted);
    scene_take(s, b);
    assert_int_equal(b->granted, b->offered);
    assert_int_equal(c->position, 1);
    assert_int_equal(s->told[MACHINE_GRANTED], 2);
}


static void
an_offer_that_is_not_taken_goes_to_the_next(void **state)
{
    uint64_t       missed;
    scene_t       *s = *state;
    scene_peer_t  *a, *b;

    a = scene_waiter(s, "a");
    b = scene_waiter(s, "b");
    missed = a->offered;

    scene_pass(s, 950);
    assert_int_equal(b->offered, 0);
    scene_pass(s, 50);
    assert_true(b->offered > missed);
    assert_int_equal(a->position, 2);
    assert_int_equal(b->position, 1);

    machine_take(&s->m, a->engine, missed);
    assert_int_equal(a->refused, MACHINE_LATE);
    assert_int_equal(a->granted, 0);

    scene_take(s, b);
    assert_int_equal(b->granted, b->offered);
}


static void
a_waiter_without_a_word_is_not_offered_again(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_waiter(s, "a");
    scene_pass(s, 60000);
    assert_int_equal(a->noffers, 1);

    machine_heard(&s->m, a->engine);
    assert_int_equal(a->noffers, 2);
    scene_take(s, a);
    assert_int_equal(a->granted, a->offered);
}


static void
an_older_offer_cannot_be_taken(void **state)
{
    uint64_t       older;
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_waiter(s, "a");
    older = a->offered;
    scene_pass(s, 1000);
    machine_heard(&s->m, a->engine);
    assert_true(a->offered > older);

    machine_take(&s->m, a->engine, older);
    assert_int_equal(a->refused, MACHINE_LATE);
    scene_take(s, a);
    assert_int_equal(a->granted, a->offered);

    machine_take(&s->m, a->engine, a->granted);     /* taken already */
    assert_int_equal(a->refused, MACHINE_LATE);
}


static void
an_offered_waiter_that_leaves_makes_room(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a, *b;

    a = scene_waiter(s, "a");
    b = scene_waiter(s, "b");
    scene_close(s, a);
    assert_true(b->offered > 0);
    assert_int_equal(s->told[MACHINE_LEFT], 1);

    machine_release(&s->m, b->engine);
    assert_true(b->is_dropped);
    assert_int_equal(s->nforgotten, 2);
}


static void
a_waiter_that_comes_again_waits_once(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *b, *again;
    machine_claim_t   claim;

    scene_holder(s, "a");
    b = scene_waiter(s, "b");
    claim = scene_claim("b");
    again = &s->peers[30];
    assert_int_equal(scene_come(s, again, &claim), MACHINE_OK);
    assert_true(b->is_dropped);
    assert_int_equal(scene_group(s)->nwaiters, 1);
    assert_int_equal(again->position, 1);
}


static void
a_lock_file_that_is_held_keeps_a_group_from_everybody(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a;

    s->file = MACHINE_FILE_HELD;
    a = scene_waiter(s, "a");
    scene_pass(s, 59900);
    assert_int_equal(a->offered, 0);
    assert_int_equal(s->told[MACHINE_UNKNOWN], 1);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)),
                        "unknown");
    scene_pass(s, 200);
    assert_int_equal(s->told[MACHINE_UNKNOWN], 2);

    s->file = MACHINE_FILE_FREE;
    scene_pass(s, 50);
    assert_true(a->offered > 0);

    s->file = MACHINE_FILE_HELD;    /* between OFFER and TAKE */
    scene_take(s, a);
    assert_int_equal(a->refused, MACHINE_BUSY);
    assert_int_equal(a->granted, 0);

    s->file = MACHINE_FILE_FREE;
    scene_pass(s, 50);
    scene_take(s, a);
    assert_int_equal(a->granted, a->offered);
}


static void
a_missing_lock_file_says_nothing_to_a_service_without_memory(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a;

    s->file = MACHINE_FILE_MISSING;
    a = scene_waiter(s, "a");
    assert_true(a->offered > 0);            /* there was a state file */

    machine_done(&s->m);
    scene_begin(s, &scene_settings, 0, 0);
    a = scene_waiter(s, "a");
    scene_pass(s, 9950);
    assert_int_equal(a->offered, 0);
    assert_string_equal(machine_group_state(&s->m, scene_group(s)),
                        "settling");
    assert_int_equal(machine_window_ms(&s->m, scene_group(s)), 50);
    scene_pass(s, 50);
    assert_true(a->offered > 0);

    machine_done(&s->m);
    scene_begin(s, &scene_settings, 0, 0);
    s->file = MACHINE_FILE_FREE;
    a = scene_waiter(s, "a");
    assert_true(a->offered > 0);
}


static void
an_epoch_is_above_all_that_is_known(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *a;
    machine_claim_t   claim;

    machine_done(&s->m);
    scene_begin(s, &scene_settings, SCENE_WALL_US + 5000, 1);
    a = scene_waiter(s, "a");
    assert_int_equal(a->offered, SCENE_WALL_US + 5001);
    scene_close(s, a);

    claim = scene_claim("b");
    claim.last_epoch = SCENE_WALL_US + 9000;
    a = &s->peers[1];
    assert_int_equal(scene_come(s, a, &claim), MACHINE_OK);
    assert_int_equal(a->offered, SCENE_WALL_US + 9001);
    scene_close(s, a);

    s->wall_us += 1000000;
    a = scene_waiter(s, "c");
    assert_int_equal(a->offered, SCENE_WALL_US + 1000001);
    scene_close(s, a);

    s->wall_us -= 500000;                   /* the clock is set back */
    a = scene_waiter(s, "d");
    assert_int_equal(a->offered, SCENE_WALL_US + 1000002);
    scene_close(s, a);

    claim = scene_claim("e");
    claim.last_epoch = s->wall_us + MACHINE_EPOCH_AHEAD_US;
    assert_int_equal(scene_come(s, a, &claim), MACHINE_OK);
    claim = scene_claim("f");
    claim.last_epoch = s->wall_us + MACHINE_EPOCH_AHEAD_US + 1000000;
    assert_int_equal(scene_come(s, &s->peers[40], &claim),
                     MACHINE_BAD_EPOCH);
}


/* An epoch that is a day ahead counts, as in gossip.  Beyond a day the clock's
   counts instead, and a waiter that knows a greater one is refused until it
   forgets that. */
static void
an_epoch_that_gossip_refuses_is_given_up(void **state)
{
    scene_t          *s = *state;
    uint64_t          ahead;
    scene_peer_t     *a;
    machine_claim_t   claim;

    ahead = SCENE_WALL_US + MACHINE_EPOCH_AHEAD_US;
    machine_done(&s->m);
    scene_begin(s, &scene_settings, ahead - 1, 1);
    a = scene_waiter(s, "a");
    assert_true(a->offered == ahead);
    assert_true(s->given_up == 0);
    scene_close(s, a);

    a = scene_waiter(s, "b");
    assert_true(s->given_up == ahead);
    assert_true(a->offered == SCENE_WALL_US + 1);
    scene_take(s, a);
    assert_true(a->granted == SCENE_WALL_US + 1);
    assert_true(s->kept_epoch == SCENE_WALL_US + 1);

    claim = scene_claim("c");
    claim.last_epoch = ahead + 1;
    assert_int_equal(scene_come(s, &s->peers[2], &claim), MACHINE_BAD_EPOCH);
}


static void
what_cannot_be_kept_is_not_granted(void **state)
{
    scene_t       *s = *state;
    scene_peer_t  *a;

    a = scene_waiter(s, "a");
    s->disk_fails = 1;
    scene_take(s, a);
    assert_int_equal(a->refused, MACHINE_STATE);
    assert_int_equal(a->granted, 0);
    assert_int_equal(a->noffers, 1);
    scene_pass(s, 950);
    assert_int_equal(a->noffers, 1);

    s->disk_fails = 0;
    scene_pass(s, 100);
    assert_int_equal(a->noffers, 2);
    scene_take(s, a);
    assert_int_equal(a->granted, a->offered);
}


static void
a_holder_of_the_state_file_has_the_window_to_come_back(void **state)
{
    scene_t           *s = *state;
    scene_peer_t      *a, *b;
    machine_claim_t    claim;
    machine_engine_t  *e;

    claim = scene_claim("a");
    claim.epoch = SCENE_WALL_US - 5;
    e = machine_restore(&s->m, &claim);
    assert_non_null(e);
    assert_int_equal(machine_process_add(e), MACHINE_OK);
    b = scene_waiter(s, "b");
    scene_pass(s, 5000);
    assert_int_equal(b->offered, 0);

    a = &s->peers[0];
    assert_int_equal(scene_come(s, a, &claim), MACHINE_OK);
    assert_int_equal(a->granted, claim.epoch);
    assert_true(a->is_regrant);
    assert_int_equal(s->nkilled, 0);

    machine_process_gone(&s->m, a->engine, 1);
    scene_close(s, a);
    assert_true(b->offered > 0);
}


/* The service died after it wrote the state file and before it sent GRANTED,
   so that no engine has learned of the epoch. */
static void
a_holder_that_knows_of_nothing_is_offered_first(void **state)
{
    scene_t           *s = *state;
    scene_peer_t      *a, *b;
    machine_claim_t    claim;
    machine_engine_t  *e;

    claim = scene_claim("a");
    claim.epoch = SCENE_WALL_US + 100;
    e = machine_restore(&s->m, &claim);
    assert_int_equal(machine_process_add(e), MACHINE_OK);
    b = scene_waiter(s, "b");
    s->m.epoch = claim.epoch;

    a = scene_waiter(s, "a");
    assert_int_equal(s->nforgotten, 1);
    assert_int_equal(a->position, 1);
    assert_int_equal(b->position, 2);
    assert_true(a->offered > claim.epoch);
    assert_int_equal(b->offered, 0);
}


static void
a_holder_that_nobody_remembers_is_believed(void **state)
{
    uint64_t          offered;
    scene_t          *s = *state;
    scene_peer_t     *a, *b;
    machine_claim_t   claim;

    b = scene_waiter(s, "b");
    offered = b->offered;
    claim = scene_claim("a");
    claim.epoch = SCENE_WALL_US + 77;
    a = &s->peers[0];
    assert_int_equal(scene_come(s, a, &claim), MACHINE_OK);
    assert_int_equal(a->granted, claim.epoch);
    assert_string_equal(s->kept_holder, "a");

    machine_take(&s->m, b->engine, offered);
    assert_int_equal(b->refused, MACHINE_LATE);
    assert_int_equal(b->granted, 0);

    machine_process_gone(&s->m, a->engine, 1);
    scene_close(s, a);
    assert_true(b->offered > claim.epoch);
}


static void
a_second_holder_is_refused(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *a, *b;
    machine_claim_t   claim;

    a = scene_holder(s, "a");
    claim = scene_claim("b");
    claim.epoch = a->granted - 1;
    b = &s->peers[1];
    assert_int_equal(scene_come(s, b, &claim), MACHINE_HELD);
    assert_ptr_equal(s->m.groups[0].holder, a->engine);
}


static void
groups_do_not_know_each_other(void **state)
{
    scene_t          *s = *state;
    scene_peer_t     *b;
    machine_claim_t   claim;

    scene_holder(s, "a");
    claim = scene_claim("b");
    strcpy(claim.group, "other");
    b = &s->peers[1];
    assert_int_equal(scene_come(s, b, &claim), MACHINE_OK);
    assert_true(b->offered > 0);
}


static void
what_grows_has_a_limit(void **state)
{
    unsigned           i;
    scene_t           *s = *state;
    scene_peer_t      *p;
    machine_claim_t    claim;

    for (i = 0; i < MACHINE_WAITERS_MAX + 1; i++) {
        claim = scene_claim("w");
        snprintf(claim.nonce, sizeof(claim.nonce), "%016x", i);
        assert_int_equal(scene_come(s, &s->peers[i], &claim),
                         i < MACHINE_WAITERS_MAX ? MACHINE_OK
                                                 : MACHINE_TOO_MANY);
    }

    p = &s->peers[0];

    for (i = 1; i < MACHINE_PROCESSES_MAX; i++) {
        assert_int_equal(machine_process_add(p->engine), MACHINE_OK);
    }

    assert_int_equal(machine_process_add(p->engine), MACHINE_TOO_MANY);

    machine_done(&s->m);
    scene_begin(s, &scene_settings, 0, 1);
    memset(s->peers, 0, sizeof(s->peers));

    for (i = 0; i < MACHINE_GROUPS_MAX; i++) {
        claim = scene_claim("w");
        snprintf(claim.group, sizeof(claim.group), "g%u", i);
        assert_int_equal(scene_come(s, &s->peers[i], &claim), MACHINE_OK);
    }

    strcpy(claim.group, "one-more");
    assert_int_equal(scene_come(s, &s->peers[i], &claim), MACHINE_TOO_MANY);
    scene_close(s, &s->peers[7]);           /* an idle one makes room */
    assert_int_equal(scene_come(s, &s->peers[i], &claim), MACHINE_OK);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(waiters_are_granted_in_their_order),
        TEST(an_offer_that_is_not_taken_goes_to_the_next),
        TEST(a_waiter_without_a_word_is_not_offered_again),
        TEST(an_older_offer_cannot_be_taken),
        TEST(an_offered_waiter_that_leaves_makes_room),
        TEST(a_waiter_that_comes_again_waits_once),
        TEST(a_lock_file_that_is_held_keeps_a_group_from_everybody),
        TEST(a_missing_lock_file_says_nothing_to_a_service_without_memory),
        TEST(an_epoch_is_above_all_that_is_known),
        TEST(an_epoch_that_gossip_refuses_is_given_up),
        TEST(what_cannot_be_kept_is_not_granted),
        TEST(a_holder_of_the_state_file_has_the_window_to_come_back),
        TEST(a_holder_that_knows_of_nothing_is_offered_first),
        TEST(a_holder_that_nobody_remembers_is_believed),
        TEST(a_second_holder_is_refused),
        TEST(groups_do_not_know_each_other),
        TEST(what_grows_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
