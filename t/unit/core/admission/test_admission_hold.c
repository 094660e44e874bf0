
/* Claims that are held, since no replica is there. */

#include "t/unit/core/admission/admission_scene.h"


#define HOLD_MS  5000


static void
states(scene_t *scene, llmgw_peer_state_t state)
{
    uint32_t  i;

    for (i = 0; i < PEERS; i++) {
        scene->peers[i].state = state;
    }

    scene->view.is_empty = (state == LLMGW_PEER_UNUSABLE);
}


static int
setup(void **state)
{
    scene_t  *scene;

    (void) scene_setup(state);
    scene = *state;
    scene->view.hold_ms = HOLD_MS;
    states(scene, LLMGW_PEER_UNUSABLE);

    return 0;
}


static llmgw_admission_rc_t
ask(scene_t *scene, llmgw_claim_t *claim)
{
    llmgw_lease_t             lease = { .is_held = 0 };
    llmgw_admission_rc_t      rc;
    llmgw_admission_answer_t  answer;

    rc = scene_ask(scene, 0, claim, &lease, &answer);

    if (rc == LLMGW_ADMISSION_LEASED) {
        (void) scene_end(scene, 0, &lease, LLMGW_VERDICT_SUCCESS);
    }

    return rc;
}


static void
each_is_held_for_its_own_time(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   first, second;

    first = scene_claim(1);
    second = scene_claim(2);

    assert_int_equal(ask(scene, &first), LLMGW_ADMISSION_WAITS);
    assert_true(first.is_held);
    assert_int_equal(scene->shared->waits_for, LLMGW_WAITS_REPLICA);

    scene->now_ms += 100;
    assert_int_equal(ask(scene, &second), LLMGW_ADMISSION_WAITS);
    assert_true(second.is_held);
    assert_int_equal(second.hold_end_ms, first.hold_end_ms + 100);

    scene->now_ms = first.hold_end_ms - 1;
    assert_int_equal(ask(scene, &first), LLMGW_ADMISSION_WAITS);
    scene->now_ms++;
    assert_int_equal(ask(scene, &second), LLMGW_ADMISSION_WAITS);
    assert_int_equal(ask(scene, &first), LLMGW_ADMISSION_NONE);
    assert_false(first.is_held);
}


/* A hold ends in time behind a head that has just come, too. */
static void
one_that_is_not_the_head_ends_too(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   fresh, urgent;

    fresh = scene_claim(1);
    urgent = scene_claim(2);
    urgent.is_urgent = 1;

    assert_int_equal(ask(scene, &fresh), LLMGW_ADMISSION_WAITS);
    scene->now_ms += 1000;
    assert_int_equal(ask(scene, &urgent), LLMGW_ADMISSION_WAITS);

    scene->now_ms = fresh.hold_end_ms;
    assert_int_equal(ask(scene, &fresh), LLMGW_ADMISSION_NONE);
    assert_int_equal(ask(scene, &urgent), LLMGW_ADMISSION_WAITS);
}


static void
they_go_in_their_order_when_a_replica_is_there(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   first, second, third;

    first = scene_claim(1);
    second = scene_claim(2);
    third = scene_claim(3);
    assert_int_equal(ask(scene, &first), LLMGW_ADMISSION_WAITS);
    assert_int_equal(ask(scene, &second), LLMGW_ADMISSION_WAITS);

    states(scene, LLMGW_PEER_ALIVE);

    /* the last moment: it is not refused, since a replica may serve it now */
    scene->now_ms = second.hold_end_ms;
    assert_int_equal(ask(scene, &second), LLMGW_ADMISSION_WAITS);
    assert_false(second.is_held);
    assert_int_equal(second.hold_end_ms, 0);
    assert_int_equal(ask(scene, &third), LLMGW_ADMISSION_WAITS);

    assert_int_equal(ask(scene, &first), LLMGW_ADMISSION_LEASED);
    assert_int_equal(first.hold_end_ms, 0);
    assert_int_equal(ask(scene, &second), LLMGW_ADMISSION_LEASED);
    assert_int_equal(ask(scene, &third), LLMGW_ADMISSION_LEASED);
}


