
/*
 * Requests that a replica asked to come later: they do not use it before that
 * time, and other waiting requests may use it meanwhile.  The tests set the
 * clock.
 */

#include "t/unit/core/admission/admission_scene.h"


static const uint32_t  everybody[PEERS] = { 0, 1, 2 };
static llmgw_pushed_t  pushed;


/* Each replica has pushed the claim back, the first of them until until_ms. */
static llmgw_claim_t
pushed_claim(uint64_t number, uint64_t until_ms)
{
    llmgw_claim_t  claim = scene_claim(number);

    pushed = (llmgw_pushed_t) { everybody, PEERS, until_ms };
    claim.pushed = &pushed;

    return claim;
}


static llmgw_admission_rc_t
ask(const scene_t *scene, uint32_t row, llmgw_claim_t *claim)
{
    llmgw_lease_t             lease = { .is_held = 0 };
    llmgw_admission_answer_t  answer;

    return scene_ask(scene, row, claim, &lease, &answer);
}


static void
look(scene_t *scene)
{
    llmgw_admission_self_t  self = scene_self(scene, 1);

    llmgw_admission_look(&self, scene->now_ms);
}


static uint32_t
head(scene_t *scene)
{
    return llmgw_queue_head(&scene->shared->queue, scene->now_ms);
}


static void
pushed_request_waits_and_holds_up_nobody(void **state)
{
    uint32_t        i;
    scene_t        *scene = *state;
    llmgw_claim_t   claim = pushed_claim(1, scene->now_ms + 700), other;
    llmgw_lease_t   lease;

    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_WAITS);

    /* not even a release, or a look, gives it a turn before its time */

    for (i = 0; i < 4; i++) {
        scene_lease(scene, 2, 10 + i, &lease);
        (void) scene_end(scene, 2, &lease, LLMGW_VERDICT_SUCCESS);
        look(scene);
        assert_int_equal(head(scene), LLMGW_QUEUE_NONE);
        scene->now_ms += 100;
    }

    scene->now_ms += 300;
    look(scene);
    assert_int_equal(head(scene), claim.entry);

    /* it is its turn now, before any newcomer */

    other = scene_claim(20);
    assert_int_equal(ask(scene, 2, &other), LLMGW_ADMISSION_WAITS);
    claim.pushed = NULL;
    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_LEASED);
    assert_int_equal(ask(scene, 2, &other), LLMGW_ADMISSION_LEASED);
    assert_int_equal(scene->shared->queue.length, 0);
}


/* The request looks for another replica, since one may join meanwhile. */
static void
pushed_request_looks_around_once_a_second(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   claim = pushed_claim(1, scene->now_ms + 10000);

    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_WAITS);

    scene->now_ms += LLMGW_QUEUE_REST_MS - 1;
    look(scene);
    assert_int_equal(head(scene), LLMGW_QUEUE_NONE);

    scene->now_ms++;
    look(scene);
    assert_int_equal(head(scene), claim.entry);
    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_WAITS);
    assert_int_equal(head(scene), LLMGW_QUEUE_NONE);
}


/* Pushed requests do not count towards the limit of skipped ones. */
static void
any_number_of_pushed_requests_may_wait(void **state)
{
    uint32_t       i;
    scene_t       *scene = *state;
    llmgw_claim_t  claims[QUEUE], other;

    scene->shared->queue.skipped = LLMGW_QUEUE_MAX_SKIPPED;

    for (i = 0; i < QUEUE; i++) {
        claims[i] = pushed_claim(i, scene->now_ms + 500);
        assert_int_equal(ask(scene, 1, &claims[i]), LLMGW_ADMISSION_WAITS);
    }

    other = scene_claim(50);
    assert_int_equal(ask(scene, 2, &other), LLMGW_ADMISSION_LEASED);

    /* but they count in the queue's size */

    claims[0] = pushed_claim(51, scene->now_ms + 500);
    assert_int_equal(ask(scene, 1, &claims[0]), LLMGW_ADMISSION_SKIPPABLE);
}


static void
another_replica_serves_a_pushed_request(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   claim = pushed_claim(1, scene->now_ms + 10000);

    pushed.peers = everybody + 1;
    pushed.npeers = PEERS - 1;

    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_LEASED);
    assert_int_equal(scene->peers[0].counts->in_flight, 1);
}


/*
 * A pushed request waits at the front for a full replica, and not for its
 * time.
 */
