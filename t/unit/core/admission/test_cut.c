
/*
 * Each change of the shared memory, cut at each of its stores: counts equal
 * the shares, the queue serves all that live in the order of their tickets,
 * and the pool serves exactly its capacity.  cut_scene.h says how it is done.
 */

#include "core/admission/lease.h"
#include "t/unit/core/admission/cut_scene.h"


/* The changes, each by row 1. */

static void
claims(world_t *world)
{
    llmgw_admission_answer_t  answer;

    (void) scene_ask(&world->scene, DYING, &world->claim, &world->lease,
                     &answer);
}


static void
ends(world_t *world)
{
    (void) scene_end(&world->scene, DYING, &world->lease,
                     LLMGW_VERDICT_SUCCESS);
}


static void
ends_failed(world_t *world)
{
    (void) scene_end(&world->scene, DYING, &world->lease,
                     LLMGW_VERDICT_FAILURE);
}


static void
proves(world_t *world)
{
    llmgw_admission_end_t   end;
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_prove(&self, &world->scene.breaker_conf, &world->lease,
                          world->scene.now_ms, &end);
}


static void
hedges(world_t *world)
{
    llmgw_admission_self_t    self = scene_self(&world->scene, DYING);
    llmgw_admission_answer_t  answer;

    llmgw_admission_second(&self, &world->scene.view, &world->claim, 1,
                           &world->lease, world->scene.now_ms, 3, &answer);
}


static void
leaves(world_t *world)
{
    llmgw_wake_t            wake;
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_leave(&self, &world->claim, world->scene.now_ms, &wake);
}


static void
wakes(world_t *world)
{
    llmgw_wake_t            wake;
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_begin(self.shared);
    llmgw_queue_wake(self.shared, world->scene.now_ms, &wake);
    llmgw_admission_commit(self.shared);
}


static void
looks(world_t *world)
{
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_look(&self, world->scene.now_ms);
}


static void
drops(world_t *world)
{
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_drop(&self, world->claim.entry, world->claim.ticket);
}


static void
sweeps(world_t *world)
{
    llmgw_admission_drop_row(world->scene.shared, DEAD,
                             world->scene.now_ms);
}


static void
mends(world_t *world)
{
    llmgw_admission_mend(world->scene.shared);
}


static void
attaches(world_t *world)
{
    (void) llmgw_slots_attach(world->scene.shared, "r4", 2,
                              world->scene.now_ms);
}


static void
gives_up(world_t *world)
{
    llmgw_slots_free(world->scene.shared, world->slot);
}


static void
renews(world_t *world)
{
    llmgw_slots_renew(world->scene.shared, world->scene.places[0], 77);
}


/* The situations in which the changes are made. */

static int
setup(void **state)
{
    static world_t  world;

    memset(&world, 0, sizeof(world_t));
    scene_init(&world.scene);
    world.claim = scene_claim(5);
    *state = &world;

    return 0;
}


static int
teardown(void **state)
{
    world_t  *world = *state;

    scene_done(&world->scene);

    return 0;
}


/* All places are taken, by all rows; each row has waiters, mixed. */

static void
crowd(world_t *world)
{
    uint32_t       i;
    scene_t       *scene;
    llmgw_lease_t  lease;

    scene = &world->scene;

    for (i = 0; i < PEERS * CAPACITY - 1; i++) {
        scene_lease(scene, i % ROWS, i, &lease);
    }

    scene_lease(scene, DYING, i, &world->lease);

    (void) scene_wait(scene, 3, 20);
    (void) scene_wait(scene, DEAD, 21);
    world->claim = scene_wait(scene, DYING, 22);
    (void) scene_wait(scene, 0, 23);
    (void) scene_wait(scene, DEAD, 24);
    (void) scene_wait(scene, 3, 25);
}


/* The queue's head is row 1's claim. */

