
/* Lease, queue, refusal, and which waiter is next: core/admission/. */

#include "t/unit/core/admission/admission_scene.h"


/* Rows 0 and 1 take all places in turn; leases: PEERS * CAPACITY. */
static void
fill(scene_t *scene, llmgw_lease_t *leases)
{
    uint32_t  i;

    for (i = 0; i < PEERS * CAPACITY; i++) {
        scene_lease(scene, i % 2, i, &leases[i]);
    }
}


static uint32_t
peer_of(const scene_t *scene, const llmgw_lease_t *lease)
{
    uint32_t  i;

    for (i = 0; i < PEERS; i++) {
        if (scene->places[i].slot == lease->place.slot) {
            return i;
        }
    }

    return PEERS;
}


static void
lease_counts_in_total_and_share_until_its_end(void **state)
{
    scene_t        *scene = *state;
    llmgw_slot_t   *slot;
    llmgw_lease_t   lease;

    scene_lease(scene, 1, 5, &lease);
    slot = llmgw_slot(scene->shared, lease.place.slot);
    assert_int_equal(slot->counts.in_flight, 1);
    assert_int_equal(*llmgw_share(scene->shared, lease.place.slot, 1), 1);

    scene_end(scene, 1, &lease, LLMGW_VERDICT_SUCCESS);
    assert_int_equal(slot->counts.in_flight, 0);
    assert_int_equal(*llmgw_share(scene->shared, lease.place.slot, 1), 0);

    scene_end(scene, 1, &lease, LLMGW_VERDICT_SUCCESS);     /* counts once */
    assert_int_equal(slot->counts.in_flight, 0);
}


static void
capacity_is_served_and_not_more(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim;
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_answer_t  answer;

    fill(scene, leases);
    assert_int_equal(scene_in_flight(scene), PEERS * CAPACITY);

    claim = scene_claim(99);
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_true(answer.has_joined);
    assert_int_equal(scene_in_flight(scene), PEERS * CAPACITY);
}


