
/*
 * Claims that have tried every replica, and that some of them failed.
 */

#include "t/unit/core/admission/admission_scene.h"


/* Makes a claim that has tried all replicas. */
static void
tries_all(llmgw_claim_t *claim)
{
    static const uint32_t  peers[PEERS] = { 0, 1, 2 };

    claim->excluded = peers;
    claim->nexcluded = PEERS;
}


static void
all_tried_starts_over_once_after_a_pause(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    tries_all(&claim);

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_EXCLUDED);
    assert_false(llmgw_claim_pauses(&claim, answer.rc));

    claim.may_restart = 1;      /* but after a pause */
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_EXCLUDED);
    assert_true(llmgw_claim_pauses(&claim, answer.rc));
    assert_int_equal(answer.forget, LLMGW_FORGET_NOTHING);

    claim.has_paused = 1;
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(answer.forget, LLMGW_FORGET_ALL);
    assert_false(claim.may_restart || claim.has_paused);

    claim.to_queue = 1;         /* even if there is capacity */
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_true(answer.has_joined && !claim.to_queue);
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_EXCLUDED);

    claim = scene_claim(6);
    tries_all(&claim);
    claim.is_urgent = 1;
    claim.saw_full = 1;         /* it queues, and tries no full replica */
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_true(answer.has_joined);
}


static void
one_that_may_not_wait_starts_over_without_a_pause(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    tries_all(&claim);
    claim.may_restart = 1;
    claim.no_wait = 1;

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(answer.forget, LLMGW_FORGET_ALL);
}


/* The replica that a claim waited for may be the one that failed it. */
static void
one_that_has_waited_starts_over_without_a_pause(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    claim.to_queue = 1;
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);

    tries_all(&claim);
    claim.may_restart = 1;
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_true(answer.has_left);
}


/* After a pause the claim would get the same answer, only later. */
static void
open_circuits_are_waited_for_without_a_pause(void **state)
{
    uint32_t                  i;
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             lease;
    llmgw_breaker_t          *breaker;
    llmgw_admission_answer_t  answer;

    for (i = 0; i < PEERS; i++) {
        breaker = (llmgw_breaker_t *) scene->peers[i].breaker;
        breaker->state = LLMGW_BREAKER_OPEN;
        breaker->since_ms = scene->now_ms;
        breaker->cooldown_ms = 500;
    }

    tries_all(&claim);
    claim.may_restart = 1;

    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene->shared->waits_for, LLMGW_WAITS_CIRCUIT);
    assert_true(answer.has_joined);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        SCENE_TEST(all_tried_starts_over_once_after_a_pause),
        SCENE_TEST(one_that_may_not_wait_starts_over_without_a_pause),
        SCENE_TEST(one_that_has_waited_starts_over_without_a_pause),
        SCENE_TEST(open_circuits_are_waited_for_without_a_pause),
    };

    return cmocka_run_group_tests_name("start_over", tests, NULL, NULL);
}