static void
those_that_wait_for_room_are_held_from_then_on(void **state)
{
    uint32_t        i;
    scene_t        *scene = *state;
    llmgw_lease_t   leases[PEERS * CAPACITY];
    llmgw_claim_t   first, second;

    states(scene, LLMGW_PEER_ALIVE);

    for (i = 0; i < PEERS * CAPACITY; i++) {
        scene_lease(scene, 0, i, &leases[i]);
    }

    first = scene_wait(scene, 0, 1);
    second = scene_wait(scene, 0, 2);
    assert_false(second.is_held);

    scene->now_ms += 20000;
    states(scene, LLMGW_PEER_UNUSABLE);
    assert_int_equal(ask(scene, &second), LLMGW_ADMISSION_WAITS);
    assert_true(second.is_held);
    assert_int_equal(second.hold_end_ms, scene->now_ms + HOLD_MS);
    assert_int_equal(ask(scene, &first), LLMGW_ADMISSION_WAITS);
    assert_true(first.is_held);
}


static void
queue_limits_them_but_not_streams(void **state)
{
    int             i;
    scene_t        *scene = *state;
    llmgw_claim_t   claims[QUEUE], more, urgent;

    for (i = 0; i < QUEUE; i++) {
        claims[i] = scene_claim((uint64_t) i);
        assert_int_equal(ask(scene, &claims[i]), LLMGW_ADMISSION_WAITS);
    }

    more = scene_claim(100);
    urgent = scene_claim(101);
    urgent.is_urgent = 1;
    assert_int_equal(ask(scene, &more), LLMGW_ADMISSION_FULL);
    assert_false(more.is_held);
    assert_int_equal(ask(scene, &urgent), LLMGW_ADMISSION_WAITS);
    assert_true(urgent.is_held);
}


static void
nothing_is_held_without_hold_or_queue(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   claim;

    scene->view.hold_ms = 0;
    claim = scene_claim(1);
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_NONE);

    scene->view.hold_ms = HOLD_MS;
    scene->view.queue_size = 0;
    claim = scene_claim(2);
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_NONE);

    scene->view.queue_size = QUEUE;
    claim = scene_claim(3);
    claim.no_wait = 1;
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_NONE);
    assert_int_equal(scene->shared->queue.length, 0);
}


/*
 * All replicas have refused it as draining, which the view does not show yet.
 */
static void
claim_waits_for_the_view_that_shows_who_drains(void **state)
{
    scene_t                *scene = *state;
    uint32_t                all[PEERS] = { 0, 1, 2 };
    llmgw_wake_t            wake;
    llmgw_claim_t           claim;
    llmgw_admission_self_t  self = scene_self(scene, 0);

    states(scene, LLMGW_PEER_ALIVE);
    claim = scene_claim(1);
    claim.excluded = all;
    claim.nexcluded = PEERS;
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_WAITS);
    assert_false(claim.is_held);

    claim.nexcluded = 0;
    states(scene, LLMGW_PEER_UNUSABLE);
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_WAITS);
    assert_true(claim.is_held);
    llmgw_admission_leave(&self, &claim, scene->now_ms, &wake);

    scene->view.hold_ms = 0;
    claim = scene_claim(2);
    claim.excluded = all;
    claim.nexcluded = PEERS;
    states(scene, LLMGW_PEER_ALIVE);
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_EXCLUDED);
}


static void
one_that_leaves_is_held_no_more(void **state)
{
    scene_t                *scene = *state;
    llmgw_wake_t            wake;
    llmgw_claim_t           claim;
    llmgw_admission_self_t  self = scene_self(scene, 0);

    claim = scene_claim(1);
    assert_int_equal(ask(scene, &claim), LLMGW_ADMISSION_WAITS);
    llmgw_admission_leave(&self, &claim, scene->now_ms, &wake);
    assert_false(claim.is_held);
    assert_int_equal(scene->shared->queue.length, 0);
}


#define TEST(name)                                                            \
    cmocka_unit_test_setup_teardown(name, setup, scene_teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(each_is_held_for_its_own_time),
        TEST(one_that_is_not_the_head_ends_too),
        TEST(they_go_in_their_order_when_a_replica_is_there),
        TEST(those_that_wait_for_room_are_held_from_then_on),
        TEST(queue_limits_them_but_not_streams),
        TEST(nothing_is_held_without_hold_or_queue),
        TEST(claim_waits_for_the_view_that_shows_who_drains),
        TEST(one_that_leaves_is_held_no_more),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
