
/* Claims that wait for a standby to become active. */

#include "t/unit/core/admission/admission_scene.h"


/* Peer 0 was active and is dead, peer 1 stands by, peer 2 is not there. */
static int
setup(void **state)
{
    scene_t  *scene;

    (void) scene_setup(state);
    scene = *state;
    scene->peers[0].state = LLMGW_PEER_UNUSABLE;
    scene->peers[1].state = LLMGW_PEER_STANDBY;
    scene->peers[2].state = LLMGW_PEER_UNUSABLE;
    scene->view.pick.nstandbys = 1;

    return 0;
}


static void
activate(scene_t *scene)
{
    scene->peers[1].state = LLMGW_PEER_ALIVE;
    scene->view.pick.nstandbys = 0;
}


/*
 * New and resumed streams are served in their order, as soon as the view shows
 * the successor.
 */
static void
streams_wait_and_are_served_by_the_successor(void **state)
{
    scene_t                   *scene = *state;
    llmgw_claim_t              fresh, resumed;
    llmgw_lease_t              lease = { .is_held = 0 };
    llmgw_admission_answer_t   answer;

    fresh = scene_wait(scene, 0, 1);

    resumed = scene_claim(2);
    resumed.is_urgent = 1;
    assert_int_equal(scene_ask(scene, 1, &resumed, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene->shared->queue.length, 2);
    assert_int_equal(scene_in_flight(scene), 0);

    activate(scene);

    assert_int_equal(scene_ask(scene, 1, &resumed, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(answer.picked.peer, 1);
    assert_int_equal(answer.wake.row, 0);
    (void) scene_end(scene, 1, &lease, LLMGW_VERDICT_SUCCESS);

    assert_int_equal(scene_ask(scene, 0, &fresh, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    (void) scene_end(scene, 0, &lease, LLMGW_VERDICT_SUCCESS);

    assert_int_equal(scene->shared->queue.length, 0);
    assert_int_equal(scene_in_flight(scene), 0);
}


static void
standby_that_dies_leaves_none_to_wait_for(void **state)
{
    scene_t                   *scene = *state;
    llmgw_claim_t              claim;
    llmgw_lease_t              lease = { .is_held = 0 };
    llmgw_admission_answer_t   answer;

    claim = scene_wait(scene, 0, 1);
    scene->peers[1].state = LLMGW_PEER_UNUSABLE;
    scene->view.pick.nstandbys = 0;

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_NONE);
}


static void
without_a_queue_it_is_as_if_there_were_no_standby(void **state)
{
    scene_t                   *scene = *state;
    llmgw_claim_t              claim = scene_claim(1);
    llmgw_lease_t              lease = { .is_held = 0 };
    llmgw_admission_answer_t   answer;

    claim.no_wait = 1;
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_NONE);

    claim.no_wait = 0;
    scene->view.queue_size = 0;
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_NONE);
    assert_int_equal(claim.entry, LLMGW_QUEUE_NONE);
    assert_int_equal(scene->shared->queue.length, 0);
}


static void
queue_that_is_full_refuses_those_that_would_wait(void **state)
{
    uint64_t                   i;
    scene_t                   *scene = *state;
    llmgw_claim_t              claim = scene_claim(99);
    llmgw_lease_t              lease = { .is_held = 0 };
    llmgw_admission_answer_t   answer;

    for (i = 0; i < QUEUE; i++) {
        (void) scene_wait(scene, 0, i);
    }

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_FULL);
}


/*
 * The active replica failed the stream, but may serve it now: that is faster
 * than any takeover.
 */
static void
active_one_that_failed_is_tried_again_before_the_wait(void **state)
{
    uint32_t                   tried = 0;
    scene_t                   *scene = *state;
    llmgw_claim_t              claim = scene_claim(1);
    llmgw_lease_t              lease = { .is_held = 0 };
    llmgw_admission_answer_t   answer;

    scene->peers[0].state = LLMGW_PEER_ALIVE;
    claim.excluded = &tried;
    claim.nexcluded = 1;
    claim.may_restart = 1;

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(answer.picked.peer, 0);
    assert_int_equal(answer.forget, LLMGW_FORGET_ALL);
    (void) scene_end(scene, 0, &lease, LLMGW_VERDICT_SUCCESS);

    /* no process listened there, which uses up no try */
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
}


/* On its last try a claim avoids the replica that failed it; others use it. */
static void
last_try_waits_for_the_standby_and_is_skipped(void **state)
{
    uint32_t                   tried = 0;
    scene_t                   *scene = *state;
    llmgw_claim_t              claim = scene_claim(1);
    llmgw_lease_t              lease = { .is_held = 0 }, other;
    llmgw_admission_answer_t   answer;

    scene->peers[0].state = LLMGW_PEER_ALIVE;
    claim.excluded = &tried;
    claim.nexcluded = 1;
    claim.is_last = 1;

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(answer.forget, LLMGW_FORGET_BUT_FAILED);
    assert_int_equal(scene->shared->queue.skipped, 1);

    scene_lease(scene, 1, 2, &other);
    assert_int_equal(other.place.slot, scene->places[0].slot);
    (void) scene_end(scene, 1, &other, LLMGW_VERDICT_SUCCESS);

    activate(scene);
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(answer.picked.peer, 1);
    (void) scene_end(scene, 0, &lease, LLMGW_VERDICT_SUCCESS);
}


static void
worker_killed_in_the_wait_leaves_nothing(void **state)
{
    scene_t  *scene = *state;

    (void) scene_wait(scene, 1, 1);
    (void) scene_wait(scene, 2, 2);

    llmgw_admission_drop_row(scene->shared, 1, scene->now_ms);
    assert_int_equal(scene->shared->queue.length, 1);

    llmgw_admission_drop_row(scene->shared, 2, scene->now_ms);
    assert_int_equal(scene->shared->queue.length, 0);
    assert_int_equal(scene_in_flight(scene), 0);
}


static void
hedge_is_never_sent_to_a_standby(void **state)
{
    uint32_t                   first = 0;
    scene_t                   *scene = *state;
    llmgw_claim_t              claim = scene_claim(1);
    llmgw_lease_t              lease = { .is_held = 0 };
    llmgw_admission_self_t     self = scene_self(scene, 0);
    llmgw_admission_answer_t   answer;

    scene->peers[0].state = LLMGW_PEER_ALIVE;
    claim.excluded = &first;
    claim.nexcluded = 1;

    llmgw_admission_second(&self, &scene->view, &claim, 0, &lease,
                           scene->now_ms, 1, &answer);
    assert_int_not_equal(answer.rc, LLMGW_ADMISSION_LEASED);
    assert_false(lease.is_held);
}


#define TEST(name)                                                            \
    cmocka_unit_test_setup_teardown(name, setup, scene_teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(streams_wait_and_are_served_by_the_successor),
        TEST(standby_that_dies_leaves_none_to_wait_for),
        TEST(without_a_queue_it_is_as_if_there_were_no_standby),
        TEST(queue_that_is_full_refuses_those_that_would_wait),
        TEST(active_one_that_failed_is_tried_again_before_the_wait),
        TEST(last_try_waits_for_the_standby_and_is_skipped),
        TEST(worker_killed_in_the_wait_leaves_nothing),
        TEST(hedge_is_never_sent_to_a_standby),
    };

    return cmocka_run_group_tests_name("admission_standby", tests, NULL, NULL);
}
