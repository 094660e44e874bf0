
/*
 * Each change of accounts, cut at each of its stores (t/unit/core/cut.h): what
 * the next holder of the lock restores is what was there before the change, and
 * after the sweep the books balance: each request was charged once, under one
 * number, and its record can be written.
 */

#include "t/unit/core/accounts/accounts_scene.h"
#include "t/unit/core/cut.h"


#define N      4
#define DYING  1000
#define OTHER  2000

typedef struct {
    scene_t     scene;
    uint32_t    slot;           /* of the dying process */
    char       *committed;      /* the last state with no change half done */
    char       *seen;
    uint64_t    requests;       /* charged or running, before the change */
    uint32_t    is_new;         /* the change may add a request */
} world_t;

typedef void (*change_t)(void *data);


/* The changes. */

static void
takes(void *data)
{
    world_t  *world = data;

    (void) take(&world->scene);
}


static void
settles(void *data)
{
    world_t               *world = data;
    llmgw_accounts_end_t   end = { .prompt = 11, .completion = 22,
        .cached = 3, .wasted = 4, .outcome = "ok",
        .settled_by = LLMGW_SETTLED_BY_ENGINE };

    (void) llmgw_accounts_settle(world->scene.accounts, world->slot,
                                 (llmgw_process_t) { DYING, 77 }, &end,
                                 &world->scene.now, &world->scene.record);
}


static void
writes(void *data)
{
    world_t  *world = data;

    llmgw_accounts_written(world->scene.accounts, world->slot,
        world->scene.accounts->slots[world->slot].usage.n);
}


static void
sweeps(void *data)
{
    world_t  *world = data;

    (void) llmgw_accounts_settle_dead(world->scene.accounts, world->slot,
                                      (llmgw_process_t) { DYING, 77 },
                                      &world->scene.now,
                                      &world->scene.record);
}


static void
bases(void *data)
{
    world_t       *world = data;
    llmgw_sums_t   base = { { 99999, 99999 }, { 5, 6 } };

    (void) llmgw_accounts_base(world->scene.accounts, world->scene.ask.name,
                               &base, &world->scene.now);
}


static void
mends(void *data)
{
    world_t  *world = data;

    (void) llmgw_accounts_mend(world->scene.accounts);
}


/* The memory without the words that an interrupted change may leave. */

static void
image(const world_t *world, char *copy)
{
    llmgw_accounts_t  *head = (llmgw_accounts_t *) copy;

    memcpy(copy, world->scene.accounts, world->scene.bytes);
    head->dirty = 0;
    head->words.account_hand = head->words.slot_hand = 0;
    memset(&head->undo, 0, sizeof(head->undo));
    memset(&head->estimates, 0, sizeof(head->estimates));
}


/* Settles the slots of the dead process, as the others do. */

static void
sweep(world_t *world)
{
    uint32_t              i;
    uint64_t              n;
    llmgw_usage_t         record;
    llmgw_process_t       owner;
    llmgw_accounts_t     *accounts = world->scene.accounts;
    llmgw_usage_state_t   state;

    for (i = 0; (i = llmgw_accounts_next_slot(accounts, i, &state, &owner))
                != UINT32_MAX; i++)
    {
        if (owner.pid == DYING) {
            n = accounts->slots[i].usage.n;
            assert_true(llmgw_accounts_settle_dead(accounts, i, owner,
                                                   &world->scene.now,
                                                   &record));
            assert_true(state == LLMGW_USAGE_RUNNING || record.n == n);
            llmgw_accounts_written(accounts, i, record.n);
        }
    }
}


static void
look(void *data)
{
    uint64_t           requests;
    world_t           *world = data;
    llmgw_accounts_t  *accounts = world->scene.accounts;

    if (llmgw_accounts_mend(accounts)) {
        image(world, world->seen);
        assert_memory_equal(world->seen, world->committed,
                            world->scene.bytes);

    } else {
        image(world, world->committed);
    }

    assert_balanced(accounts);
    sweep(world);
    assert_balanced(accounts);

    requests = accounts->words.next_n - 1 + accounts->words.running;
    assert_in_range(requests, world->requests,
                    world->requests + world->is_new);
}


static void
cut(world_t *world, change_t change, uint32_t least)
{
    llmgw_accounts_t  *accounts = world->scene.accounts;

    if (!accounts->dirty) {
        world->requests = accounts->words.next_n - 1
                          + accounts->words.running;
        image(world, world->committed);
    }

    cut_at_each_store(accounts, world->scene.bytes, change, look, world,
                      least);
}


/* One request runs in each process, and one waits for its write. */

