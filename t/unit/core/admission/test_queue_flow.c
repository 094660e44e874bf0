
/*
 * The queue with flow control: which request is next, which are held or shed,
 * and that none is lost.
 */

#include "t/unit/core/admission/flow_cases.h"


static void
higher_class_is_served_before_lower_ones(void **state)
{
    uint32_t        i;
    scene_t        *scene = *state;
    llmgw_lease_t   leases[PLACES];
    llmgw_claim_t   claims[5];

    static const int32_t   priorities[] = { -2, 3, 4, 3, 4 };
    static const uint32_t  order[] = { 2, 4, 1, 3, 0 };

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_fill(scene, 0, leases);

    for (i = 0; i < 5; i++) {
        claims[i] = flow_wait(scene, 1 + i % 3, i, priorities[i], 0);
    }

    for (i = 0; i < 5; i++) {
        flow_next_is(scene, 1 + order[i] % 3, &claims[order[i]], &leases[i]);
    }

    assert_int_equal(scene->shared->queue.length, 0);
}


/* Such a newcomer is in the queue only during its claim. */
static void
newcomer_that_is_the_head_goes_at_once(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = flow_claim(1, 3, 0);
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN, 1, 0);

    assert_int_equal(scene_ask(scene, 1, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(claim.entry, LLMGW_QUEUE_NONE);
    assert_false(claim.was_granted);
    assert_false(answer.has_joined || answer.has_left);
    assert_int_equal(scene->shared->queue.length, 0);
}


/* Between a grant and its use a request of a higher class may come. */
static void
grant_that_came_too_late_is_given_again(void **state)
{
    scene_t                  *scene = *state;
    llmgw_wake_t              wake;
    llmgw_lease_t             leases[PLACES], lease;
    llmgw_claim_t             low, high = flow_claim(9, 4, 0);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_fill(scene, 0, leases);
    low = flow_wait(scene, 2, 1, 3, 0);

    wake = scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);
    assert_int_equal(wake.row, 2);

    assert_int_equal(scene_ask(scene, 1, &high, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);

    assert_int_equal(scene_ask(scene, 2, &low, &leases[0], &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_false(answer.has_joined);

    scene->now_ms += LLMGW_QUEUE_GRANT_MS;
    wake = scene_end(scene, 1, &lease, LLMGW_VERDICT_SUCCESS);
    assert_int_equal(wake.row, 2);
    assert_true(wake.is_new);
    assert_int_equal(scene_ask(scene, 2, &low, &leases[0], &answer),
                     LLMGW_ADMISSION_LEASED);
}


/* A request whose replica says that it is full keeps its ticket. */
static void
refused_grant_goes_back_to_its_old_place(void **state)
{
    uint32_t                  i;
    scene_t                  *scene = *state;
    llmgw_lease_t             leases[PLACES];
    llmgw_claim_t             claims[3];
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_SLO_DEADLINE, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_fill(scene, 0, leases);

    for (i = 0; i < 3; i++) {
        claims[i] = flow_wait(scene, 1, i, 3, 7);
    }

    flow_next_is(scene, 1, &claims[0], &leases[0]);
    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_NEUTRAL);

    for (i = 0; i < PEERS; i++) {
        *scene_full(scene, i) = scene->now_ms + 10;
    }

    assert_int_equal(scene_ask(scene, 1, &claims[0], &leases[0], &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_true(claims[0].was_granted);
    scene->now_ms += 10;

    for (i = 0; i < 3; i++) {
        flow_next_is(scene, 1, &claims[i], &leases[i + 1]);
    }
}


static void
stream_with_tokens_out_is_before_every_class_and_never_held(void **state)
{
    scene_t                  *scene = *state;
    llmgw_lease_t             leases[PLACES];
    llmgw_claim_t             high, urgent = flow_claim(9, -3, 0);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 1);
    flow_fill(scene, 0, leases);
    scene->view.saturation = 2;

    high = flow_wait(scene, 1, 1, 4, 0);
    urgent.is_urgent = 1;
    assert_int_equal(scene_ask(scene, 2, &urgent, &leases[0], &answer),
                     LLMGW_ADMISSION_WAITS);

    flow_next_is(scene, 2, &urgent, &leases[0]);

    /* the other request is held, even after a wakeup */
    assert_int_equal(scene_end(scene, 0, &leases[0],
                               LLMGW_VERDICT_SUCCESS).row, 1);
    assert_int_equal(scene_ask(scene, 1, &high, &leases[0], &answer),
                     LLMGW_ADMISSION_WAITS);

    /* no place is freed any more: the timer wakes the request again */
    scene->view.saturation = 0.99;
    assert_int_equal(scene_ask(scene, 1, &high, &leases[0], &answer),
                     LLMGW_ADMISSION_LEASED);
}


/* Three bands and a limit of 0.5: ceilings 1, 0.75, 0.5. */
static void
lower_classes_are_held_at_lower_ceilings(void **state)
{
    uint32_t                  i, k;
    scene_t                  *scene = *state;
    llmgw_claim_t             claims[3];
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    static const int32_t  priorities[] = { -2, 3, 4 };
    static const double   ceilings[] = { 0.5, 0.75, 1 };

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 0.5, 0);
    scene->view.saturation = 1;

    for (i = 0; i < 3; i++) {
        claims[i] = flow_wait(scene, 1, i, priorities[i], 0);
    }

    for (i = 3; i-- > 0; /* void */ ) {
        scene->view.saturation = ceilings[i];

        for (k = 0; k <= i; k++) {
            assert_int_equal(scene_ask(scene, 1, &claims[k], &lease, &answer),
                             LLMGW_ADMISSION_WAITS);
        }

        scene->view.saturation = ceilings[i] - 0.001;
        assert_int_equal(scene_ask(scene, 1, &claims[i], &lease, &answer),
                         LLMGW_ADMISSION_LEASED);
    }

    /* a newcomer is held by the bands that were seen */
    claims[0] = flow_claim(9, -2, 0);
    scene->view.saturation = 0.5;
    assert_int_equal(scene_ask(scene, 1, &claims[0], &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
}


/* (sum x)^2 / (n x sum x^2): Jain, Chiu, Hawe, 1984 */
static double
jain(const double *x, size_t n)
{
    size_t  i;
    double  sum, squares;

    sum = squares = 0;

    for (i = 0; i < n; i++) {
        sum += x[i];
        squares += x[i] * x[i];
    }

    return sum * sum / ((double) n * squares);
}


/*
 * Tenant 0 sends ten requests for each one of the other three tenants, and all
 * send more than their share: the queue is full all the time.
 */
static void
serve_unequal_tenants(scene_t *scene, double *served)
{
    uint32_t                  round, i, k;
    llmgw_lease_t             leases[PLACES], lease;
    llmgw_claim_t             claim, waiting[WAITERS];
    const llmgw_queue_t      *queue = &scene->shared->queue;
    llmgw_admission_answer_t  answer;

    flow_fill(scene, 0, leases);

    for (round = 0; round < 400; round++) {
        for (i = 0; i < 13; i++) {
            claim = flow_claim(round * 13 + i, 3, i < 10 ? 0 : i - 9);

            if (scene_ask(scene, i % 3 + 1, &claim, &lease, &answer)
                == LLMGW_ADMISSION_WAITS)
            {
                waiting[claim.entry] = claim;
            }

            while ((k = queue->shed.first) != LLMGW_QUEUE_NONE) {
                assert_int_equal(scene_ask(scene, queue->entries[k].row,
                                           &waiting[k], &lease, &answer),
                                 LLMGW_ADMISSION_SHED);
            }
        }

        /* one in four gets through */
        for (i = 0; i < 3; i++) {
            k = llmgw_queue_head(&scene->shared->queue, scene->now_ms);
            served[queue->entries[k].tenant]++;
            flow_next_is(scene, queue->entries[k].row, &waiting[k],
                         &leases[i]);
        }
    }
}


static void
tenant_with_ten_times_the_load_gets_its_share(void **state)
{
    double    served[4] = { 0 };
    scene_t  *scene = *state;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN, 1, 0);
    serve_unequal_tenants(scene, served);
    assert_true(jain(served, 4) > 0.99);
}


/* The same load without fairness: jain() can show that it is unfair. */
static void
strict_order_serves_whoever_sends_most(void **state)
{
    double    served[4] = { 0 };
    scene_t  *scene = *state;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    serve_unequal_tenants(scene, served);
    assert_true(jain(served, 4) < 0.6);
}


static void
full_queue_sheds_the_newest_of_the_lowest_class(void **state)
{
    uint32_t                  i;
    uint64_t                  ticket;
    scene_t                  *scene = *state;
    llmgw_wake_t              wake;
    llmgw_lease_t             leases[PLACES];
    llmgw_claim_t             claims[QUEUE], high;
    llmgw_admission_self_t    self = scene_self(scene, 2);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 1);
    flow_fill(scene, 0, leases);

    for (i = 0; i < QUEUE; i++) {
        claims[i] = flow_wait(scene, 2, i, i < 2 ? -3 : -1, 0);
    }

    /* no request is of a lower class: the newcomer is refused */
    high = flow_claim(20, -3, 0);
    assert_int_equal(scene_ask(scene, 1, &high, &leases[0], &answer),
                     LLMGW_ADMISSION_FULL);
    assert_int_equal(high.entry, LLMGW_QUEUE_NONE);

    high = flow_claim(21, 4, 0);
    assert_int_equal(scene_ask(scene, 1, &high, &leases[0], &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(answer.shed.row, 2);
    assert_int_equal(answer.shed.process, 102);
    assert_int_equal(scene->shared->queue.length, QUEUE);
    assert_int_equal(scene->shared->queue.counted, QUEUE);

    assert_int_equal(llmgw_admission_turn(&self, scene->now_ms, &ticket,
                                          &wake),
                     claims[1].entry);
    assert_int_equal(ticket, claims[1].ticket);
    assert_int_equal(scene_ask(scene, 2, &claims[1], &leases[0], &answer),
                     LLMGW_ADMISSION_SHED);
    assert_true(answer.has_left);
    assert_int_equal(claims[1].entry, LLMGW_QUEUE_NONE);

    /* the queue continues without the shed request */
    assert_int_equal(llmgw_admission_turn(&self, scene->now_ms, &ticket,
                                          &wake),
                     LLMGW_QUEUE_NONE);
    assert_int_equal(wake.row, 1);
    flow_next_is(scene, 1, &high, &leases[0]);
}


static void
queue_without_shedding_refuses(void **state)
{
    uint32_t                  i;
    scene_t                  *scene = *state;
    llmgw_lease_t             leases[PLACES];
    llmgw_claim_t             high = flow_claim(21, 4, 0);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_fill(scene, 0, leases);

    for (i = 0; i < QUEUE; i++) {
        (void) flow_wait(scene, 2, i, -3, 0);
    }

    assert_int_equal(scene_ask(scene, 1, &high, &leases[0], &answer),
                     LLMGW_ADMISSION_FULL);
    assert_int_equal(answer.shed.row, LLMGW_NO_ROW);
    assert_int_equal(scene->shared->queue.length, QUEUE);

    /* a free place is given to a claim, whatever waits */
    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);
    assert_int_equal(scene_ask(scene, 1, &high, &leases[0], &answer),
                     LLMGW_ADMISSION_LEASED);
}


static void
claim_that_cannot_wait_goes_only_if_it_is_the_head(void **state)
{
    scene_t                  *scene = *state;
    llmgw_lease_t             leases[PLACES], lease;
    llmgw_claim_t             low, hasty = flow_claim(5, 3, 0);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_fill(scene, 0, leases);
    low = flow_wait(scene, 1, 1, 4, 0);
    hasty.no_wait = 1;

    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);
    assert_int_equal(scene_ask(scene, 2, &hasty, &lease, &answer),
                     LLMGW_ADMISSION_FULL);
    assert_int_equal(hasty.entry, LLMGW_QUEUE_NONE);

    assert_int_equal(scene_ask(scene, 1, &low, &leases[0], &answer),
                     LLMGW_ADMISSION_LEASED);
    scene_end(scene, 1, &leases[0], LLMGW_VERDICT_SUCCESS);
    assert_int_equal(scene_ask(scene, 2, &hasty, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(scene->shared->queue.length, 0);
}


/*
 * The head's replica is full while others have capacity: requests after it may
 * use that.
 */
static void
skipped_head_lets_others_go_and_keeps_its_place(void **state)
{
    uint32_t                  tried[] = { 2 };
    scene_t                  *scene = *state;
    llmgw_lease_t             leases[PLACES], lease;
    llmgw_claim_t             high, low;
    llmgw_admission_self_t    self = scene_self(scene, 1);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_fill(scene, 0, leases);
    low = flow_wait(scene, 2, 2, -1, 0);
    high = flow_wait(scene, 1, 1, 4, 0);

    /* only peer 2 has a place, and it has refused the high request */
    while (scene->peers[2].counts->in_flight == CAPACITY) {
        lease = leases[0];
        scene_end(scene, 0, &lease, LLMGW_VERDICT_NEUTRAL);
        memmove(leases, leases + 1, sizeof(lease) * (PLACES - 1));
    }

    *scene_full(scene, 0) = *scene_full(scene, 1)
        = scene->now_ms + 100;
    high.excluded = tried;
    high.nexcluded = 1;
    high.is_last = 1;

    assert_int_equal(scene_ask(scene, 1, &high, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene->shared->queue.skipped, 1);

    assert_int_equal(scene_ask(scene, 2, &low, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);

    low = flow_wait(scene, 2, 3, -1, 0);
    llmgw_admission_look(&self, scene->now_ms);
    assert_int_equal(scene->shared->queue.skipped, 0);

    scene->now_ms += 100;
    assert_int_equal(scene_ask(scene, 2, &low, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene_ask(scene, 1, &high, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
}


/* The head drops its exclusions, and is still judged as the head. */
static void
head_that_starts_over_is_still_the_head(void **state)
{
    uint32_t                  failed;
    scene_t                  *scene = *state;
    llmgw_claim_t             high = flow_claim(99, 4, 0);
    llmgw_lease_t             leases[PLACES], lease;
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    scene->view.queue_size = 1;
    flow_fill(scene, 0, leases);
    (void) flow_wait(scene, 2, 1, 3, 0);

    failed = leases[0].place.slot;
    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_NEUTRAL);

    high.excluded = &failed;
    high.nexcluded = 1;
    high.may_restart = 1;
    high.has_paused = 1;

    assert_int_equal(scene_ask(scene, 1, &high, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(lease.place.slot, failed);
}


static void
worker_that_stands_still_is_passed_over(void **state)
{
    uint64_t                  ticket;
    scene_t                  *scene = *state;
    llmgw_wake_t              wake;
    llmgw_lease_t             leases[PLACES];
    llmgw_claim_t             frozen, quick;
    llmgw_admission_self_t    slow = scene_self(scene, 2);
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_ROUND_ROBIN, 1, 0);
    flow_fill(scene, 0, leases);
    frozen = flow_wait(scene, 2, 1, 4, 0);
    quick = flow_wait(scene, 1, 2, 3, 0);

    assert_int_equal(scene_end(scene, 0, &leases[0],
                               LLMGW_VERDICT_SUCCESS).row, 2);

    scene->now_ms += LLMGW_QUEUE_GRANT_MS;
    assert_int_equal(scene_ask(scene, 1, &quick, &leases[0], &answer),
                     LLMGW_ADMISSION_LEASED);

    /* its worker runs again, so it is the head again */
    llmgw_admission_look(&slow, scene->now_ms);
    assert_int_equal(llmgw_admission_turn(&slow, scene->now_ms, &ticket,
                                          &wake),
                     frozen.entry);
}


/*
 * After a reload all requests keep waiting, in the order that is now in force.
 */
static void
order_may_change_while_requests_wait(void **state)
{
    uint32_t        i;
    scene_t        *scene = *state;
    llmgw_lease_t   leases[PLACES];
    llmgw_claim_t   claims[6];

    flow_fill(scene, 0, leases);

    for (i = 0; i < 6; i++) {
        claims[i] = flow_wait(scene, 1, i, (int32_t) (i % 3), i % 2);
    }

    flow_next_is(scene, 1, &claims[0], &leases[0]);

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 0);
    flow_next_is(scene, 1, &claims[2], &leases[0]);

    /* of class 2 the fifth is left; then tenant 0's and 1's in turns */
    flow_on(scene, LLMGW_FLOW_FIFO, LLMGW_FLOW_ROUND_ROBIN, 1, 0);
    flow_next_is(scene, 1, &claims[4], &leases[0]);
    flow_next_is(scene, 1, &claims[1], &leases[0]);

    assert_true(llmgw_admission_order(scene->shared, NULL));
    flow_next_is(scene, 1, &claims[3], &leases[0]);
    flow_next_is(scene, 1, &claims[5], &leases[0]);
    assert_int_equal(scene->shared->queue.length, 0);
}


static void
queue_without_places_refuses_what_does_not_fit(void **state)
{
    uint32_t                  i;
    scene_t                  *scene = *state;
    llmgw_claim_t             claim;
    llmgw_lease_t             lease;
    llmgw_admission_answer_t  answer;

    flow_on(scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1, 1);
    scene->view.queue_size = 0;

    for (i = 0; i < PLACES; i++) {
        scene_lease(scene, 0, i, &lease);
    }

    claim = flow_claim(9, 4, 0);
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_FULL);
    assert_int_equal(scene->shared->queue.length, 0);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        SCENE_TEST(higher_class_is_served_before_lower_ones),
        SCENE_TEST(newcomer_that_is_the_head_goes_at_once),
        SCENE_TEST(grant_that_came_too_late_is_given_again),
        SCENE_TEST(refused_grant_goes_back_to_its_old_place),
        SCENE_TEST(stream_with_tokens_out_is_before_every_class_and_never_held),
        SCENE_TEST(lower_classes_are_held_at_lower_ceilings),
        SCENE_TEST(tenant_with_ten_times_the_load_gets_its_share),
        SCENE_TEST(strict_order_serves_whoever_sends_most),
        SCENE_TEST(full_queue_sheds_the_newest_of_the_lowest_class),
        SCENE_TEST(queue_without_shedding_refuses),
        SCENE_TEST(claim_that_cannot_wait_goes_only_if_it_is_the_head),
        SCENE_TEST(skipped_head_lets_others_go_and_keeps_its_place),
        SCENE_TEST(head_that_starts_over_is_still_the_head),
        SCENE_TEST(worker_that_stands_still_is_passed_over),
        SCENE_TEST(order_may_change_while_requests_wait),
        SCENE_TEST(queue_without_places_refuses_what_does_not_fit),
    };

    return cmocka_run_group_tests_name("queue_flow", tests, NULL, NULL);
}