static void
full_replica_is_waited_for_at_once(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   claim = pushed_claim(1, scene->now_ms + 10000), other;

    pushed.peers = everybody + 1;
    pushed.npeers = PEERS - 1;
    *scene_full(scene, 0) = scene->now_ms + 50;

    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_WAITS);

    other = scene_claim(2);
    assert_int_equal(ask(scene, 2, &other), LLMGW_ADMISSION_LEASED);

    scene->now_ms += 50;
    look(scene);
    assert_int_equal(head(scene), claim.entry);
    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_LEASED);
}


/*
 * A request that was just refused rests at once: it does not hold up others
 * until its next turn.
 */
static void
refused_request_rests_from_the_beginning(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   claim = pushed_claim(1, scene->now_ms + 500), other;

    claim.excluded = everybody;
    claim.nexcluded = PEERS;
    claim.saw_full = 1;

    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_WAITS);
    other = scene_claim(2);
    assert_int_equal(ask(scene, 2, &other), LLMGW_ADMISSION_LEASED);
}


static void
first_token_ends_the_mark_for_all(void **state)
{
    scene_t                  *scene = *state;
    llmgw_lease_t             lease;
    llmgw_claim_t             waits;
    llmgw_admission_end_t     end;
    llmgw_admission_self_t    self = scene_self(scene, 0);
    uint32_t                  i;

    scene_lease(scene, 0, 1, &lease);

    for (i = 0; i < PEERS; i++) {
        llmgw_admission_full(&self, scene->places[i], 0, scene->now_ms);
    }

    waits = scene_wait(scene, 2, 2);

    llmgw_admission_prove(&self, &scene->breaker_conf, &lease, scene->now_ms,
                          &end);
    assert_int_equal(end.wake.row, 2);
    assert_int_equal(ask(scene, 2, &waits), LLMGW_ADMISSION_LEASED);
}


static void
less_load_ends_the_mark_for_all(void **state)
{
    scene_t                *scene = *state;
    llmgw_claim_t           waits;
    llmgw_admission_self_t  self = scene_self(scene, 0);
    uint32_t                i;

    for (i = 0; i < PEERS; i++) {
        llmgw_admission_full(&self, scene->places[i], 4, scene->now_ms);
    }

    waits = scene_wait(scene, 2, 2);
    llmgw_admission_reports(&self, scene->places[1], 4);
    assert_int_equal(ask(scene, 2, &waits), LLMGW_ADMISSION_WAITS);
    llmgw_admission_reports(&self, scene->places[1], 3);
    assert_int_equal(ask(scene, 2, &waits), LLMGW_ADMISSION_LEASED);
    assert_int_equal(scene->peers[1].counts->in_flight, 1);
}


static void
another_process_is_not_marked(void **state)
{
    scene_t                *scene = *state;
    llmgw_admission_self_t  self = scene_self(scene, 0);

    llmgw_admission_full(&self, scene->places[0], 0, scene->now_ms);
    assert_true(llmgw_full_stands(scene->peers[0].full, scene->now_ms));
    llmgw_slots_renew(scene->shared, scene->places[0], 77);
    assert_false(llmgw_full_stands(scene->peers[0].full, scene->now_ms));
}


/* What a process that dies in the middle of a change leaves is counted anew. */
static void
resting_requests_are_mended(void **state)
{
    scene_t        *scene = *state;
    llmgw_claim_t   claim = pushed_claim(1, scene->now_ms + 500);

    assert_int_equal(ask(scene, 1, &claim), LLMGW_ADMISSION_WAITS);
    scene->shared->queue.resting = scene->shared->queue.skipped = 99;
    llmgw_admission_mend(scene->shared);
    assert_int_equal(scene->shared->queue.resting, 1);
    assert_int_equal(scene->shared->queue.skipped, 0);

    (void) llmgw_queue_drop_row(&scene->shared->queue, 1);
    assert_int_equal(scene->shared->queue.resting, 0);
}


int
main(void)
{
    static const struct CMUnitTest  tests[] = {
        SCENE_TEST(pushed_request_waits_and_holds_up_nobody),
        SCENE_TEST(pushed_request_looks_around_once_a_second),
        SCENE_TEST(any_number_of_pushed_requests_may_wait),
        SCENE_TEST(another_replica_serves_a_pushed_request),
        SCENE_TEST(full_replica_is_waited_for_at_once),
        SCENE_TEST(refused_request_rests_from_the_beginning),
        SCENE_TEST(first_token_ends_the_mark_for_all),
        SCENE_TEST(less_load_ends_the_mark_for_all),
        SCENE_TEST(another_process_is_not_marked),
        SCENE_TEST(resting_requests_are_mended),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