static int
setup(void **state)
{
    static world_t  world;

    memset(&world, 0, sizeof(world));
    scene_init(&world.scene, N);
    world.committed = malloc(world.scene.bytes);
    world.seen = malloc(world.scene.bytes);
    assert_true(world.committed != NULL && world.seen != NULL);

    world.scene.ask.limits = (llmgw_limits_t) { .rpm = 100, .tpm = 10000,
        .streams = 3, .budget = 100000 };
    world.scene.ask.bytes = 80;

    world.scene.ask.owner.pid = OTHER;
    assert_int_equal(take(&world.scene), LLMGW_ADMITTED);
    assert_int_equal(take(&world.scene), LLMGW_ADMITTED);
    settle(&world.scene, world.scene.answer.slot, 1, 1);

    world.scene.ask.owner.pid = DYING;
    assert_int_equal(take(&world.scene), LLMGW_ADMITTED);
    world.slot = world.scene.answer.slot;
    llmgw_usage_slot_delivered(&world.scene.accounts->slots[world.slot], 9);
    *state = &world;

    return 0;
}


static int
teardown(void **state)
{
    world_t  *world = *state;

    free(world->committed);
    free(world->seen);
    scene_done(&world->scene);

    return 0;
}


static void
admission_is_whole_or_has_not_been(void **state)
{
    world_t  *world = *state;

    world->is_new = 1;
    cut(world, takes, 20);
}


static void
account_is_added_or_not(void **state)
{
    world_t  *world = *state;

    world->is_new = 1;
    world->scene.ask.name = text("bob");
    cut(world, takes, 20);
}


static void
refusal_is_counted_or_not(void **state)
{
    world_t  *world = *state;

    world->scene.ask.limits.streams = 1;
    world->scene.ask.version++;
    cut(world, takes, 10);
}


static void
account_that_gives_way_is_there_or_not(void **state)
{
    char       name[2] = "a";
    world_t   *world = *state;

    world->scene.ask.limits = (llmgw_limits_t) { 0 };

    for ( /* void */ ; name[0] < 'd'; name[0]++) {
        world->scene.ask.name = text(name);
        assert_int_equal(take(&world->scene), LLMGW_ADMITTED);
        settle_and_write(&world->scene, world->scene.answer.slot, 5, 5);
    }

    world->is_new = 1;
    cut(world, takes, 40);
}


static void
lost_record_is_counted_once(void **state)
{
    world_t  *world = *state;

    world->scene.ask.limits = (llmgw_limits_t) { 0 };
    world->scene.ask.version++;
    assert_int_equal(take(&world->scene), LLMGW_ADMITTED);
    world->is_new = 1;
    cut(world, takes, 40);
    assert_int_equal(world->scene.accounts->words.lost, 1);
}


static void
request_is_settled_once(void **state)
{
    cut(*state, settles, 20);
}


static void
sweeper_settles_once(void **state)
{
    cut(*state, sweeps, 20);
}


static void
slot_is_free_or_waits_for_its_write(void **state)
{
    settles(*state);
    cut(*state, writes, 5);
}


static void
base_is_set_or_not(void **state)
{
    world_t  *world = *state;

    world->scene.ask.name = text("carol");
    cut(world, bases, 10);
}


/* The process that mends is killed, too. */

static void
mending_is_mended(void **state)
{
    pid_t              pid;
    char              *before;
    world_t           *world = *state;
    llmgw_accounts_t  *accounts = world->scene.accounts;

    before = malloc(world->scene.bytes);
    assert_non_null(before);
    image(world, world->committed);
    memcpy(before, world->committed, world->scene.bytes);
    pid = cut_child(settles, world);

    while (accounts->words.next_n == 2 && cut_step(pid)) {
        /* void */
    }

    assert_true(accounts->dirty);       /* all but the last stores were made */
    world->requests = 3;
    cut(world, mends, 10);
    assert_false(accounts->dirty);
    image(world, world->seen);
    assert_memory_equal(world->seen, before, world->scene.bytes);

    (void) kill(pid, SIGKILL);
    (void) waitpid(pid, NULL, 0);
    free(before);
}


#define test(name)  cmocka_unit_test_setup_teardown(name, setup, teardown)

int
main(void)
{
    const struct CMUnitTest  tests[] = {
        test(admission_is_whole_or_has_not_been),
        test(account_is_added_or_not),
        test(refusal_is_counted_or_not),
        test(account_that_gives_way_is_there_or_not),
        test(lost_record_is_counted_once),
        test(request_is_settled_once),
        test(sweeper_settles_once),
        test(slot_is_free_or_waits_for_its_write),
        test(base_is_set_or_not),
        test(mending_is_mended)
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