static void
advance(world_t *world)
{
    uint32_t       i;
    llmgw_queue_t  *queue;

    queue = &world->scene.shared->queue;

    for (i = queue->waits.first;
         i != world->claim.entry;
         i = queue->waits.first)
    {
        llmgw_queue_remove(queue, i);
    }

    llmgw_queue_grant(queue, i, world->scene.now_ms);
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
lease_of_a_newcomer(void **state)
{
    cut(*state, claims, 5);
}


static void
lease_by_force(void **state)
{
    world_t  *world = *state;

    open_circuits(&world->scene);
    cut(world, claims, 8);
}


static void
lease_of_the_head(void **state)
{
    world_t  *world = *state;

    crowd(world);
    advance(world);
    (void) scene_end(&world->scene, DYING, &world->lease,
                     LLMGW_VERDICT_SUCCESS);
    cut(world, claims, 9);
}


static void
lease_for_a_hedge(void **state)
{
    cut(*state, hedges, 5);
}


static void
release(void **state)
{
    crowd(*state);
    cut(*state, ends, 5);
}


static void
release_that_opens_the_circuit(void **state)
{
    world_t        *world = *state;
    llmgw_lease_t   lease;

    scene_lease(&world->scene, DYING, 5, &lease);
    scene_lease(&world->scene, DYING, 5, &world->lease);
    scene_end(&world->scene, DYING, &lease, LLMGW_VERDICT_FAILURE);
    cut(world, ends_failed, 8);
}


static void
proof_that_closes_the_circuit(void **state)
{
    world_t                   *world = *state;
    llmgw_admission_answer_t   answer;

    open_circuits(&world->scene);
    assert_int_equal(scene_ask(&world->scene, DYING, &world->claim,
                               &world->lease, &answer),
                     LLMGW_ADMISSION_LEASED);
    cut(world, proves, 4);
}


static void
join(void **state)
{
    world_t  *world = *state;

    crowd(world);
    world->claim = scene_claim(30);
    cut(world, claims, 8);
}


static void
join_between_others(void **state)
{
    world_t  *world = *state;

    crowd(world);
    world->claim = scene_claim(30);
    world->claim.ticket = 2;            /* it was granted before */
    world->claim.was_granted = 1;
    cut(world, claims, 8);
}


static void
join_at_the_head(void **state)
{
    world_t  *world = *state;

    crowd(world);
    world->claim = scene_claim(30);
    world->claim.is_urgent = 1;
    cut(world, claims, 8);
}


static void
head_without_room_waits_on(void **state)
{
    world_t  *world = *state;

    crowd(world);
    advance(world);
    cut(world, claims, 3);
}


static void
head_is_skipped(void **state)
{
    world_t   *world = *state;
    uint32_t   excluded[] = { 0 };

    crowd(world);
    advance(world);
    llmgw_admission_drop_row(world->scene.shared, 0, world->scene.now_ms);
    world->claim.excluded = excluded;
    world->claim.nexcluded = 1;
    world->claim.is_last = 1;
    *scene_full(&world->scene, 1) = world->scene.now_ms + 1;
    *scene_full(&world->scene, 2) = world->scene.now_ms + 1;
    cut(world, claims, 3);
}


/* All replicas have told the head to come later, so it rests until then. */
static void
head_rests(void **state)
{
    world_t         *world = *state;
    uint32_t         peers[] = { 0, 1, 2 };
    llmgw_pushed_t   pushed = { peers, 3, UINT64_MAX };

    crowd(world);
    advance(world);
    end_all_leases(&world->scene);
    world->claim.pushed = &pushed;
    cut(world, claims, 3);
    assert_int_equal(world->scene.shared->queue.resting, 1);
}


static void
leave_from_the_middle(void **state)
{
    crowd(*state);
    cut(*state, leaves, 7);
}


static void
leave_of_the_head(void **state)
{
    crowd(*state);
    advance(*state);
    cut(*state, leaves, 7);
}


static void
grant(void **state)
{
    crowd(*state);
    cut(*state, wakes, 3);
}


static void
thaw_and_recall(void **state)
{
    world_t  *world = *state;

    crowd(world);
    advance(world);
    (void) llmgw_queue_skip(&world->scene.shared->queue,
                                  world->claim.entry);
    (void) llmgw_queue_skip(&world->scene.shared->queue,
                                  world->scene.shared->queue.waits.last);
    world->scene.now_ms += 200;
    cut(world, looks, 6);
}


static void
orphan_is_dropped(void **state)
{
    crowd(*state);
    cut(*state, drops, 6);
}


static void
sweep_of_a_dead_row(void **state)
{
    world_t        *world = *state;
    llmgw_lease_t   lease;

    scene_lease(&world->scene, DEAD, 1, &lease);
    scene_lease(&world->scene, DEAD, 2, &lease);
    scene_lease(&world->scene, DEAD, 3, &lease);
    llmgw_slot(world->scene.shared, 0)->high.newest = 1;
    scene_lease(&world->scene, 3, 4, &lease);
    scene_lease(&world->scene, 3, 5, &lease);
    scene_lease(&world->scene, DEAD, 6, &lease);
    (void) scene_wait(&world->scene, DEAD, 21);
    (void) scene_wait(&world->scene, 0, 22);
    (void) scene_wait(&world->scene, DEAD, 23);
    cut(world, sweeps, 15);
}


/* The child dies while it mends what another process has left. */
static void
mending(void **state)
{
    uint32_t        i;
    world_t        *world = *state;
    llmgw_queue_t  *queue;

    crowd(world);
    world->ntickets = living(world, world->tickets);
    queue = &world->scene.shared->queue;

    cut(world, mends, 2);       /* nothing was broken */

    llmgw_admission_begin(world->scene.shared);

    for (i = 0; i < SLOTS; i++) {
        llmgw_slot(world->scene.shared, i)->counts.in_flight = 99;
        llmgw_slot(world->scene.shared, i)->next = i;
    }

    queue->length = queue->counted = queue->skipped = 99;
    queue->waits.last = queue->free = 2;

    cut(world, mends, 20);
}


static void
slot_is_taken(void **state)
{
    cut(*state, attaches, 7);
}


static void
slot_is_given_up(void **state)
{
    world_t  *world = *state;

    world->slot = llmgw_slots_attach(world->scene.shared, "r3", 2,
                                     world->scene.now_ms);
    cut(world, gives_up, 5);
}


static void
slot_is_renewed(void **state)
{
    world_t  *world = *state;

    open_circuits(&world->scene);
    cut(world, renews, 4);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(lease_of_a_newcomer),
        TEST(lease_by_force),
        TEST(lease_of_the_head),
        TEST(lease_for_a_hedge),
        TEST(release),
        TEST(release_that_opens_the_circuit),
        TEST(proof_that_closes_the_circuit),
        TEST(join),
        TEST(join_between_others),
        TEST(join_at_the_head),
        TEST(head_without_room_waits_on),
        TEST(head_is_skipped),
        TEST(head_rests),
        TEST(leave_from_the_middle),
        TEST(leave_of_the_head),
        TEST(grant),
        TEST(thaw_and_recall),
        TEST(orphan_is_dropped),
        TEST(sweep_of_a_dead_row),
        TEST(mending),
        TEST(slot_is_taken),
        TEST(slot_is_given_up),
        TEST(slot_is_renewed),
    };

    return cmocka_run_group_tests_name("cut", tests, NULL, NULL);
}
