
/*
 * Each change of the shared memory with flow control, cut at each of its
 * stores: the flow holds exactly those that wait, the bands that were seen stay
 * seen, and all that live are served by class.  cut_scene.h says how it is
 * done.
 */

#include "t/unit/core/admission/cut_scene.h"
#include "t/unit/core/admission/flow_cases.h"


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
leaves(world_t *world)
{
    llmgw_wake_t            wake;
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_leave(&self, &world->claim, world->scene.now_ms, &wake);
}


static void
asks_for_its_turn(world_t *world)
{
    uint64_t                ticket;
    llmgw_wake_t            wake;
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    (void) llmgw_admission_turn(&self, world->scene.now_ms, &ticket, &wake);
}


static void
looks(world_t *world)
{
    llmgw_admission_self_t  self = scene_self(&world->scene, DYING);

    llmgw_admission_look(&self, world->scene.now_ms);
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
orders(world_t *world)
{
    llmgw_flow_conf_t  conf = {
        .order = LLMGW_FLOW_PRIORITY, .fairness = LLMGW_FLOW_ROUND_ROBIN,
        .usage_limit = 0.5, .has_shedding = 1
    };

    (void) llmgw_admission_order(world->scene.shared, &conf);
}


/* The situations in which the changes are made. */

static int
setup(void **state)
{
    static world_t  world;

    memset(&world, 0, sizeof(world_t));
    scene_init(&world.scene);
    flow_on(&world.scene, LLMGW_FLOW_PRIORITY, LLMGW_FLOW_GLOBAL_STRICT, 1,
            1);
    world.claim = flow_claim(5, 2, 0);
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


/* All places are taken; each row has waiters, of all classes. */

static void
crowd(world_t *world)
{
    uint32_t       i;
    scene_t       *scene;
    llmgw_lease_t  lease;

    scene = &world->scene;

    for (i = 0; i < PLACES - 1; i++) {
        scene_lease(scene, i % ROWS, i, &lease);
    }

    scene_lease(scene, DYING, i, &world->lease);

    (void) flow_wait(scene, 3, 20, 3, 1);
    (void) flow_wait(scene, DEAD, 21, -2, 2);
    world->claim = flow_wait(scene, DYING, 22, 4, 1);
    (void) flow_wait(scene, 0, 23, 4, 2);
    (void) flow_wait(scene, DEAD, 24, 3, 1);
    (void) flow_wait(scene, 3, 25, -2, 3);
}


static void
lease_of_a_newcomer(void **state)
{
    cut(*state, claims, 12);
}


static void
lease_of_the_head(void **state)
{
    world_t  *world = *state;

    crowd(world);
    (void) scene_end(&world->scene, DYING, &world->lease,
                     LLMGW_VERDICT_SUCCESS);
    cut(world, claims, 12);
}


static void
join(void **state)
{
    world_t  *world = *state;

    crowd(world);
    world->claim = flow_claim(30, 1, 9);        /* a band that is new */
    cut(world, claims, 15);
}


static void
join_that_sheds(void **state)
{
    world_t        *world = *state;
    llmgw_claim_t   victim;

    crowd(world);
    (void) flow_wait(&world->scene, 3, 26, 3, 1);
    victim = flow_wait(&world->scene, 3, 27, -2, 3);
    world->victim = victim.ticket;
    world->claim = flow_claim(30, 4, 1);
    cut(world, claims, 20);
}


static void
newcomer_is_refused(void **state)
{
    world_t  *world = *state;

    crowd(world);
    world->claim = flow_claim(30, -3, 1);
    world->scene.view.queue_size = 6;
    cut(world, claims, 12);
}


static void
shed_claim_takes_note(void **state)
{
    uint32_t                   shed;
    world_t                   *world = *state;
    llmgw_queue_t             *queue;

    crowd(world);
    queue = &world->scene.shared->queue;

    /* the newest claim of the lowest band is row 1's */
    world->claim = flow_wait(&world->scene, DYING, 26, -2, 1);
    (void) flow_wait(&world->scene, 0, 27, 4, 2);
    (void) flow_wait(&world->scene, 0, 28, 4, 2);

    shed = queue->shed.first;
    assert_int_equal(shed, world->claim.entry);
    cut(world, claims, 5);
}


static void
head_is_skipped(void **state)
{
    world_t   *world = *state;
    uint32_t   excluded[] = { 0 };

    crowd(world);
    llmgw_admission_drop_row(world->scene.shared, 0, world->scene.now_ms);
    world->claim.excluded = excluded;
    world->claim.nexcluded = 1;
    world->claim.is_last = 1;
    *scene_full(&world->scene, 1) = world->scene.now_ms + 1;
    *scene_full(&world->scene, 2) = world->scene.now_ms + 1;
    cut(world, claims, 8);
    assert_int_equal(world->scene.shared->queue.skipped, 1);
}


/* All replicas have told the head to come later, so it rests until then. */
static void
head_rests(void **state)
{
    world_t         *world = *state;
    uint32_t         peers[] = { 0, 1, 2 };
    llmgw_pushed_t   pushed = { peers, 3, UINT64_MAX };

    crowd(world);
    end_all_leases(&world->scene);
    world->claim.pushed = &pushed;
    cut(world, claims, 8);
    assert_int_equal(world->scene.shared->queue.resting, 1);
}


static void
release(void **state)
{
    crowd(*state);
    cut(*state, ends, 5);
}


/* The child's claim skips a head whose worker is frozen, and is served. */
static void
turn_of_the_next(void **state)
{
    world_t        *world = *state;
    llmgw_claim_t   first;
    llmgw_queue_t  *queue;

    crowd(world);
    queue = &world->scene.shared->queue;
    first = world->claim;

    while (queue->entries[first.entry].row == DYING) {
        llmgw_queue_remove(queue, first.entry);
        first.entry = llmgw_queue_head(queue, world->scene.now_ms);
    }

    llmgw_queue_grant(queue, first.entry, world->scene.now_ms);
    world->scene.now_ms += LLMGW_QUEUE_GRANT_MS;
    cut(world, asks_for_its_turn, 6);
    assert_int_equal(queue->aside.first, first.entry);
}


static void
thaw_and_recall(void **state)
{
    world_t        *world = *state;
    uint32_t        head;
    llmgw_queue_t  *queue;

    crowd(world);
    queue = &world->scene.shared->queue;

    /* row 1's claim is passed over, the next one is skipped */
    llmgw_queue_grant(queue, world->claim.entry, world->scene.now_ms);
    world->scene.now_ms += LLMGW_QUEUE_GRANT_MS;
    head = llmgw_queue_head(queue, world->scene.now_ms);
    assert_true(llmgw_queue_skip(queue, head));
    assert_int_equal(queue->aside.first, world->claim.entry);

    cut(world, looks, 12);
    assert_int_equal(queue->aside.first, LLMGW_QUEUE_NONE);
}


static void
leave_of_the_head(void **state)
{
    crowd(*state);
    cut(*state, leaves, 10);
}


static void
sweep_of_a_dead_row(void **state)
{
    crowd(*state);
    cut(*state, sweeps, 15);
}


static void
another_order(void **state)
{
    world_t  *world = *state;

    crowd(world);
    cut(world, orders, 20);
}


/* The child dies while it mends what another process has left. */
static void
mending(void **state)
{
    world_t        *world = *state;
    llmgw_queue_t  *queue;

    crowd(world);
    queue = &world->scene.shared->queue;

    llmgw_admission_begin(world->scene.shared);
    (void) llmgw_flow_take(queue->flow,
                           queue->entries[world->claim.entry].flow);
    queue->length = queue->counted = queue->skipped = 99;
    queue->waits.last = queue->free = queue->granted = 2;

    cut(world, mends, 20);
}


#define TEST(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        TEST(lease_of_a_newcomer),
        TEST(lease_of_the_head),
        TEST(join),
        TEST(join_that_sheds),
        TEST(newcomer_is_refused),
        TEST(shed_claim_takes_note),
        TEST(head_is_skipped),
        TEST(head_rests),
        TEST(release),
        TEST(turn_of_the_next),
        TEST(thaw_and_recall),
        TEST(leave_of_the_head),
        TEST(sweep_of_a_dead_row),
        TEST(another_order),
        TEST(mending),
    };

    return cmocka_run_group_tests_name("cut_flow", tests, NULL, NULL);
}