static void
place_that_comes_free_wakes_the_head_and_nobody_overtakes(void **state)
{
    scene_t                  *scene = *state;
    llmgw_wake_t              wake;
    llmgw_claim_t             first, second, late;
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_answer_t  answer;

    fill(scene, leases);
    first = scene_wait(scene, 2, 50);
    second = scene_wait(scene, 1, 51);

    wake = scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);
    assert_int_equal(wake.row, 2);
    assert_int_equal(wake.process, 102);
    assert_true(wake.is_new);

    late = scene_claim(52);
    assert_int_equal(scene_ask(scene, 0, &late, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene_ask(scene, 1, &second, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);

    assert_int_equal(scene_ask(scene, 2, &first, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_true(answer.has_left);
    assert_int_equal(answer.wake.row, 1);       /* the next claim may look */
    assert_int_equal(scene->shared->queue.length, 2);
}


static void
head_that_leaves_passes_its_turn_on(void **state)
{
    scene_t                 *scene = *state;
    llmgw_wake_t             wake;
    llmgw_claim_t            first, second;
    llmgw_lease_t            leases[PEERS * CAPACITY];
    llmgw_admission_self_t   self = scene_self(scene, 2);

    fill(scene, leases);
    first = scene_wait(scene, 2, 50);
    second = scene_wait(scene, 1, 51);
    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);

    llmgw_admission_leave(&self, &first, scene->now_ms, &wake);
    assert_int_equal(wake.row, 1);
    assert_int_equal(first.entry, LLMGW_QUEUE_NONE);

    self = scene_self(scene, 1);
    llmgw_admission_leave(&self, &second, scene->now_ms, &wake);
    assert_int_equal(wake.row, LLMGW_NO_ROW);
    assert_int_equal(scene->shared->queue.length, 0);
}


/*
 * A claim that its replica refused returns to its place, and `size` does not
 * limit that.
 */
static void
refused_grant_goes_back_with_its_old_ticket(void **state)
{
    uint32_t                  i;
    uint64_t                  ticket;
    scene_t                  *scene = *state;
    llmgw_claim_t             first, other;
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_self_t    self = scene_self(scene, 2);
    llmgw_admission_answer_t  answer;
    llmgw_wake_t              wake;

    fill(scene, leases);
    first = scene_wait(scene, 2, 50);

    for (i = 1; i < QUEUE; i++) {
        (void) scene_wait(scene, 3, 50 + i);
    }

    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);
    assert_int_equal(scene_ask(scene, 2, &first, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    (void) scene_wait(scene, 3, 77);            /* its place is taken */

    other = scene_claim(78);
    assert_int_equal(scene_ask(scene, 3, &other, &leases[0], &answer),
                     LLMGW_ADMISSION_FULL);

    *scene_full(scene, peer_of(scene, &lease)) = scene->now_ms + 100;
    scene_end(scene, 2, &lease, LLMGW_VERDICT_NEUTRAL);

    ticket = first.ticket;
    assert_int_equal(scene_ask(scene, 2, &first, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(first.ticket, ticket);
    assert_int_equal(llmgw_admission_turn(&self, scene->now_ms, &ticket,
                                          &wake), first.entry);
}


static void
tokens_that_are_out_go_before_all_others(void **state)
{
    scene_t                  *scene = *state;
    uint64_t                  ticket;
    llmgw_wake_t              wake;
    llmgw_claim_t             urgent;
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_self_t    self = scene_self(scene, 1);
    llmgw_admission_answer_t  answer;

    fill(scene, leases);
    (void) scene_wait(scene, 2, 50);

    urgent = scene_claim(60);
    urgent.is_urgent = 1;
    assert_int_equal(scene_ask(scene, 1, &urgent, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(llmgw_admission_turn(&self, scene->now_ms, &ticket,
                                          &wake), urgent.entry);
    assert_int_equal(ticket, urgent.ticket);
}


/*
 * On its last try a claim excludes all replicas but a full one: it waits for
 * that one, and others use the rest.
 */
static void
last_try_keeps_those_that_failed_and_is_skipped(void **state)
{
    uint32_t                  i, full, excluded[PEERS], n;
    scene_t                  *scene = *state;
    llmgw_claim_t             claim, newcomer;
    llmgw_lease_t             lease, other;
    llmgw_admission_answer_t  answer;

    full = 1;
    n = 0;

    for (i = 0; i < PEERS; i++) {
        if (i != full) {
            excluded[n++] = i;
        }
    }

    *scene_full(scene, full) = scene->now_ms + 100;

    claim = scene_claim(5);
    claim.excluded = excluded;
    claim.nexcluded = n;
    claim.is_last = 1;

    assert_int_equal(scene_ask(scene, 2, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(answer.forget, LLMGW_FORGET_BUT_FAILED);

    newcomer = scene_claim(6);
    assert_int_equal(scene_ask(scene, 1, &newcomer, &other, &answer),
                     LLMGW_ADMISSION_LEASED);

    /* a place that is freed calls the claim back, before any new request */

    scene->now_ms += 100;
    scene_end(scene, 1, &other, LLMGW_VERDICT_SUCCESS);
    newcomer = scene_claim(7);
    assert_int_equal(scene_ask(scene, 1, &newcomer, &other, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene_ask(scene, 2, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(peer_of(scene, &lease), full);
}


/*
 * A stream that has delivered tokens waits for its group, and others use the
 * rest.
 */
static void
stream_whose_resume_group_is_full_is_skipped(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5), newcomer;
    llmgw_lease_t             lease, other;
    llmgw_admission_answer_t  answer;

    scene->peers[1].resume_group = 7;
    *scene_full(scene, 1) = scene->now_ms + 100;
    claim.is_urgent = 1;
    claim.resumes = 1;
    claim.resume_group = 7;

    assert_int_equal(scene_ask(scene, 2, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(answer.forget, LLMGW_FORGET_ALL);

    newcomer = scene_claim(6);
    assert_int_equal(scene_ask(scene, 1, &newcomer, &other, &answer),
                     LLMGW_ADMISSION_LEASED);

    scene->now_ms += 100;
    scene_end(scene, 1, &other, LLMGW_VERDICT_SUCCESS);
    assert_int_equal(scene_ask(scene, 2, &claim, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(peer_of(scene, &lease), 1);
}


static void
claim_with_tries_left_drops_its_exclusions_when_it_waits(void **state)
{
    scene_t                  *scene = *state;
    uint32_t                  excluded[] = { 0 };
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_answer_t  answer;

    fill(scene, leases);
    claim.excluded = excluded;
    claim.nexcluded = 1;

    assert_int_equal(scene_ask(scene, 2, &claim, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(answer.forget, LLMGW_FORGET_ALL);
}


static void
who_may_not_wait_is_told_so(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim;
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_answer_t  answer;

    fill(scene, leases);

    claim = scene_claim(5);
    claim.no_wait = 1;
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_FULL);

    claim = scene_claim(5);     /* no sweep would find it without a row */
    assert_int_equal(scene_ask(scene, LLMGW_NO_ROW, &claim, &lease, &answer),
                     LLMGW_ADMISSION_FULL);

    scene->view.queue_size = 0;
    claim = scene_claim(5);
    assert_int_equal(scene_ask(scene, 0, &claim, &lease, &answer),
                     LLMGW_ADMISSION_FULL);
    assert_int_equal(scene->shared->queue.length, 0);
}


static void
open_circuits(scene_t *scene)
{
    uint32_t          i;
    llmgw_breaker_t  *breaker;

    for (i = 0; i < PEERS; i++) {
        breaker = (llmgw_breaker_t *) scene->peers[i].breaker;
        breaker->state = LLMGW_BREAKER_OPEN;
        breaker->since_ms = scene->now_ms - 200;
        breaker->cooldown_ms = 500;
    }
}


static void
one_attempt_probes_while_all_circuits_are_open(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             first, second;
    llmgw_lease_t             lease, other;
    llmgw_admission_end_t     end;
    llmgw_admission_self_t    self = scene_self(scene, 0);
    llmgw_admission_answer_t  answer;

    open_circuits(scene);

    first = scene_claim(5);
    assert_int_equal(scene_ask(scene, 0, &first, &lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    assert_int_equal(answer.change, LLMGW_BREAKER_HALF_OPENED);

    second = scene_claim(6);
    assert_int_equal(scene_ask(scene, 1, &second, &other, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_int_equal(scene->shared->waits_for, LLMGW_WAITS_CIRCUIT);

    llmgw_admission_prove(&self, &scene->breaker_conf, &lease, scene->now_ms,
                          &end);
    assert_int_equal(end.change, LLMGW_BREAKER_RECLOSED);
    assert_int_equal(scene_ask(scene, 1, &second, &other, &answer),
                     LLMGW_ADMISSION_LEASED);

    llmgw_admission_end(&self, &scene->breaker_conf, &lease,
                        LLMGW_VERDICT_FAILURE, scene->now_ms, &end);
    assert_int_equal(end.change, LLMGW_BREAKER_UNCHANGED);  /* judged before */
}


static void
hedge_takes_another_replica_and_nobodys_place(void **state)
{
    uint32_t                  excluded[1];
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             first, second;
    llmgw_admission_self_t    self = scene_self(scene, 0);
    llmgw_admission_answer_t  answer;

    assert_int_equal(scene_ask(scene, 0, &claim, &first, &answer),
                     LLMGW_ADMISSION_LEASED);

    excluded[0] = peer_of(scene, &first);
    claim.excluded = excluded;
    claim.nexcluded = 1;

    llmgw_admission_second(&self, &scene->view, &claim, 1, &second,
                           scene->now_ms, 3, &answer);
    assert_int_equal(answer.rc, LLMGW_ADMISSION_LEASED);
    assert_int_not_equal(second.place.slot, first.place.slot);
    assert_int_equal(scene_in_flight(scene), 2);

    scene_lease(scene, 0, 6, &first);
    scene_lease(scene, 0, 7, &first);
    scene_lease(scene, 0, 8, &first);
    scene_lease(scene, 0, 9, &first);           /* all taken: saturated */
    llmgw_admission_second(&self, &scene->view, &claim, 0, &second,
                           scene->now_ms, 3, &answer);
    assert_int_not_equal(answer.rc, LLMGW_ADMISSION_LEASED);
}


/*
 * A fleet at its usage limit gets no hedge, even if replicas have room, which
 * an operator may want left free.
 */
static void
hedge_is_not_sent_into_a_fleet_that_is_full(void **state)
{
    scene_t                  *scene = *state;
    llmgw_claim_t             claim = scene_claim(5);
    llmgw_lease_t             second;
    llmgw_flow_conf_t         conf = { .usage_limit = 1 };
    llmgw_admission_self_t    self = scene_self(scene, 0);
    llmgw_admission_answer_t  answer;

    assert_true(llmgw_admission_order(scene->shared, &conf));

    scene->view.saturation = 1;
    llmgw_admission_second(&self, &scene->view, &claim, 0, &second,
                           scene->now_ms, 3, &answer);
    assert_int_equal(answer.rc, LLMGW_ADMISSION_FULL);
    assert_int_equal(scene_in_flight(scene), 0);

    scene->view.saturation = 0.99;
    llmgw_admission_second(&self, &scene->view, &claim, 0, &second,
                           scene->now_ms, 3, &answer);
    assert_int_equal(answer.rc, LLMGW_ADMISSION_LEASED);
}


/*
 * The worker of a granted claim was frozen: the grant passes on, and comes
 * back when that worker looks again.
 */
static void
grant_that_grew_old_is_had_again_by_a_look(void **state)
{
    uint64_t                ticket;
    scene_t                *scene = *state;
    llmgw_wake_t            wake;
    llmgw_claim_t           first, second;
    llmgw_lease_t           leases[PEERS * CAPACITY];
    llmgw_admission_self_t  slow = scene_self(scene, 2);
    llmgw_admission_self_t  quick = scene_self(scene, 1);

    fill(scene, leases);
    first = scene_wait(scene, 2, 50);
    second = scene_wait(scene, 1, 51);
    scene_end(scene, 0, &leases[0], LLMGW_VERDICT_SUCCESS);

    scene->now_ms += LLMGW_QUEUE_GRANT_MS;
    assert_int_equal(llmgw_admission_turn(&quick, scene->now_ms, &ticket,
                                          &wake), second.entry);

    llmgw_admission_look(&quick, scene->now_ms);    /* another row's look */
    assert_int_equal(llmgw_admission_turn(&quick, scene->now_ms, &ticket,
                                          &wake), second.entry);

    llmgw_admission_look(&slow, scene->now_ms);
    assert_int_equal(llmgw_admission_turn(&slow, scene->now_ms, &ticket,
                                          &wake), first.entry);
    assert_int_equal(llmgw_admission_turn(&quick, scene->now_ms, &ticket,
                                          &wake), LLMGW_QUEUE_NONE);
    assert_int_equal(wake.row, 2);
}


static void
entry_that_nobody_has_is_dropped(void **state)
{
    scene_t                *scene = *state;
    llmgw_claim_t           first;
    llmgw_lease_t           leases[PEERS * CAPACITY];
    llmgw_admission_self_t  self = scene_self(scene, 2);
    llmgw_admission_self_t  other = scene_self(scene, 1);

    fill(scene, leases);
    first = scene_wait(scene, 2, 50);

    llmgw_admission_drop(&self, first.entry, first.ticket + 1);
    llmgw_admission_drop(&other, first.entry, first.ticket);
    assert_int_equal(scene->shared->queue.length, 1);

    llmgw_admission_drop(&self, first.entry, first.ticket);
    assert_int_equal(scene->shared->queue.length, 0);
}


/* A claim whose row was given up is queued again, by its ticket. */
static void
claim_whose_entry_is_gone_waits_again(void **state)
{
    uint64_t                  ticket;
    scene_t                  *scene = *state;
    llmgw_claim_t             first;
    llmgw_lease_t             leases[PEERS * CAPACITY], lease;
    llmgw_admission_answer_t  answer;

    fill(scene, leases);
    first = scene_wait(scene, 2, 50);
    ticket = first.ticket;

    llmgw_admission_drop_row(scene->shared, 2, scene->now_ms);
    (void) scene_wait(scene, 1, 51);            /* takes the entry */

    assert_int_equal(scene_ask(scene, 2, &first, &lease, &answer),
                     LLMGW_ADMISSION_WAITS);
    assert_true(answer.has_left && answer.has_joined);
    assert_int_equal(first.ticket, ticket);
    assert_int_equal(scene->shared->queue.length, 2);
    assert_int_equal(scene->shared->queue.waits.first, first.entry);
}


int
main(void)
{
    const struct CMUnitTest  tests[] = {
        SCENE_TEST(lease_counts_in_total_and_share_until_its_end),
        SCENE_TEST(capacity_is_served_and_not_more),
        SCENE_TEST(place_that_comes_free_wakes_the_head_and_nobody_overtakes),
        SCENE_TEST(head_that_leaves_passes_its_turn_on),
        SCENE_TEST(refused_grant_goes_back_with_its_old_ticket),
        SCENE_TEST(tokens_that_are_out_go_before_all_others),
        SCENE_TEST(last_try_keeps_those_that_failed_and_is_skipped),
        SCENE_TEST(stream_whose_resume_group_is_full_is_skipped),
        SCENE_TEST(claim_with_tries_left_drops_its_exclusions_when_it_waits),
        SCENE_TEST(who_may_not_wait_is_told_so),
        SCENE_TEST(one_attempt_probes_while_all_circuits_are_open),
        SCENE_TEST(hedge_takes_another_replica_and_nobodys_place),
        SCENE_TEST(hedge_is_not_sent_into_a_fleet_that_is_full),
        SCENE_TEST(grant_that_grew_old_is_had_again_by_a_look),
        SCENE_TEST(entry_that_nobody_has_is_dropped),
        SCENE_TEST(claim_whose_entry_is_gone_waits_again),
    };

    return cmocka_run_group_tests_name("admission", tests, NULL, NULL);
}
